/* The core limit's place: every launch passes here. */
#ifndef VGPU_CORE_H
#define VGPU_CORE_H

/* Notes that work was launched, for the region's last kernel time. */
void core_launched(void);

#endif
