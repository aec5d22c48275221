#include "core_wait.h"

#include "core_publish.h"
#include "core_bucket.h"
#include "core_mark.h"
#include "core_queue.h"
#include "core_segment.h"
#include "core_time.h"

static const int64_t burst = 2 * MILLISECOND, burst_most = 20 * MILLISECOND; /* credit, in wall time, after which a burst begins */
static const int64_t streams_burst = 4 * MILLISECOND, streams_burst_most = 10 * MILLISECOND; /* busy time of a burst of several streams */
static const int64_t slice = MILLISECOND;                /* longest sleep without looking again */
static const int64_t unknown_most = 20 * MILLISECOND;    /* longest wait for the first measurement of a kernel */
static const int64_t unknown_slice = 100 * MICROSECOND;
static const int64_t first_overshoot = 20 * MICROSECOND;
static const int64_t credit_held = 90 * MILLISECOND; /* below what the bucket keeps */
static const int64_t change = 300 * MICROSECOND;     /* what another process's burst costs the card, and some more */
static const int64_t longest_shared = 10 * MILLISECOND; /* of launches of which several make a burst */
enum { SHARED_BURST = 3, STREAMS_BURST = 8 }; /* launches */

/* Alone, a burst is as short as the jitter of sleeps allows, and a longer launch goes as soon as there is no debt. Of several
   streams few run at a burst's beginning and end, so that it is several launches long. Where processes share the limit each
   burst costs a change of context, and its first launch cannot be measured: there it is several launches long. */
static int64_t credit_needed(const struct limiter *limiter, int64_t now, int64_t duration, unsigned percent) {
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
  if (queue_shared(limiter, now)) {
    int64_t less_often = change * 100 / (100 - (int64_t)percent), several = duration < longest_shared ? duration * SHARED_BURST * 100 / (int64_t)percent : 0;
    if (needed < less_often) needed = less_often < burst_most ? less_often : burst_most;
    if (needed < several) needed = several < credit_held ? several : credit_held;
    if (several) return needed;
  }
  return duration * 100 / (int64_t)percent >= needed ? 0 : needed;
}

/* Beside what other streams of the process run it costs next to nothing. */
static bool free_beside_others(struct limiter *limiter, const struct launch *launch, CUcontext context, int64_t now, int64_t duration) {
  if (limiter->active_streams < 2 || limiter->horizon <= now || !limiter_lock(limiter)) return false;
  const struct stream *stream = stream_find(limiter, context, launch->stream, launch->per_thread);
  bool free = stream && segment_growth(limiter, stream, now, duration) * 20 < duration;
  limiter_unlock(limiter);
  return free;
}

/* 0: the launch may go; else when to look again. */
static int64_t hold_until(struct limiter *limiter, const struct launch *launch, CUcontext context, int64_t now, int64_t duration, unsigned percent) {
  int64_t most = turn_credit_most(limiter, now), credit = core_bucket_credit(&limiter->shared->bucket, now, most);
  bool blocked = __atomic_load_n(&limiter->blocked, __ATOMIC_RELAXED);
  int64_t needed = blocked || queue_shared(limiter, now) ? credit_needed(limiter, now, duration, percent) : 0;
  if (needed > most * 9 / 10) needed = most * 9 / 10; /* more never comes together */
  if (!blocked && credit >= 0 && queue_goes_on(limiter, now, needed * (int64_t)percent / 100, credit)) return 0;
  if (free_beside_others(limiter, launch, context, now, duration)) return 0;
  __atomic_store_n(&limiter->blocked, 1, __ATOMIC_RELAXED);
  int64_t others = queue_wait(limiter, now, credit);
  if (others <= now && credit >= needed) {
    queue_begin(limiter, now);
    limiter->resumed = now;
    __atomic_store_n(&limiter->blocked, 0, __ATOMIC_RELAXED);
    return 0;
  }
  int64_t wake = now + needed - credit;
  if (wake < others) wake = others;
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
    int64_t duration = predict_duration(launch->prediction), wake = hold_unknown(launch, now);
    if (!wake && percent && !turn_unlimited(limiter)) {
      wake = hold_until(limiter, launch, context, now, duration, percent);
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
