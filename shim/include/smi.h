/* The block that plain `nvidia-smi -q` ends with inside a container. */
#ifndef VGPU_SMI_H
#define VGPU_SMI_H

/* Called when NVML was started: prepares the block if this program is nvidia-smi asked for it. */
void smi_prepare(void);

#endif
