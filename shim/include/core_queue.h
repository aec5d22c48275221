/* Several processes of one container share its credit: who had least launches next, one at a time.

   A burst is what a process launches until the credit is used up; where others wait, also no more than its part. The next
   one's begins when the card is done with it, for two processes at once would be charged for each other's time. Each shows
   itself at every look, so that a killed one loses its place by itself. */
#ifndef VGPU_CORE_QUEUE_H
#define VGPU_CORE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct limiter;

/* Whether the process may go on launching: it is its burst, or nobody else is there. part: compute time that a burst may
   take where others wait, ns; credit: what is left, wall time. */
bool queue_goes_on(struct limiter *limiter, int64_t now, int64_t part, int64_t credit);

/* It waits. Returns when its burst may begin as far as the others are concerned: now, or when to look again. */
int64_t queue_wait(struct limiter *limiter, int64_t now, int64_t credit);

/* Its burst begins. */
void queue_begin(struct limiter *limiter, int64_t now);

/* It had compute time, or gives it back. */
void queue_charge(struct limiter *limiter, int64_t busy);

/* What it launched is expected to be done then. */
void queue_launched(struct limiter *limiter, int64_t now, int64_t finish);

/* Whether others of the container are taken to want the card too. */
bool queue_shared(const struct limiter *limiter, int64_t now);

#endif
