#include "claim.h"

#include "process.h"

#include <sched.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_NS = 100000000, PAUSE_NS = 20000 };

static uint64_t under_way[REGION_CARDS];
static int judging; /* threads of this process take turns; a holder never waits for the driver */

static int64_t clock_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint32_t high_of(const struct region *region) {
  uint32_t high = __atomic_load_n(&region->header->process_high, __ATOMIC_ACQUIRE);
  return high > REGION_SLOTS ? REGION_SLOTS : high;
}

struct sums {
  uint64_t claimed, trying, lower_trying;
};

/* A claim moves from trying to claimed in this order: added there, then cleared here. Read the other way round it can
   be seen twice, never missed. */
static struct sums add_up(const struct region *region, int slot, int card) {
  struct sums sums = {0};
  uint32_t high = high_of(region);
  for (uint32_t i = 0; i < high; i++) {
    const struct core_claim *claim = &region->processes[i].claims[card];
    if ((int)i != slot) {
      uint64_t trying = __atomic_load_n(&claim->trying, __ATOMIC_SEQ_CST);
      sums.trying += trying;
      if ((int)i < slot) sums.lower_trying += trying;
    }
    sums.claimed += __atomic_load_n(&claim->claimed, __ATOMIC_SEQ_CST);
  }
  return sums;
}

static void subtract(uint64_t *word, uint64_t bytes) {
  uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &now, now > bytes ? now - bytes : 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {}
}

static void show(const struct region *region, int slot, int card, int64_t data) {
  struct region_usage *usage = &region->file->slots[slot].used[card];
  if (data >= 0) {
    __atomic_fetch_add(&usage->data, (uint64_t)data, __ATOMIC_RELAXED);
    __atomic_fetch_add(&usage->total, (uint64_t)data, __ATOMIC_RELAXED);
  } else {
    subtract(&usage->data, (uint64_t)-data);
    subtract(&usage->total, (uint64_t)-data);
  }
}

enum verdict { FITS, FULL, IN_THE_WAY };

static enum verdict judge(const struct region *region, int slot, int card, uint64_t bytes, uint64_t limit, bool *lower) {
  struct sums sums = add_up(region, slot, card);
  if (bytes <= limit && sums.claimed <= limit - bytes && sums.trying <= limit - bytes - sums.claimed) return FITS;
  if (bytes > limit || sums.claimed > limit - bytes) {
    /* Claims that move while they are added up can look larger than they ever were. */
    for (int tries = 0; tries < 8; tries++) {
      struct sums again = add_up(region, slot, card);
      if (again.claimed == sums.claimed) return FULL;
      sums = again;
      if (bytes <= limit && sums.claimed <= limit - bytes) break;
    }
    if (bytes > limit || sums.claimed > limit - bytes) return FULL;
  }
  *lower = sums.lower_trying != 0;
  return IN_THE_WAY;
}

static bool contest(const struct region *region, int slot, int card, uint64_t bytes) {
  struct core_claim *mine = &region->processes[slot].claims[card];
  const struct timespec pause = {0, PAUSE_NS};
  int64_t deadline = 0;
  for (;;) {
    uint64_t limit = region_memory_limit(region, card);
    bool lower = false;
    enum verdict verdict = FITS;
    if (limit) {
      __atomic_store_n(&mine->trying, bytes, __ATOMIC_SEQ_CST);
      verdict = judge(region, slot, card, bytes, limit, &lower);
    }
    if (verdict == FITS) __atomic_fetch_add(&mine->claimed, bytes, __ATOMIC_SEQ_CST);
    if (verdict != IN_THE_WAY || lower) __atomic_store_n(&mine->trying, 0, __ATOMIC_SEQ_CST);
    if (verdict != IN_THE_WAY) return verdict == FITS;
    /* Whoever holds others up for long is dead, or stopped: then its trying counts as claimed. */
    if (!deadline) deadline = clock_now() + PATIENCE_NS;
    if (clock_now() > deadline) {
      __atomic_store_n(&mine->trying, 0, __ATOMIC_SEQ_CST);
      if (!process_reap(true)) return false;
      deadline = 0;
    }
    if (lower)
      nanosleep(&pause, NULL);
    else
      sched_yield();
  }
}

bool claim_try(int card, uint64_t bytes) {
  const struct region *region = region_get();
  int slot = process_slot();
  if (slot < 0) return true;
  while (__atomic_exchange_n(&judging, 1, __ATOMIC_ACQUIRE)) sched_yield();
  bool fits = contest(region, slot, card, bytes);
  __atomic_store_n(&judging, 0, __ATOMIC_RELEASE);
  if (!fits) return false;
  show(region, slot, card, (int64_t)bytes);
  return true;
}

void claim_departs(int card, uint64_t bytes) { __atomic_fetch_add(&under_way[card], bytes, __ATOMIC_SEQ_CST); }

void claim_landed(int card, uint64_t bytes) { subtract(&under_way[card], bytes); }

uint64_t claim_under_way(int card) { return __atomic_load_n(&under_way[card], __ATOMIC_SEQ_CST); }

void claim_add(int card, uint64_t bytes) {
  int slot = process_slot();
  if (slot < 0) return;
  const struct region *region = region_get();
  __atomic_fetch_add(&region->processes[slot].claims[card].claimed, bytes, __ATOMIC_SEQ_CST);
  show(region, slot, card, (int64_t)bytes);
}

void claim_return(int card, uint64_t bytes) {
  int slot = process_slot();
  if (slot < 0) return;
  const struct region *region = region_get();
  show(region, slot, card, -(int64_t)bytes);
  subtract(&region->processes[slot].claims[card].claimed, bytes);
}

void claim_context(int card, uint64_t bytes) {
  int slot = process_slot();
  if (slot < 0) return;
  const struct region *region = region_get();
  struct region_usage *usage = &region->file->slots[slot].used[card];
  uint64_t before = __atomic_exchange_n(&usage->context, bytes, __ATOMIC_RELAXED);
  uint64_t *claimed = &region->processes[slot].claims[card].claimed;
  if (bytes >= before) {
    __atomic_fetch_add(claimed, bytes - before, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&usage->total, bytes - before, __ATOMIC_RELAXED);
  } else {
    subtract(claimed, before - bytes);
    subtract(&usage->total, before - bytes);
  }
}

uint64_t claim_data(int card) {
  int slot = process_slot();
  return slot < 0 ? 0 : __atomic_load_n(&region_get()->file->slots[slot].used[card].data, __ATOMIC_RELAXED);
}

uint64_t claim_used(int card) {
  const struct region *region = region_get();
  return region ? add_up(region, -1, card).claimed : 0;
}

void claim_forget(void) {
  judging = 0;
  memset(under_way, 0, sizeof under_way);
}
