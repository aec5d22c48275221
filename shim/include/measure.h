/* Memory that no allocation shows (contexts, modules, the driver's rounding) is found by comparing NVML's figure for this
   process with what it claims for its allocations. */
#ifndef VGPU_MEASURE_H
#define VGPU_MEASURE_H

#include <stdbool.h>

/* Measures now, unless that would take more than a fifth of the time. */
void measure_now(int card);

/* Measures at once, whenever it was done last: a context was made or ended. */
void measure_again(int card);

/* Measures when the change since the last time matters against what is left, or when measure_soon asked for it. */
void measure_if_due(int card);

/* Measures if anything was allocated or freed since the last time, so that an answer is right. */
void measure_for_query(int card);

/* Something took or gave memory unseen; card -1 means any. */
void measure_soon(int card);

/* Memory of other processes was mapped (+1) or unmapped (-1): NVML may count it here too, so that for as long as any is
   mapped the measured part is not raised. */
void measure_imports(int change);

/* Managed memory was allocated (+1) or freed (-1): it is charged in full, while NVML counts what lies on the card, so that
   for as long as any lives the measured part is not lowered. */
void measure_managed(int change);

#endif
