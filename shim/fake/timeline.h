/* A card's time: the processes with work take turns.
 *
 * Work has a position: how long the card will have served the process when it ends. It is done when the card has served the process
 * that much. Nobody has to run for time to pass: whoever looks moves the card's state on to the present. */
#ifndef FAKE_TIMELINE_H
#define FAKE_TIMELINE_H

#include "state.h"

/* How long the card has served the process. */
uint64_t timeline_served(struct state *s, int card, int slot);
/* The process has work up to this position. */
void timeline_submit(struct state *s, int card, int slot, uint64_t position);
bool timeline_done(struct state *s, int card, int slot, uint64_t position);
void timeline_wait(struct state *s, int card, int slot, uint64_t position);
/* When a position that is done was reached; the start of the log if that is longer ago. */
int64_t timeline_when(struct state *s, int card, int slot, uint64_t position);
/* Busy ns of the card during the last `window` ns; of one slot, or of all when slot is -1. */
int64_t timeline_busy(struct state *s, int card, int slot, int64_t window);

#endif
