#include "view.h"

#include "card.h"
#include "claim.h"
#include "process.h"

bool view_of(int card, struct view *view) {
  const struct region *region = card == CARD_NONE ? 0 : region_get();
  uint64_t limit = region ? region_memory_limit(region, card) : 0;
  if (!limit) return false;
  process_reap(false);
  view->limit = limit;
  view->used = claim_used(card);
  view->free = view->used < limit ? limit - view->used : 0;
  return true;
}
