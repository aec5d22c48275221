/* What one call costs: ns per call, the median over batches, one JSON object on standard output.
     overhead SECONDS_PER_MEASURE [launch] */
#include "gpu.h"

enum { MAX_BATCHES = 100000, LIVE = 2000, SIZE = 1 << 20 };

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
static int (*synchronize)(void), (*allocate)(address_t *, size_t), (*release)(address_t);
static int (*allocate_async)(address_t *, size_t, void *), (*release_async)(address_t, void *), (*info)(size_t *, size_t *);
static int (*total_memory)(size_t *, int);
static void *function, *stream;

static void launches(int calls) {
  for (int i = 0; i < calls; i++) launch(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

static void pairs(int calls) {
  address_t p;
  for (int i = 0; i < calls; i++) {
    check(allocate(&p, SIZE), "cuMemAlloc");
    check(release(p), "cuMemFree");
  }
}

static void async_pairs(int calls) {
  address_t p;
  for (int i = 0; i < calls; i++) {
    check(allocate_async(&p, SIZE, stream), "cuMemAllocAsync");
    check(release_async(p, stream), "cuMemFreeAsync");
  }
}

static void queries(int calls) {
  size_t free, total;
  for (int i = 0; i < calls; i++) check(info(&free, &total), "cuMemGetInfo");
}

static void totals(int calls) {
  size_t total;
  for (int i = 0; i < calls; i++) check(total_memory(&total, 0), "cuDeviceTotalMem");
}

static double measure(void (*work)(int), int calls, double seconds) {
  static double batches[MAX_BATCHES];
  int count = 0;
  work(calls);
  synchronize();
  for (uint64_t end = now_ns() + (uint64_t)(seconds * 1e9); now_ns() < end && count < MAX_BATCHES;) {
    uint64_t start = now_ns();
    work(calls);
    batches[count++] = (double)(now_ns() - start) / calls;
    synchronize();
  }
  qsort(batches, (size_t)count, sizeof batches[0], by_value);
  return batches[count / 2];
}

int main(int count, char **words) {
  double seconds = count > 1 ? strtod(words[1], NULL) : 0.5;
  static address_t live[LIVE];
  void *module, *pool;
  uint64_t keep = UINT64_MAX;
  start_device(0);
  check(CU(int, cuModuleLoadData, void **, const void *)(&module, empty_kernel), "cuModuleLoadData");
  check(CU(int, cuModuleGetFunction, void **, void *, const char *)(&function, module, "empty"), "cuModuleGetFunction");
  check(CU(int, cuStreamCreate, void **, unsigned)(&stream, 1), "cuStreamCreate");
  check(CU(int, cuDeviceGetDefaultMemPool, void **, int)(&pool, 0), "cuDeviceGetDefaultMemPool");
  check(CU(int, cuMemPoolSetAttribute, void *, int, void *)(pool, 4, &keep), "cuMemPoolSetAttribute");
  launch = (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))driver("cuLaunchKernel");
  synchronize = (int (*)(void))driver("cuCtxSynchronize");
  allocate = (int (*)(address_t *, size_t))driver("cuMemAlloc_v2");
  release = (int (*)(address_t))driver("cuMemFree_v2");
  allocate_async = (int (*)(address_t *, size_t, void *))driver("cuMemAllocAsync");
  release_async = (int (*)(address_t, void *))driver("cuMemFreeAsync");
  info = (int (*)(size_t *, size_t *))driver("cuMemGetInfo_v2");
  total_memory = (int (*)(size_t *, int))driver("cuDeviceTotalMem_v2");
  printf("{\"launch\": %.2f", measure(launches, 500, seconds));
  if (count > 2) { /* launches only */
    printf("}\n");
    return 0;
  }
  printf(", \"alloc_pair\": %.2f", measure(pairs, 20, seconds));
  for (int i = 0; i < LIVE; i++) check(allocate(&live[i], SIZE), "cuMemAlloc");
  printf(", \"alloc_pair_2000_live\": %.2f", measure(pairs, 20, seconds));
  for (int i = 0; i < LIVE; i++) check(release(live[i]), "cuMemFree");
  printf(", \"async_pair\": %.2f", measure(async_pairs, 100, seconds));
  printf(", \"memory_info\": %.2f", measure(queries, 20, seconds / 2));
  printf(", \"total_memory\": %.2f}\n", measure(totals, 100, seconds / 2));
  return 0;
}
