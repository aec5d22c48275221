/* The one story that CUDA, NVML and nvidia-smi tell of a card's memory. */
#ifndef VGPU_VIEW_H
#define VGPU_VIEW_H

#include <stdbool.h>
#include <stdint.h>

struct view {
  uint64_t limit, used, free; /* bytes; used may exceed the limit after it was lowered, free never goes below 0 */
};

/* False: the card is not limited, the driver's own answer stands. */
bool view_of(int card, struct view *view);

#endif
