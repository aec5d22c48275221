#include "core_queue.h"

#include "core_limiter.h"
#include "core_time.h"
#include "process.h"

static const int64_t seen_within = 20 * MILLISECOND;         /* of a waiter that counts */
static const int64_t burst_pause = 500 * MICROSECOND;        /* in a burst, with nothing under way */
static const int64_t shared_time = 200 * MILLISECOND;        /* after others were seen */
static const int64_t plenty = 8 * MILLISECOND;               /* credit that nobody seems to use */
static const int64_t lag_most = 20 * MILLISECOND;            /* of a process behind the others */
static const int64_t look_again = 250 * MICROSECOND, finish_most = SECOND;
static const uint64_t lead_most = SECOND;
static const uint64_t place_bits = 31;

static uint64_t load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
static void store(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }

static struct core_waiter *own(const struct limiter *limiter) {
  return limiter->waiter ? &limiter->shared->waiters[limiter->waiter - 1] : NULL;
}

static int64_t finish_of(const struct limiter *limiter, int place) {
  uint64_t word = load(&limiter->shared->finish);
  return (int)(word & place_bits) == place + 1 ? (int64_t)(word & ~place_bits) : 0;
}

static bool is_there(const struct limiter *limiter, int place, int64_t now) {
  const struct core_waiter *waiter = &limiter->shared->waiters[place];
  int64_t seen = (int64_t)load(&waiter->seen);
  if (!load(&waiter->owner) || seen > now + SECOND) return false;
  switch (load(&waiter->state)) {
  case CORE_WAITER_WAITS: return now - seen <= seen_within;
  case CORE_WAITER_BURSTS: {
    int64_t finish = finish_of(limiter, place);
    if (finish > seen && finish < now + finish_most) seen = finish;
    return now - seen <= burst_pause;
  }
  default: return false;
  }
}

static void take_place(struct limiter *limiter, int64_t now) {
  struct core_waiter *waiters = limiter->shared->waiters;
  int slot = process_slot();
  uint64_t self = slot < 0 ? 1 : load(&limiter->region->processes[slot].owner);
  if (limiter->waiter && load(&own(limiter)->owner) != self) limiter->waiter = 0;
  for (int i = 0; i < CORE_WAITERS && !limiter->waiter; i++) {
    uint64_t owner = load(&waiters[i].owner);
    bool stale = now - (int64_t)load(&waiters[i].seen) > SECOND;
    if (owner && owner != self && !stale) continue;
    if (owner != self && !__atomic_compare_exchange_n(&waiters[i].owner, &owner, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
    store(&waiters[i].state, CORE_WAITER_AWAY);
    limiter->waiter = i + 1;
  }
}

/* Time not used is not saved up: who comes after a pause stands beside the others, and falls behind by so much only. Nor is
   anybody ahead by more than a long kernel, unless somebody scribbled here. */
static void come(struct limiter *limiter, struct core_waiter *mine, int64_t now) {
  uint64_t least = UINT64_MAX, lag = now - (int64_t)load(&mine->seen) > shared_time ? 0 : (uint64_t)lag_most;
  for (int i = 0; i < CORE_WAITERS; i++)
    if (i != limiter->waiter - 1 && is_there(limiter, i, now) && load(&limiter->shared->waiters[i].served) < least)
      least = load(&limiter->shared->waiters[i].served);
  if (least > INT64_MAX) return;
  if (load(&mine->served) + lag < least) store(&mine->served, least - lag);
  if (load(&mine->served) > least + lead_most) store(&mine->served, least + lead_most);
}

int64_t queue_wait(struct limiter *limiter, int64_t now, int64_t credit) {
  take_place(limiter, now);
  struct core_waiter *mine = own(limiter);
  if (!mine) return now; /* without a place, luck decides */
  int place = limiter->waiter - 1;
  if (load(&mine->state) != CORE_WAITER_WAITS) come(limiter, mine, now);
  store(&mine->seen, (uint64_t)now);
  store(&mine->state, CORE_WAITER_WAITS);
  uint64_t served = load(&mine->served), last = load(&limiter->shared->finish);
  int64_t wake = now, finish = (int64_t)(last & ~place_bits);
  int last_place = (int)(last & place_bits) - 1;
  /* Credit that piles up is for those who did not have the last burst: they may be able to use it. */
  bool piled = credit > plenty && last_place >= 0;
  for (int i = 0; i < CORE_WAITERS; i++) {
    if (i == place || !is_there(limiter, i, now)) continue;
    limiter->shared_until = now + shared_time;
    uint64_t theirs = load(&limiter->shared->waiters[i].served);
    bool before = piled && last_place == place ? true : piled && last_place == i ? false : theirs < served || (theirs == served && i < place);
    if (before || load(&limiter->shared->waiters[i].state) == CORE_WAITER_BURSTS) wake = now + look_again;
  }
  if (last_place >= 0 && last_place != place && finish > wake && finish < now + finish_most) wake = finish;
  return wake;
}

void queue_begin(struct limiter *limiter, int64_t now) {
  struct core_waiter *mine = own(limiter);
  limiter->burst_busy = __atomic_load_n(&limiter->own_busy[0], __ATOMIC_RELAXED);
  if (!mine) return;
  limiter->after_others = queue_shared(limiter, now) && (int)(load(&limiter->shared->finish) & place_bits) != limiter->waiter;
  store(&mine->state, CORE_WAITER_BURSTS);
  store(&mine->seen, (uint64_t)now);
}

static bool anybody_waits(struct limiter *limiter, int64_t now) {
  for (int i = 0; i < CORE_WAITERS; i++)
    if (i != limiter->waiter - 1 && is_there(limiter, i, now)) return true;
  return false;
}

bool queue_goes_on(struct limiter *limiter, int64_t now, int64_t part, int64_t credit) {
  struct core_waiter *mine = own(limiter);
  if (!mine || !queue_shared(limiter, now)) return true;
  if (load(&mine->state) != CORE_WAITER_BURSTS || !is_there(limiter, limiter->waiter - 1, now)) return false;
  int64_t had = (int64_t)(__atomic_load_n(&limiter->own_busy[0], __ATOMIC_RELAXED) - limiter->burst_busy);
  /* One that keeps the card busy may use what has piled up. */
  bool over = had >= part && !(credit > plenty && limiter->horizon > now);
  if (over && anybody_waits(limiter, now)) return false;
  if (over) limiter->burst_busy += (uint64_t)had;
  store(&mine->seen, (uint64_t)now);
  return true;
}

void queue_charge(struct limiter *limiter, int64_t busy) {
  struct core_waiter *mine = own(limiter);
  if (mine) __atomic_fetch_add(&mine->served, (uint64_t)busy, __ATOMIC_RELAXED);
}

void queue_launched(struct limiter *limiter, int64_t now, int64_t finish) {
  if (!limiter->waiter || !queue_shared(limiter, now)) return;
  uint64_t *word = &limiter->shared->finish, known = load(word);
  uint64_t new = ((uint64_t)finish & ~place_bits) | (uint64_t)limiter->waiter;
  while ((known < new || (int64_t)known > now + finish_most) && !__atomic_compare_exchange_n(word, &known, new, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

bool queue_shared(const struct limiter *limiter, int64_t now) { return now < limiter->shared_until; }
