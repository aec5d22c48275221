/* How busy the container's own processes keep a card. */
#ifndef VGPU_BUSY_H
#define VGPU_BUSY_H

#include "nvml_abi.h"

/* Percent of the last second, 0 to 100; -1 if the driver does not tell. */
int busy_percent(int card, nvmlDevice_t device);

/* Whether a process id that NVML gave belongs to this container. */
int busy_own(uint32_t pid);

#endif
