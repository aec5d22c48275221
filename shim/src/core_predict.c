#include "core_predict.h"

enum { PROBES = 16 };
static const int64_t least = 200; /* ns: no kernel is shorter */

static uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  return x ^ x >> 32;
}

uint64_t predict_key(uint64_t what, uint64_t shape, uint64_t size, uint64_t shared) {
  uint64_t key = mix(what + 0x9e3779b97f4a7c15ull * (shape + 31 * size + 961 * shared));
  return key ? key : 1;
}

struct prediction *predict_find(struct predictions *predictions, uint64_t key) {
  for (unsigned i = 0; i < PROBES; i++) {
    struct prediction *entry = &predictions->entries[(key + i) % PREDICT_ENTRIES];
    uint64_t found = __atomic_load_n(&entry->key, __ATOMIC_RELAXED);
    if (found == key) return entry;
    if (found) continue;
    if (__atomic_compare_exchange_n(&entry->key, &found, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || found == key) return entry;
  }
  return &predictions->other;
}

static void set(struct prediction *prediction, int64_t value) {
  __atomic_store_n(&prediction->duration, (uint64_t)(value > least ? value : least), __ATOMIC_RELAXED);
}

void predict_learn(struct prediction *prediction, int64_t measured, unsigned weight) {
  int64_t known = predict_duration(prediction);
  if (prediction->measured < UINT32_MAX) prediction->measured++;
  if (!known) {
    set(prediction, measured);
    return;
  }
  if (measured > 2 * known || measured < known / 2) weight = weight > 50 ? weight : 50;
  set(prediction, known + (measured - known) * (int64_t)weight / 100);
}

void predict_scale(struct prediction *prediction, int64_t measured, int64_t predicted, unsigned weight) {
  int64_t known = predict_duration(prediction);
  if (!known || predicted <= 0) return;
  double ratio = (double)measured / (double)predicted;
  if (ratio > 4) ratio = 4;
  set(prediction, known + (int64_t)((double)known * (ratio - 1) * weight / 100));
}
