/* A card's time: the processes with work take turns, each process's kernels run one after the other in the order of their launches.
 *
 * A launch gets a position: the sum of the process's kernel time on the card up to its end. It is done when the card has served the
 * process that much. Nobody has to run for time to pass: whoever looks moves the card's state on to the present. */
#ifndef FAKE_TIMELINE_H
#define FAKE_TIMELINE_H

#include "state.h"

/* Add `ns` of work; the position of its end. */
uint64_t timeline_submit(struct state *s, int card, int slot, uint64_t ns);
bool timeline_done(struct state *s, int card, int slot, uint64_t position);
void timeline_wait(struct state *s, int card, int slot, uint64_t position);
/* When a position that is done was reached; the start of the log if that is longer ago. */
int64_t timeline_when(struct state *s, int card, int slot, uint64_t position);
/* Busy ns of the card during the last `window` ns; of one slot, or of all when slot is -1. */
int64_t timeline_busy(struct state *s, int card, int slot, int64_t window);

#endif
