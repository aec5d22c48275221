#include "ledger.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { SHARDS = 64, FIRST_CAPACITY = 128 };

/* Open addressing with linear probing. Held for some instructions, never across a call of the driver. */
static struct shard {
  int locked;
  size_t capacity, count;
  struct ledger_entry *entries; /* uses 0: free */
} shards[SHARDS];

static uint64_t hash_of(enum ledger_kind kind, uint64_t key) {
  uint64_t hash = (key ^ (uint64_t)kind << 56) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}

static struct shard *lock(uint64_t hash) {
  struct shard *shard = &shards[hash >> 58];
  while (__atomic_exchange_n(&shard->locked, 1, __ATOMIC_ACQUIRE)) sched_yield();
  return shard;
}

static void unlock(struct shard *shard) { __atomic_store_n(&shard->locked, 0, __ATOMIC_RELEASE); }

static struct ledger_entry *find(struct shard *shard, uint64_t hash, enum ledger_kind kind, uint64_t key) {
  if (!shard->capacity) return NULL;
  size_t mask = shard->capacity - 1;
  for (size_t i = hash & mask; shard->entries[i].uses; i = (i + 1) & mask)
    if (shard->entries[i].key == key && shard->entries[i].kind == kind) return &shard->entries[i];
  return NULL;
}

static void place(struct shard *shard, const struct ledger_entry *entry) {
  size_t mask = shard->capacity - 1, i = hash_of(entry->kind, entry->key) & mask;
  while (shard->entries[i].uses) i = (i + 1) & mask;
  shard->entries[i] = *entry;
}

static bool make_room(struct shard *shard) {
  if (shard->count < shard->capacity - shard->capacity / 4 && shard->capacity) return true;
  struct shard old = *shard;
  size_t capacity = old.capacity ? old.capacity * 2 : FIRST_CAPACITY;
  void *memory = mmap(NULL, capacity * sizeof(struct ledger_entry), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  shard->entries = memory;
  shard->capacity = capacity;
  for (size_t i = 0; i < old.capacity; i++)
    if (old.entries[i].uses) place(shard, &old.entries[i]);
  if (old.entries) munmap(old.entries, old.capacity * sizeof(struct ledger_entry));
  return true;
}

/* Entries that probed past the freed place move up, so that no search stops short of them. */
static void erase(struct shard *shard, struct ledger_entry *entry) {
  size_t mask = shard->capacity - 1, hole = (size_t)(entry - shard->entries);
  for (size_t i = (hole + 1) & mask; shard->entries[i].uses; i = (i + 1) & mask) {
    size_t home = hash_of(shard->entries[i].kind, shard->entries[i].key) & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    shard->entries[hole] = shard->entries[i];
    hole = i;
  }
  shard->entries[hole].uses = 0;
  __atomic_store_n(&shard->count, shard->count - 1, __ATOMIC_RELAXED);
}

static void insert(struct shard *shard, const struct ledger_entry *entry) {
  place(shard, entry);
  __atomic_store_n(&shard->count, shard->count + 1, __ATOMIC_RELAXED);
}

bool ledger_put(struct ledger_entry entry) {
  uint64_t hash = hash_of(entry.kind, entry.key);
  struct shard *shard = lock(hash);
  if (!entry.uses) entry.uses = 1;
  struct ledger_entry *known = find(shard, hash, entry.kind, entry.key);
  bool stored = true;
  if (known)
    *known = entry;
  else if ((stored = make_room(shard)))
    insert(shard, &entry);
  unlock(shard);
  return stored;
}

bool ledger_take(enum ledger_kind kind, uint64_t key, struct ledger_entry *entry) {
  uint64_t hash = hash_of(kind, key);
  /* Whoever frees something knows that it was allocated, so its entry is seen without the lock. */
  if (!__atomic_load_n(&shards[hash >> 58].count, __ATOMIC_RELAXED)) return false;
  struct shard *shard = lock(hash);
  struct ledger_entry *known = find(shard, hash, kind, key);
  if (known) {
    *entry = *known;
    erase(shard, known);
  }
  unlock(shard);
  return known != NULL;
}

bool ledger_get(enum ledger_kind kind, uint64_t key, struct ledger_entry *entry) {
  uint64_t hash = hash_of(kind, key);
  struct shard *shard = lock(hash);
  struct ledger_entry *known = find(shard, hash, kind, key);
  if (known) *entry = *known;
  unlock(shard);
  return known != NULL;
}

bool ledger_use(enum ledger_kind kind, uint64_t key, int change, struct ledger_entry *entry) {
  uint64_t hash = hash_of(kind, key);
  struct shard *shard = lock(hash);
  struct ledger_entry *known = find(shard, hash, kind, key);
  if (known) {
    *entry = *known;
    entry->uses += (uint32_t)change;
    if (entry->uses)
      known->uses = entry->uses;
    else
      erase(shard, known);
  }
  unlock(shard);
  return known != NULL;
}

void ledger_grow(enum ledger_kind kind, uint64_t key, int card, uint64_t bytes) {
  uint64_t hash = hash_of(kind, key);
  struct shard *shard = lock(hash);
  struct ledger_entry *known = find(shard, hash, kind, key);
  if (known)
    known->bytes += bytes;
  else if (make_room(shard))
    insert(shard, &(struct ledger_entry){.key = key, .bytes = bytes, .kind = (uint8_t)kind, .card = (int8_t)card, .uses = 1});
  unlock(shard);
}

void ledger_drop(uint64_t context, void (*dropped)(const struct ledger_entry *)) {
  for (size_t i = 0; i < SHARDS; i++) {
    struct shard *shard = lock((uint64_t)i << 58);
    for (size_t k = 0; k < shard->capacity;) {
      struct ledger_entry *entry = &shard->entries[k];
      if (!entry->uses || entry->kind > LEDGER_MIPMAP || entry->link != context) {
        k++;
        continue;
      }
      struct ledger_entry gone = *entry;
      erase(shard, entry); /* may move another entry here, so k stays */
      dropped(&gone);
    }
    unlock(shard);
  }
}

void ledger_forget(void) { memset(shards, 0, sizeof shards); }
