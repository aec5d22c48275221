/* Memory of graph allocation nodes: charged by what the device has reserved for graphs. */
#ifndef VGPU_GRAPH_H
#define VGPU_GRAPH_H

#include "cuda_abi.h"

#include <stdbool.h>

void graph_refresh(int card);
void graph_make_room(int card);
void graph_forget(int card);

/* Whether an allocation on this stream is recorded instead of made. The graph it goes to is NULL if the driver is too
   old to say. */
bool graph_capturing(CUstream stream, bool per_thread, CUgraph *graph);

/* Whether any capture was begun in this process. */
bool graph_captures(void);

/* An allocation was recorded. */
void graph_recorded(CUgraph graph, int card, uint64_t bytes);

#endif
