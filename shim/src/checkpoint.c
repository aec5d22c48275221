/* A checkpointed process is frozen and holds no device memory; whoever checkpoints it may be another process. */
#include "account.h"
#include "claim.h"
#include "driver.h"
#include "process.h"
#include "settings.h"

static struct core_process *record_of(const struct region *region, int pid) {
  int slot = region ? process_slot_of(region, pid) : -1;
  return slot < 0 ? NULL : &region->processes[slot];
}

static void park(struct core_process *process) {
  for (int card = 0; card < REGION_CARDS; card++) {
    uint64_t bytes = __atomic_exchange_n(&process->claims[card].claimed, 0, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&process->parked[card], bytes, __ATOMIC_SEQ_CST);
  }
}

/* Puts the claims back first, so that nobody else can take the room meanwhile. The card that is too full, or -1. */
static int unpark(const struct region *region, struct core_process *process) {
  int full = -1;
  for (int card = 0; card < REGION_CARDS; card++) {
    uint64_t bytes = __atomic_exchange_n(&process->parked[card], 0, __ATOMIC_SEQ_CST), limit = region_memory_limit(region, card);
    __atomic_fetch_add(&process->claims[card].claimed, bytes, __ATOMIC_SEQ_CST);
    if (bytes && limit && claim_used(card) > limit) full = card;
  }
  return full;
}

CUresult cuCheckpointProcessCheckpoint(int pid, void *arguments) {
  CUresult result = NEXT(cuCheckpointProcessCheckpoint)(pid, arguments);
  struct core_process *process = result == CUDA_SUCCESS && settings_get()->active ? record_of(region_get(), pid) : NULL;
  if (process) park(process);
  return result;
}

CUresult cuCheckpointProcessRestore(int pid, void *arguments) {
  const struct region *region = settings_get()->active ? region_get() : NULL;
  struct core_process *process = record_of(region, pid);
  if (!process) return NEXT(cuCheckpointProcessRestore)(pid, arguments);
  process_reap(true);
  int full = unpark(region, process);
  if (full >= 0) {
    park(process);
    account_refused(full, process->parked[full], "cuCheckpointProcessRestore");
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CUresult result = NEXT(cuCheckpointProcessRestore)(pid, arguments);
  if (result != CUDA_SUCCESS) park(process);
  return result;
}
