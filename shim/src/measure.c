#include "measure.h"

#include "card.h"
#include "claim.h"
#include "driver.h"
#include "log.h"
#include "process.h"

#include <time.h>
#include <unistd.h>

enum { MAX_PROCESSES = 512 };
#define UNSURE UINT64_MAX
static const int64_t regular_interval = 1000000000, soon_interval = 50000000; /* ns */
static const int64_t most_share = 4; /* measuring never takes more than a fifth of the time */
static const uint64_t least_change = 16 << 20;

static struct state {
  nvmlDevice_t handle;
  bool failed;   /* no NVML, or it does not list this process */
  bool measured;
  int busy, soon;
  int64_t last, cost; /* ns */
  uint64_t data_then; /* claims at the last measurement, UNSURE if some were under way */
} states[REGION_CARDS];
static int imports, managed;

static int64_t clock_now(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool find_handle(struct state *state, int card) {
  if (state->handle) return true;
  char uuid[NVML_UUID_SIZE];
  region_uuid(region_get(), card, uuid);
  if (!driver_load_nvml() || NEXT(nvmlInit_v2)() != NVML_SUCCESS) return false;
  return NEXT(nvmlDeviceGetHandleByUUID)(uuid, &state->handle) == NVML_SUCCESS && state->handle;
}

/* NVML gives process ids as this process's PID namespace has them. Releases before R470 know only the first form. */
static bool own_memory(nvmlDevice_t device, uint64_t *bytes) {
  union {
    struct nvml_process now[MAX_PROCESSES];
    struct nvml_process_v1 old[MAX_PROCESSES];
  } list;
  unsigned count = MAX_PROCESSES;
  uint32_t pid = (uint32_t)getpid();
  bool old = !HAVE(nvmlDeviceGetComputeRunningProcesses_v3) && !HAVE(nvmlDeviceGetComputeRunningProcesses_v2);
  nvmlReturn_t result = HAVE(nvmlDeviceGetComputeRunningProcesses_v3) ? NEXT(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, list.now)
                        : !old                                        ? NEXT(nvmlDeviceGetComputeRunningProcesses_v2)(device, &count, list.now)
                                                                      : NEXT(nvmlDeviceGetComputeRunningProcesses)(device, &count, list.old);
  if (result != NVML_SUCCESS) return false;
  *bytes = 0;
  for (unsigned i = 0; i < count && i < MAX_PROCESSES; i++) {
    uint64_t used = old ? list.old[i].used : list.now[i].used;
    if ((old ? list.old[i].pid : list.now[i].pid) != pid) continue;
    if (used == NVML_VALUE_NOT_AVAILABLE) return false;
    *bytes += used;
  }
  return true;
}

static uint64_t least_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void measure(struct state *state, int card) {
  int64_t start = clock_now(CLOCK_MONOTONIC);
  uint64_t bytes = 0, before = claim_data(card), under_way = claim_under_way(card);
  driver_inside++;
  bool known = find_handle(state, card) && own_memory(state->handle, &bytes);
  driver_inside--;
  uint64_t after = claim_data(card);
  under_way += claim_under_way(card) + (after > before ? after - before : before - after);
  int64_t end = clock_now(CLOCK_MONOTONIC);
  __atomic_store_n(&state->last, end, __ATOMIC_RELAXED);
  __atomic_store_n(&state->cost, end - start, __ATOMIC_RELAXED);
  __atomic_store_n(&state->data_then, under_way ? UNSURE : after, __ATOMIC_RELAXED);
  __atomic_store_n(&state->soon, 0, __ATOMIC_RELAXED);
  if (!known) {
    if (!state->failed) log_line(LOG_WARNING, LOG_CARD, "card %d: NVML gives no memory figure for this process; contexts and modules are not charged", card);
    if (!state->failed) region_count_fault();
    state->failed = true;
    return;
  }
  state->failed = false;
  const struct region *region = region_get();
  int slot = process_slot();
  if (slot < 0) return;
  struct region_slot *shown = &region->file->slots[slot];
  __atomic_store_n(&shown->monitor_used[card], bytes, __ATOMIC_RELAXED);
  /* Of what is under way the driver may have counted all or nothing; the figure in force stays if it lies between. */
  uint64_t most = bytes > after - least_of(under_way, after) ? bytes - (after - least_of(under_way, after)) : 0;
  uint64_t least = bytes > after ? bytes - after : 0, now = __atomic_load_n(&shown->used[card].context, __ATOMIC_RELAXED);
  uint64_t context = now < least ? least : now > most ? most : now;
  bool measured = state->measured;
  state->measured = bytes != 0;
  if (context == now || (measured && __atomic_load_n(context > now ? &imports : &managed, __ATOMIC_RELAXED) > 0)) return;
  claim_context(card, context);
}

static void guarded(int card) {
  struct state *state = &states[card];
  if (__atomic_exchange_n(&state->busy, 1, __ATOMIC_ACQUIRE)) return;
  measure(state, card);
  __atomic_store_n(&state->busy, 0, __ATOMIC_RELEASE);
}

void measure_now(int card) {
  struct state *state = &states[card];
  int64_t since = clock_now(CLOCK_MONOTONIC) - __atomic_load_n(&state->last, __ATOMIC_RELAXED);
  if (since >= most_share * __atomic_load_n(&state->cost, __ATOMIC_RELAXED)) guarded(card);
}

void measure_again(int card) { guarded(card); }

void measure_if_due(int card) {
  struct state *state = &states[card];
  int64_t since = clock_now(CLOCK_MONOTONIC_COARSE) - __atomic_load_n(&state->last, __ATOMIC_RELAXED);
  bool due = since > regular_interval || (since > soon_interval && __atomic_load_n(&state->soon, __ATOMIC_RELAXED));
  if (!due) {
    uint64_t data = claim_data(card), then = __atomic_load_n(&state->data_then, __ATOMIC_RELAXED);
    if (data < then) {
      due = then - data >= least_change && since > soon_interval;
    } else if (data - then >= least_change) {
      const struct region *region = region_get();
      uint64_t limit = region_memory_limit(region, card), used = claim_used(card);
      due = limit && data - then > (limit > used ? (limit - used) / 4 : 0);
    }
  }
  if (due) guarded(card);
}

void measure_for_query(int card) {
  if (claim_data(card) != __atomic_load_n(&states[card].data_then, __ATOMIC_RELAXED)) measure_now(card);
}

void measure_soon(int card) {
  for (int i = 0; i < REGION_CARDS; i++)
    if (card < 0 || card == i) __atomic_store_n(&states[i].soon, 1, __ATOMIC_RELAXED);
}

void measure_imports(int change) { __atomic_fetch_add(&imports, change, __ATOMIC_RELAXED); }

void measure_managed(int change) { __atomic_fetch_add(&managed, change, __ATOMIC_RELAXED); }
