/* The core limit: every launch passes here, and every wait. */
#ifndef VGPU_CORE_H
#define VGPU_CORE_H

#include "core_limiter.h"

/* Around the launch of a graph. core_after is also given the driver's result. */
void core_graph(struct launch *launch, CUgraphExec exec, CUstream stream, bool per_thread);
CUresult core_after(struct launch *launch, CUresult result);

/* Before and after the program waits for the card. */
void core_synchronizes(void);
void core_synchronized(void);

/* The context is gone. */
void core_context_ended(CUcontext context);

#endif
