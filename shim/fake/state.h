/* What the processes of one simulated machine share: a file with a slot per process (what it holds of each card) and a timeline per card.
 *
 * A process owns its slot while it holds a POSIX record lock on the slot's byte. The kernel drops that lock when the process ends,
 * however it ends, and tells the holder's pid in the reader's own pid namespace, so nothing is left behind and pids are right in
 * containers. A child made by fork has no slot. */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include "card.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define MAX_SLOTS 1024
#define SEGMENTS 2048
#define MAX_THREADS 512

struct usage {                    /* of one process on one card */
	uint64_t bytes;           /* device memory, contexts included */
	uint64_t slice_bytes[MAX_SLICES]; /* of it, in each MIG device */
	uint32_t contexts;
	uint64_t submitted, served; /* time on the card asked for and had, ns: see timeline.h */
};

struct slot {
	int32_t pid; /* as the process itself sees it */
	uint64_t started;
	struct usage card[MAX_CARDS];
};

struct segment { int64_t from, to; uint64_t served; int slot; }; /* slot was served from `served` on, during [from, to) */

struct timeline {
	int64_t now; /* simulated up to here */
	int current; /* the slot whose turn it is, or -1 */
	int64_t turn_ends;
	uint64_t segments; /* ever logged; the last SEGMENTS are kept */
	struct segment log[SEGMENTS];
};

struct thread_record { int tid; uint32_t blocked; int64_t until; }; /* until: the end of its wait, 0 while it runs */

struct shared_clock { /* of virtual time, see clock.h */
	pthread_mutex_t lock; /* robust; the state's own lock may be held outside, never inside */
	_Atomic int64_t now;
	_Atomic uint32_t moves; /* counts the steps of time; a futex */
	uint32_t begun;         /* as many threads as awaited took part once */
	struct thread_record thread[MAX_THREADS];
};

struct state {
	_Atomic uint32_t ready;
	uint32_t version;
	uint64_t fingerprint, size;
	pthread_mutex_t lock; /* robust */
	struct shared_clock clock;
	uint64_t active[MAX_SLOTS / 64]; /* slots in use */
	struct slot slot[MAX_SLOTS];
	struct timeline timeline[MAX_CARDS];
};

/* The shared state, mapped at the first call; NULL when it cannot be had (the reason is on standard error). */
struct state *state_get(void);

void state_lock(struct state *s);
void state_unlock(struct state *s);

/* A slot for the calling process, or -1 when all are taken. state_slot_leave() gives it back. */
int state_slot_take(struct state *s);
void state_slot_leave(struct state *s, int slot);

/* With the lock held: frees the slots of processes that are gone. */
void state_reap(struct state *s);

/* The pid of the slot's process in the caller's pid namespace; 0: not visible here; -1: gone. */
int state_pid(const struct state *s, int slot);

/* The next slot in use after `slot` (-1 at the start), or -1. With the lock held. */
int state_next(const struct state *s, int slot);

/* With the lock held: what all processes hold of a card, contexts included, the driver's own share not. */
uint64_t state_used(struct state *s, int card);

#endif
