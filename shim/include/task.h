/* Tasks done on a card, as <region>.core counts them: what the program reports, else its graph launches. */
#ifndef VGPU_TASK_H
#define VGPU_TASK_H

#include "region.h"

/* Counts graph launches. */
void task_graphs(struct core_card *card, uint64_t count);

#endif
