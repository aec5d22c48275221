/* Holding launches back until the container has credit, and the queue of its processes for it.

   A burst goes on until the credit is used up; then whoever waits longest gets the next. A waiter shows itself at every look,
   so that a killed one loses its place by itself. */
#ifndef VGPU_CORE_WAIT_H
#define VGPU_CORE_WAIT_H

#include "core_limiter.h"

/* Returns when the launch may go on, and what time it is then. */
int64_t wait_admission(struct limiter *limiter, struct launch *launch, CUcontext context);

#endif
