#include "core_publish.h"

#include "core_bucket.h"
#include "core_queue.h"
#include "core_time.h"
#include "process.h"

static const int64_t interval = 100 * MILLISECOND;

void core_charge(struct limiter *limiter, int64_t now, int64_t busy) {
  unsigned percent = limiter_percent(limiter);
  if (!busy) return;
  if (percent && !turn_unlimited(limiter)) core_bucket_charge(&limiter->shared->bucket, now, busy, percent, turn_credit_most(limiter, now));
  __atomic_fetch_add(&limiter->shared->busy_time, (uint64_t)busy, __ATOMIC_RELAXED);
  __atomic_fetch_add(&limiter->own_busy[0], (uint64_t)busy, __ATOMIC_RELAXED);
  queue_charge(limiter, busy);
}

int core_histogram_bucket(int64_t time) {
  uint64_t microseconds = (uint64_t)time / MICROSECOND;
  int bucket = microseconds ? 64 - __builtin_clzll(microseconds) : 0;
  return bucket < CORE_HIST_BUCKETS ? bucket : CORE_HIST_BUCKETS - 1;
}

void core_count_wait(struct limiter *limiter, int64_t waited) {
  __atomic_fetch_add(&limiter->shared->waits, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&limiter->shared->throttled_time, (uint64_t)waited, __ATOMIC_RELAXED);
  __atomic_fetch_add(&limiter->shared->wait_histogram[core_histogram_bucket(waited)], 1, __ATOMIC_RELAXED);
}

/* Parts per million since the sample nearest to `window` ago; the ring holds `count` samples, `latest` among them. */
static uint64_t share(const int64_t *times, const uint64_t *busy, int size, int count, int64_t now, uint64_t busy_now, int64_t window) {
  int oldest = -1;
  for (int i = 0; i < count && i < size; i++) {
    int64_t age = now - times[i];
    if (age > 0 && age <= window + window / 8 && (oldest < 0 || times[i] < times[oldest])) oldest = i;
  }
  if (oldest < 0) return 0;
  int64_t done = (int64_t)(busy_now - busy[oldest]), passed = now - times[oldest];
  if (done <= 0) return 0;
  uint64_t parts = (uint64_t)((double)done * 1e6 / (double)passed);
  return parts > 1000000 ? 1000000 : parts;
}

void core_publish_limits(const struct region *region) {
  for (int card = 0; card < region_cards(region); card++) {
    const struct limiter *limiter = limiter_known(card);
    unsigned percent = limiter ? limiter_percent(limiter) : core_limit(region, card);
    __atomic_store_n(&region->cards[card].core_limit, percent ? percent : 100, __ATOMIC_RELAXED);
  }
}

void core_publish(struct limiter *limiter, int64_t now) {
  if (now - limiter->published < interval) return;
  limiter->published = now;
  struct core_card *card = limiter->shared;
  uint64_t busy = __atomic_load_n(&card->busy_time, __ATOMIC_RELAXED);
  __atomic_store_n(&card->share_1s, share(limiter->tenth_time, limiter->tenth_busy, SHARE_TENTHS, limiter->tenths, now, busy, SECOND), __ATOMIC_RELAXED);
  __atomic_store_n(&card->share_60s, share(limiter->second_time, limiter->second_busy, SHARE_SECONDS, limiter->seconds, now, busy, 60ll * SECOND),
                   __ATOMIC_RELAXED);
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  __atomic_store_n(&card->share_time, (uint64_t)wall.tv_sec * SECOND + (uint64_t)wall.tv_nsec, __ATOMIC_RELAXED);
  int place = limiter->tenths++ % SHARE_TENTHS, latest = (limiter->seconds + SHARE_SECONDS - 1) % SHARE_SECONDS;
  limiter->tenth_time[place] = now;
  limiter->tenth_busy[place] = busy;
  if (!limiter->seconds || now - limiter->second_time[latest] >= SECOND) {
    uint64_t own = __atomic_load_n(&limiter->own_busy[0], __ATOMIC_RELAXED), passed = (uint64_t)(now - limiter->own_time);
    int slot = process_slot();
    if (slot >= 0 && limiter->seconds) {
      int64_t done = (int64_t)(own - limiter->own_busy[1]);
      uint64_t busy_percent = done <= 0 ? 0 : (uint64_t)done * 100 / passed;
      __atomic_store_n(&limiter->region->file->slots[slot].utilization[limiter->card].sm, busy_percent > 100 ? 100 : busy_percent, __ATOMIC_RELAXED);
    }
    limiter->own_busy[1] = own;
    limiter->own_time = now;
    place = limiter->seconds++ % SHARE_SECONDS;
    limiter->second_time[place] = now;
    limiter->second_busy[place] = busy;
  }
}
