#include "account.h"

#include "card.h"
#include "claim.h"
#include "driver.h"
#include "graph.h"
#include "log.h"
#include "measure.h"
#include "pool.h"
#include "process.h"

#include <time.h>

/* The driver cuts allocations of up to SMALL bytes from blocks that it shares out, larger ones take whole blocks.
   What small ones leave unused in their blocks is found by measurement. */
enum { SMALL = 1 << 20, BLOCK = 2 << 20, SLICE = 512 };

uint64_t account_size(uint64_t bytes) {
  uint64_t unit = bytes > SMALL ? BLOCK : SLICE;
  return bytes > UINT64_MAX - unit ? bytes : (bytes + unit - 1) / unit * unit;
}

void account_refused(int card, uint64_t bytes, const char *call) {
  const struct region *region = region_get();
  struct core_card *record = &region->cards[card];
  uint64_t used = claim_used(card);
  __atomic_fetch_add(&record->refusals, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&record->last_refusal, (uint64_t)time(NULL), __ATOMIC_RELAXED);
  __atomic_store_n(&record->last_refusal_asked, bytes, __ATOMIC_RELAXED);
  __atomic_store_n(&record->last_refusal_used, used, __ATOMIC_RELAXED);
  log_line(LOG_WARNING, LOG_REFUSAL, "card %d: %s needs %llu MiB (%llu bytes), %llu MiB of the limit of %llu MiB are in use: out of memory", card,
           call, (unsigned long long)bytes >> 20, (unsigned long long)bytes, (unsigned long long)used >> 20,
           (unsigned long long)region_memory_limit(region, card) >> 20);
}

bool account_reserve(int card, uint64_t bytes, const char *call) {
  process_reap(false);
  if (claim_try(card, bytes)) return true;
  process_reap(true);
  pool_make_room(card);
  graph_make_room(card);
  measure_now(card);
  if (claim_try(card, bytes)) return true;
  account_refused(card, bytes, call);
  return false;
}

CUresult account_settle(CUresult result, uint64_t claimed, struct ledger_entry entry) {
  claim_landed(entry.card, claimed);
  uint64_t kept = result == CUDA_SUCCESS && ledger_put(entry) ? entry.bytes : 0;
  if (kept > claimed)
    claim_add(entry.card, kept - claimed);
  else
    claim_return(entry.card, claimed - kept);
  measure_if_due(entry.card);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    __atomic_fetch_add(&region_get()->cards[entry.card].card_refusals, 1, __ATOMIC_RELAXED);
    log_line(LOG_WARNING, LOG_CARD, "card %d: the card itself has no %llu MiB left; the limit would have allowed them", entry.card,
             (unsigned long long)entry.bytes >> 20);
  }
  return result;
}

bool account_take(enum ledger_kind kind, uint64_t key, struct ledger_entry *entry) { return ledger_take(kind, key, entry); }

CUresult account_freed(CUresult result, bool known, struct ledger_entry entry) {
  if (!known) return result;
  if (result == CUDA_SUCCESS) {
    claim_return(entry.card, entry.bytes);
    measure_if_due(entry.card);
  } else {
    ledger_put(entry);
  }
  return result;
}

uint64_t account_context(void) {
  CUcontext context = NULL;
  return NEXT(cuCtxGetCurrent)(&context) == CUDA_SUCCESS ? (uint64_t)(uintptr_t)context : 0;
}
