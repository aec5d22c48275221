/* What the card really gives for an allocation of a size: NVML's figure for this process before and after N of them.
   Run without the library. Prints one JSON object. */
#include "gpu.h"

static uint64_t own_memory(void) {
  static int (*processes)(void *, unsigned *, void *);
  static void *device;
  struct {
    uint32_t pid;
    uint64_t used;
    uint32_t instances[2];
  } list[256];
  unsigned count = 256;
  uint64_t own = 0;
  if (!processes) {
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!nvml) exit(3);
    ((int (*)(void))dlsym(nvml, "nvmlInit_v2"))();
    ((int (*)(unsigned, void **))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"))(0, &device);
    processes = (int (*)(void *, unsigned *, void *))dlsym(nvml, "nvmlDeviceGetComputeRunningProcesses_v3");
  }
  if (processes(device, &count, list) == 0)
    for (unsigned i = 0; i < count; i++)
      if (list[i].pid == (uint32_t)getpid()) own += list[i].used;
  return own;
}

int main(void) {
  static const size_t sizes[] = {512,           4096,          65536,         262144,        524288,        524289,        700000,
                                 (1 << 20) - 1, 1 << 20,       (1 << 20) + 1, 1200000,       3 << 19,       1800000,       (2 << 20) - 1,
                                 2 << 20,       (2 << 20) + 1, 5 << 19,       3 << 20,       (4 << 20) + 1, 33 << 19,      64 << 20};
  enum { N = 64 };
  address_t held[N];
  start_device(0);
  uint64_t start = now_ns(), idle = own_memory(), query = now_ns() - start;
  printf("{\"context\": %llu, \"query_ns\": %llu, \"alloc\": [", (unsigned long long)idle, (unsigned long long)query);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    uint64_t before = own_memory();
    for (int k = 0; k < N; k++) check(CU(int, cuMemAlloc_v2, address_t *, size_t)(&held[k], sizes[i]), "cuMemAlloc");
    uint64_t full = own_memory();
    for (int k = 0; k < N; k++) check(CU(int, cuMemFree_v2, address_t)(held[k]), "cuMemFree");
    printf("%s[%zu, %.1f, %lld]", i ? ", " : "", sizes[i], (double)(full - before) / N, (long long)(own_memory() - before));
  }
  printf("], \"array_1mib\": ");
  struct {
    size_t width, height;
    int format;
    unsigned channels;
  } shape = {1024, 256, 0x20, 1};
  uint64_t before = own_memory();
  for (int k = 0; k < N; k++) check(CU(int, cuArrayCreate_v2, void **, void *)((void **)&held[k], &shape), "cuArrayCreate");
  printf("%.1f, \"async_pool\": [", (double)(own_memory() - before) / N);
  void *pool;
  check(CU(int, cuDeviceGetDefaultMemPool, void **, int)(&pool, 0), "cuDeviceGetDefaultMemPool");
  for (int k = 0; k < 4; k++) {
    static const size_t requests[] = {1, 1 << 20, 40 << 20, 100 << 20};
    uint64_t reserved = 0;
    check(CU(int, cuMemAllocAsync, address_t *, size_t, void *)(&held[k], requests[k], NULL), "cuMemAllocAsync");
    check(CU(int, cuMemPoolGetAttribute, void *, int, void *)(pool, 5, &reserved), "cuMemPoolGetAttribute");
    printf("%s[%zu, %llu]", k ? ", " : "", requests[k], (unsigned long long)reserved);
  }
  uint64_t value;
  int (*attribute)(void *, int, void *) = (int (*)(void *, int, void *))driver("cuMemPoolGetAttribute");
  start = now_ns();
  for (int k = 0; k < 10000; k++) attribute(pool, 5, &value);
  printf("], \"pool_attribute_ns\": %.1f", (double)(now_ns() - start) / 10000);
  int device;
  int (*current)(int *) = (int (*)(int *))driver("cuCtxGetDevice");
  start = now_ns();
  for (int k = 0; k < 10000; k++) current(&device);
  printf(", \"ctx_get_device_ns\": %.1f", (double)(now_ns() - start) / 10000);
  int capturing;
  int (*asked)(void *, int *) = (int (*)(void *, int *))driver("cuStreamIsCapturing");
  start = now_ns();
  for (int k = 0; k < 10000; k++) asked(NULL, &capturing);
  printf(", \"is_capturing_ns\": %.1f}\n", (double)(now_ns() - start) / 10000);
  return 0;
}
