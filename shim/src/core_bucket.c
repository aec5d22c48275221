#include "core_bucket.h"

#include "core_time.h"

static const int64_t debt_most = 100ll * SECOND;

void core_bucket_start(uint64_t *word, int64_t now) {
  uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (old < (uint64_t)now && !__atomic_compare_exchange_n(word, &old, (uint64_t)now, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

void core_bucket_charge(uint64_t *word, int64_t now, int64_t busy, unsigned percent, int64_t most) {
  uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED), new;
  do {
    int64_t base = (int64_t)old;
    if (!base) base = now; /* no credit at the start */
    if (base < now - most) base = now - most;
    base += busy * 100 / (int64_t)percent;
    if (base > now + debt_most) base = now + debt_most;
    new = base > 0 ? (uint64_t)base : 1;
  } while (!__atomic_compare_exchange_n(word, &old, new, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

int64_t core_bucket_credit(uint64_t *word, int64_t now, int64_t most) {
  uint64_t value = __atomic_load_n(word, __ATOMIC_RELAXED);
  if (!value) return 0;
  int64_t credit = now - (int64_t)value;
  if (value > INT64_MAX || credit < -debt_most - SECOND) {
    __atomic_compare_exchange_n(word, &value, (uint64_t)now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return 0;
  }
  return credit < most ? credit : most;
}
