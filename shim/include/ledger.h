/* What this process allocated: by pointer or handle, with its size and the card it lies on. A look-up costs the same
   however many allocations live. */
#ifndef VGPU_LEDGER_H
#define VGPU_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

enum ledger_kind {
  LEDGER_POINTER,
  LEDGER_ARRAY,
  LEDGER_MIPMAP,
  LEDGER_HANDLE,   /* of cuMemCreate: `uses` counts handles and mappings */
  LEDGER_MAPPING,  /* of cuMemMap: `link` is the handle */
  LEDGER_EXTERNAL,
  LEDGER_GRAPH,    /* bytes of a graph's allocation nodes; not claimed until a launch */
  LEDGER_EXEC,
};

struct ledger_entry {
  uint64_t key;
  uint64_t bytes;
  uint64_t link; /* context in which it was allocated, or see the kind; 0 none */
  uint32_t uses;
  uint8_t kind;
  int8_t card;
  bool cut; /* up to 1 MiB it is cut from a block that others share */
  bool managed;
};

/* Records an entry; one of the same kind and key is overwritten. False if there is no memory for it. */
bool ledger_put(struct ledger_entry entry);

/* Takes an entry out; false if there is none. */
bool ledger_take(enum ledger_kind kind, uint64_t key, struct ledger_entry *entry);

/* Copies an entry. */
bool ledger_get(enum ledger_kind kind, uint64_t key, struct ledger_entry *entry);

/* Changes uses; the entry is taken out when they reach 0. True with the entry as it is now (uses 0: taken out). */
bool ledger_use(enum ledger_kind kind, uint64_t key, int change, struct ledger_entry *entry);

/* Adds bytes to an entry, made if need be. */
void ledger_grow(enum ledger_kind kind, uint64_t key, int card, uint64_t bytes);

/* Takes out everything of a kind that was allocated in a context, calling back for each. */
void ledger_drop(uint64_t context, void (*dropped)(const struct ledger_entry *));

/* Empties the ledger without a word to anyone: in a forked child. */
void ledger_forget(void);

#endif
