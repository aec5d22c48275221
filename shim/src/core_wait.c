#include "core_wait.h"

#include "core_publish.h"
#include "core_bucket.h"
#include "core_mark.h"
#include "core_segment.h"
#include "core_time.h"
#include "process.h"

static const int64_t burst = 2 * MILLISECOND, burst_most = 20 * MILLISECOND; /* credit, in wall time, after which a burst begins */
static const int64_t streams_burst = 4 * MILLISECOND, streams_burst_most = 10 * MILLISECOND; /* busy time of a burst of several streams */
static const int64_t slice = MILLISECOND;                /* longest sleep without looking again */
static const int64_t unknown_most = 20 * MILLISECOND;    /* longest wait for the first measurement of a kernel */
static const int64_t unknown_slice = 100 * MICROSECOND;
static const int64_t seen_within = 20 * MILLISECOND;     /* of a waiter that counts */
static const int64_t burst_seen_within = 3 * MILLISECOND;
static const uint64_t in_burst = UINT64_MAX;             /* wants of a process that is using its credit */
static const int64_t first_overshoot = 20 * MICROSECOND;
static const int64_t credit_held = 90 * MILLISECOND; /* below what the bucket keeps */
static const int64_t contended_time = 200 * MILLISECOND;
static const int64_t longest_shared = 10 * MILLISECOND; /* of launches of which several make a burst */
enum { SHARED_BURST = 3, STREAMS_BURST = 5 }; /* launches */

