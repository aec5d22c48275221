#include "account.h"

#include "card.h"
#include "claim.h"
#include "driver.h"
#include "graph.h"
#include "log.h"
#include "measure.h"
#include "pool.h"
#include "process.h"

#include <sched.h>
#include <string.h>
#include <time.h>

/* The driver cuts allocations of up to SMALL bytes from blocks, larger ones take whole blocks. Blocks that stay although
   all of their pieces would fit into fewer are found by measurement. */
enum { SMALL = 1 << 20, BLOCK = 2 << 20, SLICE = 512 };

static struct {
  int locked; /* held for some instructions and the judgement, never across a call of the driver */
  uint64_t bytes;
} pieces[REGION_CARDS];

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

uint64_t account_blocks(uint64_t bytes) { return (bytes + BLOCK - 1) / BLOCK * BLOCK; }

static bool is_piece(uint64_t bytes, bool cut) { return cut && bytes <= SMALL; }

static void lock(int card) {
  while (__atomic_exchange_n(&pieces[card].locked, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(int card) { __atomic_store_n(&pieces[card].locked, 0, __ATOMIC_RELEASE); }

static bool try_piece(int card, uint64_t bytes) {
  lock(card);
  uint64_t now = pieces[card].bytes, more = account_blocks(now + bytes) - account_blocks(now);
  bool fits = !more || claim_try(card, more);
  if (fits) pieces[card].bytes = now + bytes;
  unlock(card);
  return fits;
}

static void add(int card, uint64_t bytes, bool cut) {
  if (!is_piece(bytes, cut)) {
    claim_add(card, bytes);
    return;
  }
  lock(card);
  uint64_t now = pieces[card].bytes, more = account_blocks(now + bytes) - account_blocks(now);
  pieces[card].bytes = now + bytes;
  if (more) claim_add(card, more);
  unlock(card);
}

static void give(int card, uint64_t bytes, bool cut) {
  if (!is_piece(bytes, cut)) {
    claim_return(card, bytes);
    return;
  }
  lock(card);
  uint64_t now = pieces[card].bytes, left = now > bytes ? now - bytes : 0, less = account_blocks(now) - account_blocks(left);
  pieces[card].bytes = left;
  if (less) claim_return(card, less);
  unlock(card);
}

/* Whichever of several pieces under way begins a block, the driver may take it with another one's call. */
static uint64_t under_way(uint64_t bytes, bool cut) { return is_piece(bytes, cut) ? BLOCK : bytes; }

static bool try(int card, uint64_t bytes, bool cut) {
  claim_departs(card, under_way(bytes, cut));
  if (is_piece(bytes, cut) ? try_piece(card, bytes) : claim_try(card, bytes)) return true;
  claim_landed(card, under_way(bytes, cut));
  return false;
}

bool account_reserve(int card, uint64_t bytes, bool cut, const char *call) {
  process_reap(false);
  if (try(card, bytes, cut)) return true;
  process_reap(true);
  pool_make_room(card);
  graph_make_room(card);
  measure_now(card);
  if (try(card, bytes, cut)) return true;
  account_refused(card, bytes, call);
  return false;
}

CUresult account_settle(CUresult result, uint64_t claimed, struct ledger_entry entry) {
  claim_landed(entry.card, under_way(claimed, entry.cut));
  uint64_t kept = result == CUDA_SUCCESS && ledger_put(entry) ? entry.bytes : 0;
  if (kept != claimed) {
    if (kept) add(entry.card, kept, entry.cut);
    give(entry.card, claimed, entry.cut);
  }
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
    account_return(&entry);
    measure_if_due(entry.card);
  } else {
    ledger_put(entry);
  }
  return result;
}

void account_return(const struct ledger_entry *entry) { give(entry->card, entry->bytes, entry->cut); }

void account_forget(void) { memset(pieces, 0, sizeof pieces); }

uint64_t account_context(void) {
  CUcontext context = NULL;
  return NEXT(cuCtxGetCurrent)(&context) == CUDA_SUCCESS ? (uint64_t)(uintptr_t)context : 0;
}
