/* The core limit of one card in this process: what its streams are expected to do, what was measured, and what is known
   of its kernels.

   Measuring (streams, segments, events) is guarded by a lock that is never waited for longer than some microseconds: who
   does not get it charges by prediction alone. It is not held across the program's own calls, nor while sleeping. */
#ifndef VGPU_CORE_LIMITER_H
#define VGPU_CORE_LIMITER_H

#include "core_predict.h"
#include "core_turn.h"
#include "core_union.h"
#include "cuda_abi.h"
#include "region.h"

#include <stdbool.h>
#include <stdint.h>

enum { MAX_STREAMS = 512, MAX_SEGMENTS = 2048, MAX_TIMELINES = 8, SEGMENT_KINDS = 6, SHARE_SECONDS = 61, SHARE_TENTHS = 12 };

/* A timed event of this library's own. One ends a segment and begins the next. */
struct mark {
  CUevent event;
  struct mark *next; /* while it is free */
  struct timeline *timeline;
  int users;
};

/* Events of one context can be compared; their times are ns from `base`, which is moved on every second because CUDA gives
   them as 32-bit floats. */
struct timeline {
  CUcontext context;
  struct mark *free, *base;
  int64_t base_time;
  struct busy_union busy;
};

/* Launches between two marks in one stream. */
struct segment {
  struct segment *next;
  struct mark *start, *end;
  int64_t charged;   /* by prediction, ns */
  int64_t predicted; /* sum of the predicted durations, ns */
  int64_t due;       /* when it is expected to be done */
  int64_t host_gap;  /* in an idle stream: the time from the start mark's return to the first launch's return */
  bool alone, idle, overlaps; /* overlaps: its first launch would have begun before what came before ended */
  bool at_most; /* its time is at most what was measured: the card may have changed over to this process meanwhile, or was about to run dry */
  int launches, kinds; /* kinds: SEGMENT_KINDS + 1 when there are more */
  struct {
    struct prediction *prediction;
    int launches;
  } kind[SEGMENT_KINDS];
};

struct stream {
  CUcontext context;
  CUstream handle; /* 0, 1 and 2 stand for default streams */
  uint64_t thread; /* of a thread's own default stream, else 0 */
  bool used, overlaps; /* overlaps: launches that may begin before the one before them ends were seen */
  struct timeline *timeline;
  int64_t finish; /* when the launches so far are expected to be done */
  _Atomic int launching; /* launches on their way to the driver */
  uint64_t launches, used_at; /* used_at: the limiter's launches by then */
  struct segment *_Atomic open;
  struct segment *first, *last; /* first to last: closed, not yet measured */
  unsigned isolated, dense; /* launches since the last measurement of a single one */
  uint64_t random;
};

struct limiter {
  int card, lock;
  const struct region *region;
  struct core_card *shared;
  struct predictions predictions;
  struct timeline timelines[MAX_TIMELINES];
  struct stream streams[MAX_STREAMS];
  _Atomic int stream_high, active_streams;
  struct segment segments[MAX_SEGMENTS], *free_segments;
  _Atomic int pending;       /* closed segments not yet measured */
  _Atomic int64_t horizon;   /* the last of all streams' finish */
  _Atomic int64_t ready;     /* before it the card does not begin: it changes over from another tenant */
  uint64_t launches;
  int64_t next_reap;
  _Atomic int64_t resumed;  /* when launches were last held back and went on */
  int blocked;       /* launches are held back until there is credit again */
  _Atomic int waiter;        /* place in the card's queue + 1 */
  _Atomic int64_t shared_until; /* until then other processes of the container are taken to want the card too */
  _Atomic uint64_t burst_busy;      /* own_busy[0] when the burst began */
  _Atomic bool after_others;    /* the next launch is the first one after another process's burst */
  _Atomic int64_t overshoot; /* by which sleeps last too long, ns */
  _Atomic bool deaf;         /* the driver gives no events */
  int64_t published, tenth_time[SHARE_TENTHS], second_time[SHARE_SECONDS];
  uint64_t tenth_busy[SHARE_TENTHS], second_busy[SHARE_SECONDS], own_busy[2];
  int64_t own_time;
  int tenths, seconds;
  int outliers;      /* measurements in a row that others may have taken part in */
  struct turn turn;  /* among the containers on this card */
};

/* One launch on its way through the hook. */
struct launch {
  CUstream stream;
  bool per_thread, overlaps, graph;
  uint64_t key;
  struct limiter *limiter; /* NULL: not limited */
  struct prediction *prediction;
  struct stream *on;
  int64_t charged, duration, start_returned;
  uint64_t number;   /* of the stream's launches */
  bool alone, idle, at_most, measures; /* measures: there is something to do after it */
  struct mark *start;
};

/* The limiter of the current context's card, NULL if there is none. The context is stored too. */
struct limiter *limiter_current(CUcontext *context);
struct limiter *limiter_known(int card);
void limiter_forget_context(CUcontext context);

/* Percent that the region asks for, 1 to 99; 0: no limit. The region's policy counts, not this process's environment. */
static inline unsigned core_limit(const struct region *region, int card) {
  uint64_t percent = __atomic_load_n(&region->file->sm_limit[card], __ATOMIC_RELAXED);
  if (__builtin_expect(percent - 1 >= 99, 1)) return 0;
  return __atomic_load_n(&region->header->policy, __ATOMIC_RELAXED) == CORE_POLICY_DISABLE ? 0 : (unsigned)percent;
}

/* Percent in force, 1 to 99; 0: not limited. */
unsigned limiter_percent(const struct limiter *limiter);

bool limiter_lock(struct limiter *limiter);
void limiter_unlock(struct limiter *limiter);

/* The thing that a handle names in this thread. NULL if there are too many. */
struct stream *stream_find(struct limiter *limiter, CUcontext context, CUstream handle, bool per_thread);

#endif
