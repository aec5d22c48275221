#include "core_limiter.h"

#include "card.h"
#include "core_time.h"
#include "driver.h"
#include "settings.h"

#include <pthread.h>
#include <stdlib.h>

enum { CONTEXTS = 64, SPINS = 200, NAPS = 8 };
static const int64_t nap = 3 * MICROSECOND;

static struct limiter *limiters[REGION_CARDS];
static struct {
  CUcontext context;
  struct limiter *limiter;
} contexts[CONTEXTS];

static struct limiter *limiter_of(int card) {
  struct limiter *known = __atomic_load_n(&limiters[card], __ATOMIC_ACQUIRE);
  if (known) return known;
  struct limiter *new = calloc(1, sizeof *new);
  if (!new) return NULL;
  new->card = card;
  new->region = region_get();
  new->shared = &new->region->cards[card];
  for (int i = 0; i < MAX_SEGMENTS; i++) {
    new->segments[i].next = new->free_segments;
    new->free_segments = &new->segments[i];
  }
  if (__atomic_compare_exchange_n(&limiters[card], &known, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return new;
  free(new);
  return known;
}

struct limiter *limiter_known(int card) { return __atomic_load_n(&limiters[card], __ATOMIC_ACQUIRE); }

/* A context's address may be used again for one on another card, so the answer is kept by thread and asked anew from time
   to time only where it is cheap: the current device is part of the current context. */
struct limiter *limiter_current(CUcontext *context) {
  if (NEXT(cuCtxGetCurrent)(context) != CUDA_SUCCESS || !*context) return NULL;
  unsigned place = (unsigned)((uintptr_t)*context >> 4) % CONTEXTS;
  if (__atomic_load_n(&contexts[place].context, __ATOMIC_ACQUIRE) == *context) {
    struct limiter *found = __atomic_load_n(&contexts[place].limiter, __ATOMIC_ACQUIRE);
    if (found && __atomic_load_n(&contexts[place].context, __ATOMIC_ACQUIRE) == *context) return found;
  }
  int card = card_current();
  struct limiter *limiter = card == CARD_NONE ? NULL : limiter_of(card);
  if (!limiter) return NULL;
  __atomic_store_n(&contexts[place].context, NULL, __ATOMIC_RELEASE);
  __atomic_store_n(&contexts[place].limiter, limiter, __ATOMIC_RELEASE);
  __atomic_store_n(&contexts[place].context, *context, __ATOMIC_RELEASE);
  return limiter;
}

void limiter_forget_context(CUcontext context) {
  for (int i = 0; i < CONTEXTS; i++)
    if (__atomic_load_n(&contexts[i].context, __ATOMIC_ACQUIRE) == context) __atomic_store_n(&contexts[i].context, NULL, __ATOMIC_RELEASE);
}

unsigned limiter_percent(const struct limiter *limiter) {
  return limiter->deaf ? 0 : core_limit(limiter->region, limiter->card);
}

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

bool limiter_lock(struct limiter *limiter) {
  for (int naps = 0;; naps++) {
    for (int i = 0; i < SPINS; i++) {
      if (!__atomic_load_n(&limiter->lock, __ATOMIC_RELAXED) && !__atomic_exchange_n(&limiter->lock, 1, __ATOMIC_ACQUIRE)) return true;
      relax();
    }
    if (naps == NAPS) return false;
    core_sleep_until(core_now() + nap); /* who has it lost its processor */
  }
}

void limiter_unlock(struct limiter *limiter) { __atomic_store_n(&limiter->lock, 0, __ATOMIC_RELEASE); }

static struct timeline *timeline_of(struct limiter *limiter, CUcontext context) {
  struct timeline *free = NULL;
  for (int i = 0; i < MAX_TIMELINES; i++) {
    if (limiter->timelines[i].context == context) return &limiter->timelines[i];
    if (!limiter->timelines[i].context && !free) free = &limiter->timelines[i];
  }
  if (free) free->context = context;
  return free;
}

struct stream *stream_find(struct limiter *limiter, CUcontext context, CUstream handle, bool per_thread) {
  static __thread struct {
    struct limiter *limiter;
    CUcontext context;
    CUstream handle;
    bool per_thread;
    struct stream *stream;
  } last;
  if (last.limiter == limiter && last.handle == handle && last.context == context && last.per_thread == per_thread && last.stream->used &&
      last.stream->context == context && last.stream->handle == (handle ? handle : (CUstream)(uintptr_t)(per_thread ? 2 : 1)))
    return last.stream;
  CUstream name = handle ? handle : (CUstream)(uintptr_t)(per_thread ? 2 : 1);
  uint64_t thread = name == (CUstream)2 ? (uint64_t)(uintptr_t)pthread_self() : 0;
  struct stream *found = NULL, *unused = NULL;
  for (int i = 0; i < limiter->stream_high && !found; i++) {
    struct stream *stream = &limiter->streams[i];
    if (stream->used && stream->handle == name && stream->context == context && stream->thread == thread) found = stream;
    if (!stream->used && !unused) unused = stream;
  }
  if (!found) {
    found = unused ? unused : limiter->stream_high < MAX_STREAMS ? &limiter->streams[limiter->stream_high++] : NULL;
    if (!found) return NULL;
    *found = (struct stream){.context = context, .handle = name, .thread = thread, .used = true, .random = (uintptr_t)name ^ 0x9e3779b97f4a7c15ull};
    found->timeline = timeline_of(limiter, context);
  }
  last.limiter = limiter;
  last.context = context;
  last.handle = handle;
  last.per_thread = per_thread;
  last.stream = found;
  return found;
}