static uint64_t read64(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

static uint64_t own_identity(const struct limiter *limiter) {
  int slot = process_slot();
  return slot < 0 ? 1 : read64(&limiter->region->processes[slot].owner);
}

static void enqueue(struct limiter *limiter, int64_t now, int64_t wants) {
  struct core_waiter *waiters = limiter->shared->waiters;
  uint64_t own = own_identity(limiter);
  if (limiter->waiter && read64(&waiters[limiter->waiter - 1].owner) != own) limiter->waiter = 0;
  for (int i = 0; i < CORE_WAITERS && !limiter->waiter; i++) {
    uint64_t owner = read64(&waiters[i].owner);
    bool stale = owner && now - (int64_t)read64(&waiters[i].seen) > SECOND;
    if (owner && owner != own && !stale) continue;
    if (owner == own || __atomic_compare_exchange_n(&waiters[i].owner, &owner, own, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) limiter->waiter = i + 1;
  }
  if (!limiter->waiter) return;
  struct core_waiter *mine = &waiters[limiter->waiter - 1];
  bool burst_ended = read64(&mine->wants) == in_burst;
  __atomic_store_n(&mine->seen, (uint64_t)now, __ATOMIC_RELAXED);
  __atomic_store_n(&mine->wants, (uint64_t)wants, __ATOMIC_RELAXED);
  if (!read64(&mine->since) || burst_ended) __atomic_store_n(&mine->since, (uint64_t)now, __ATOMIC_RELEASE);
}

/* The burst keeps its place until the credit is used up, so that nobody else takes the same credit. */
static void begin_burst(struct limiter *limiter, int64_t now) {
  if (!limiter->waiter) return;
  struct core_waiter *mine = &limiter->shared->waiters[limiter->waiter - 1];
  __atomic_store_n(&mine->wants, in_burst, __ATOMIC_RELAXED);
  __atomic_store_n(&mine->seen, (uint64_t)now, __ATOMIC_RELEASE);
}

static void go_on(struct limiter *limiter, int64_t now) {
  if (limiter->waiter && now < limiter->contended) __atomic_store_n(&limiter->shared->waiters[limiter->waiter - 1].seen, (uint64_t)now, __ATOMIC_RELAXED);
}

/* Whether nobody has waited longer; most: the longest launch that anybody waits for, but never beyond a second. */
static bool first_in_queue(struct limiter *limiter, int64_t now, int64_t *most) {
  const struct core_waiter *waiters = limiter->shared->waiters;
  int mine = limiter->waiter - 1;
  uint64_t own_since = mine >= 0 ? read64(&waiters[mine].since) : 0;
  bool first = true;
  for (int i = 0; i < CORE_WAITERS; i++) {
    if (i == mine || !read64(&waiters[i].owner)) continue;
    uint64_t since = read64(&waiters[i].since), wants = read64(&waiters[i].wants);
    int64_t age = now - (int64_t)read64(&waiters[i].seen);
    if (!since || age > (wants == in_burst ? burst_seen_within : seen_within) || age < -seen_within) continue;
    limiter->contended = now + contended_time;
    if (wants <= SECOND && (int64_t)wants > *most) *most = (int64_t)wants;
    if (!own_since || since < own_since || (since == own_since && i < mine)) first = false;
  }
  return first || mine < 0; /* without a place, luck decides */
}

/* Alone, a burst is as short as the jitter of sleeps allows, and a longer launch goes as soon as there is no debt. Of several
   streams few run at a burst's beginning and end, so that it is several launches long. Where
   processes take turns each burst costs a change of context, and its first launch cannot be measured: there it is several
   launches long, and worth as much as the longest launch of the others. */
static int64_t credit_needed(const struct limiter *limiter, int64_t now, int64_t duration, int64_t longest, unsigned percent) {
  int64_t overshoot = limiter->overshoot ? limiter->overshoot : first_overshoot;
  int64_t needed = 2 * overshoot * 100 / (100 - (int64_t)percent);
  if (needed < burst) needed = burst;
  if (needed > burst_most) needed = burst_most;
  if (limiter->active_streams > 1) {
    int64_t busy = STREAMS_BURST * duration;
    if (busy < streams_burst) busy = streams_burst;
    if (busy > streams_burst_most) busy = streams_burst_most;
    if (needed < busy * 100 / (int64_t)percent) needed = busy * 100 / (int64_t)percent;
    if (needed > credit_held) needed = credit_held;
  }
  if (turn_shared(limiter, now) && needed < turn_credit(limiter, percent)) needed = turn_credit(limiter, percent);
  if (now < limiter->contended) {
    if (duration > longest) longest = duration;
    int64_t fair = longest * 100 / (int64_t)percent * (longest < longest_shared ? SHARED_BURST : 1);
    if (fair > needed) needed = fair;
    return longest < longest_shared || duration < longest ? (needed < credit_held ? needed : credit_held) : 0;
  }
  return duration * 100 / (int64_t)percent >= needed ? 0 : needed;
}

/* 0: the launch may go; else when to look again. */
static int64_t hold_until(struct limiter *limiter, int64_t now, int64_t duration, int64_t growth, unsigned percent) {
  int64_t credit = core_bucket_credit(&limiter->shared->bucket, now, turn_credit_most(limiter, now));
  bool blocked = __atomic_load_n(&limiter->blocked, __ATOMIC_RELAXED);
  if (!blocked && credit >= 0) {
    go_on(limiter, now);
    return 0;
  }
  if (limiter->active_streams > 1 && growth * 20 < duration) return 0; /* beside what runs it costs next to nothing */
  __atomic_store_n(&limiter->blocked, 1, __ATOMIC_RELAXED);
  enqueue(limiter, now, duration);
  int64_t longest = 0;
  bool first = first_in_queue(limiter, now, &longest);
  int64_t needed = credit_needed(limiter, now, duration, longest, percent);
  if (first && credit >= needed) {
    begin_burst(limiter, now);
    limiter->resumed = now;
    __atomic_store_n(&limiter->blocked, 0, __ATOMIC_RELAXED);
    return 0;
  }
  int64_t wake = now + needed - credit, least = now + (first ? 0 : slice / 4);
  if (wake < least) wake = least;
  return wake > now + slice ? now + slice : wake;
}

static void sleep_until(struct limiter *limiter, int64_t when) {
  core_sleep_until(when);
  int64_t late = core_now() - when;
  if (late < 0) return;
  if (late > 5 * MILLISECOND) late = 5 * MILLISECOND;
  int64_t known = limiter->overshoot ? limiter->overshoot : first_overshoot;
  limiter->overshoot = known + (late - known) / 16;
}

/* The second launch of an unknown kernel waits for the first one's measurement, within reason: the program may have to
   launch it before the first one can end. Returns when to look again, 0 not to wait. */
static int64_t hold_unknown(const struct launch *launch, int64_t now) {
  int64_t launched = __atomic_load_n(&launch->prediction->launched, __ATOMIC_RELAXED);
  if (predict_duration(launch->prediction) || !launched) return 0;
  if (now - launched < unknown_most) return now + unknown_slice;
  predict_learn(launch->prediction, now - launched, 100);
  return 0;
}

int64_t wait_admission(struct limiter *limiter, struct launch *launch, CUcontext context) {
  int64_t started = 0, now;
  for (;;) {
    now = core_now();
    unsigned percent = limiter_percent(limiter);
    if (!percent && !turn_shared(limiter, now)) break;
    int64_t duration = predict_duration(launch->prediction), growth = duration;
    if (limiter->active_streams > 1 && limiter_lock(limiter)) {
      const struct stream *stream = stream_find(limiter, context, launch->stream, launch->per_thread);
      if (stream) growth = segment_growth(limiter, stream, now, duration);
      limiter_unlock(limiter);
    }
    int64_t wake = hold_unknown(launch, now);
    if (!wake && percent && !turn_unlimited(limiter)) {
      wake = hold_until(limiter, now, duration, growth, percent);
      if (wake) wake = turn_blocked(limiter, now, wake);
    }
    if (!wake) wake = turn_hold(limiter, &now, duration);
    if (!wake) break;
    if (limiter_lock(limiter)) {
      int mode = mark_allow();
      if (!started) segment_close_all(limiter, now);
      if (limiter->pending) segment_reap(limiter, now, started != 0);
      mark_restore(mode);
      core_publish(limiter, now);
      limiter_unlock(limiter);
    }
    if (!started) started = now;
    sleep_until(limiter, wake);
  }
  if (started) core_count_wait(limiter, now - started);
  return now;
}
