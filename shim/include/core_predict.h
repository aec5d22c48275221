/* How long a kernel or graph takes, learned from measurements and kept by what is launched: function and shape, or graph. */
#ifndef VGPU_CORE_PREDICT_H
#define VGPU_CORE_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

enum { PREDICT_ENTRIES = 8192 };

struct prediction {
  uint64_t key;      /* 0 free */
  uint64_t duration; /* ns; 0 unknown */
  uint32_t measured; /* how often */
  int64_t launched;  /* when the first launch of an unknown one was made; 0 none is under way */
};

struct predictions {
  struct prediction entries[PREDICT_ENTRIES];
  struct prediction other; /* shared by all that found no place */
};

/* A key of these numbers, never 0. */
uint64_t predict_key(uint64_t what, uint64_t shape, uint64_t size, uint64_t shared);

struct prediction *predict_find(struct predictions *predictions, uint64_t key);

static inline int64_t predict_duration(const struct prediction *prediction) {
  return (int64_t)__atomic_load_n(&prediction->duration, __ATOMIC_RELAXED);
}

/* Takes in one measurement, ns. weight in percent; a value far from what was known counts at least half. */
void predict_learn(struct prediction *prediction, int64_t measured, unsigned weight);

/* Scales what is known by measured / predicted of a mixture in which it took part. */
void predict_scale(struct prediction *prediction, int64_t measured, int64_t predicted, unsigned weight);

#endif
