#include "task.h"

#include "card.h"
#include "driver.h"
#include "settings.h"

static uint32_t source_of(const struct core_card *card) { return __atomic_load_n(&card->tasks_source, __ATOMIC_RELAXED); }

void task_graphs(struct core_card *card, uint64_t count) {
  if (source_of(card) == CORE_TASKS_CALLS) return;
  __atomic_store_n(&card->tasks_source, CORE_TASKS_GRAPHS, __ATOMIC_RELAXED);
  __atomic_fetch_add(&card->tasks_completed, count, __ATOMIC_RELAXED);
}

/* For programs: one more task is done, on the current context's card, or on the container's only one. What was counted of
   graphs goes with the first call. */
EXPORT void vgpu_task_done(void) {
  const struct region *region = settings_get()->active ? region_get() : NULL;
  if (!region) return;
  int number = card_current();
  if (number == CARD_NONE && region_cards(region) == 1) number = 0;
  if (number == CARD_NONE) return;
  struct core_card *card = &region->cards[number];
  if (__atomic_exchange_n(&card->tasks_source, CORE_TASKS_CALLS, __ATOMIC_RELAXED) != CORE_TASKS_CALLS)
    __atomic_store_n(&card->tasks_completed, 0, __ATOMIC_RELAXED);
  __atomic_fetch_add(&card->tasks_completed, 1, __ATOMIC_RELAXED);
}
