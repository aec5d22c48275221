/* Charging for an allocation: reserve, call the driver, then keep or give back. */
#ifndef VGPU_ACCOUNT_H
#define VGPU_ACCOUNT_H

#include "cuda_abi.h"
#include "ledger.h"

#include <stdbool.h>

/* What the driver takes for an allocation of that many bytes. */
uint64_t account_size(uint64_t bytes);

/* Whole blocks of the card that bytes fill. */
uint64_t account_blocks(uint64_t bytes);

/* Claims bytes on a card. Those that are cut from shared blocks claim a block when they begin one. Before a refusal makes room
   where this process holds memory that it does not use; then counts and logs the refusal and returns false; the caller
   returns CUDA_ERROR_OUT_OF_MEMORY. */
bool account_reserve(int card, uint64_t bytes, bool cut, const char *call);

/* Counts a refusal by the limit. */
void account_refused(int card, uint64_t bytes, const char *call);

/* After the driver's answer: records the entry, whose size may turn out other than what was claimed, or gives the claim
   back. Returns the answer. */
CUresult account_settle(CUresult result, uint64_t claimed, struct ledger_entry entry);

/* Before and after a free: the entry is taken out first, since another thread may get the same address at once. */
bool account_take(enum ledger_kind kind, uint64_t key, struct ledger_entry *entry);
CUresult account_freed(CUresult result, bool known, struct ledger_entry entry);

/* Gives back the claim of an entry that is gone from the ledger. */
void account_return(const struct ledger_entry *entry);

/* In a forked child: it has none of the parent's memory. */
void account_forget(void);

/* The current context as a number, 0 if there is none. */
uint64_t account_context(void);

#endif
