/* Fills a card through one allocation call, in steps of one size, until it is refused; prints one JSON object.
     exact API STEP [together]      API: alloc managed pitch array vmm async
   together: says "ready" with its context made, and "full" when refused, and goes on when it reads a line. */
#include "gpu.h"

struct properties {
  int type, handles, location, id;
  void *metadata;
  char flags[8];
};

static int (*memory_info)(size_t *, size_t *);
static size_t step;

static int by_alloc(address_t *p) { return CU(int, cuMemAlloc_v2, address_t *, size_t)(p, step); }
static int by_managed(address_t *p) { return CU(int, cuMemAllocManaged, address_t *, size_t, unsigned)(p, step, 1); }
static int by_async(address_t *p) { return CU(int, cuMemAllocAsync, address_t *, size_t, void *)(p, step, NULL); }

static int by_pitch(address_t *p) {
  size_t pitch;
  return CU(int, cuMemAllocPitch_v2, address_t *, size_t *, size_t, size_t, unsigned)(p, &pitch, 1024, step / 1024, 4);
}

static int by_array(address_t *p) {
  struct {
    size_t width, height;
    int format;
    unsigned channels;
  } shape = {1024, step / 4096, 0x20, 1};
  return CU(int, cuArrayCreate_v2, void **, void *)((void **)p, &shape);
}

static int by_vmm(address_t *p) {
  struct properties properties = {1, 0, 1, 0, NULL, {0}};
  size_t unit = 2 << 20, size = (step + unit - 1) / unit * unit;
  return CU(int, cuMemCreate, address_t *, size_t, void *, unsigned long long)(p, size, &properties, 0);
}

static int free_linear(address_t p) { return CU(int, cuMemFree_v2, address_t)(p); }
static int free_async(address_t p) { return CU(int, cuMemFreeAsync, address_t, void *)(p, NULL); }
static int free_array(address_t p) { return CU(int, cuArrayDestroy, void *)((void *)(uintptr_t)p); }
static int free_vmm(address_t p) { return CU(int, cuMemRelease, address_t)(p); }

static const struct api {
  const char *name;
  int (*take)(address_t *);
  int (*give)(address_t);
} apis[] = {
    {"alloc", by_alloc, free_linear}, {"managed", by_managed, free_linear}, {"pitch", by_pitch, free_linear},
    {"array", by_array, free_array},  {"vmm", by_vmm, free_vmm},            {"async", by_async, free_async},
};

static uint64_t nvml_own(uint64_t *total, uint64_t *used) {
  struct {
    uint32_t pid;
    uint64_t used;
    uint32_t instances[2];
  } list[256];
  void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device = NULL;
  uint64_t memory[3] = {0}, own = 0;
  unsigned count = 256;
  if (!nvml) return 0;
  ((int (*)(void))dlsym(nvml, "nvmlInit_v2"))();
  ((int (*)(unsigned, void **))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"))(0, &device);
  ((int (*)(void *, uint64_t *))dlsym(nvml, "nvmlDeviceGetMemoryInfo"))(device, memory);
  int (*processes)(void *, unsigned *, void *) = (int (*)(void *, unsigned *, void *))dlsym(nvml, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (processes && processes(device, &count, list) == 0)
    for (unsigned i = 0; i < count; i++)
      if (list[i].pid == (uint32_t)getpid()) own += list[i].used;
  *total = memory[0];
  *used = memory[2];
  return own;
}

/* Where all processes of a group must have come before any goes on. */
static void meet(const char *where) {
  printf("%s\n", where);
  fflush(stdout);
  for (int c = 0; c != '\n' && c != EOF;) c = getchar();
}

int main(int count, char **words) {
  const struct api *api = NULL;
  int together = count == 4 && strcmp(words[3], "together") == 0;
  for (size_t i = 0; (count == 3 || together) && i < sizeof apis / sizeof apis[0]; i++)
    if (strcmp(apis[i].name, words[1]) == 0) api = &apis[i];
  step = api ? strtoull(words[2], NULL, 10) : 0;
  if (!api || !step) {
    fprintf(stderr, "usage: exact alloc|managed|pitch|array|vmm|async STEP [together]\n");
    return 2;
  }
  start_device(0);
  if (together) meet("ready");
  memory_info = CU(int, cuMemGetInfo_v2, size_t *, size_t *);
  size_t free_before, free_full, free_after, total, device_total;
  uint64_t nvml_total = 0, nvml_used = 0, own_before, own_full;
  check(memory_info(&free_before, &total), "cuMemGetInfo");
  check(CU(int, cuDeviceTotalMem_v2, size_t *, int)(&device_total, 0), "cuDeviceTotalMem");
  own_before = nvml_own(&nvml_total, &nvml_used);
  size_t room = 1 << 20, taken = 0;
  address_t *held = malloc(room * sizeof *held);
  int refused = 0;
  uint64_t start = now_ns();
  while (taken < room && !(refused = api->take(&held[taken]))) taken++;
  uint64_t filled = now_ns();
  if (together) meet("full");
  check(memory_info(&free_full, &total), "cuMemGetInfo");
  own_full = nvml_own(&nvml_total, &nvml_used);
  if (together) meet("seen");
  for (size_t i = 0; i < taken; i++) check(api->give(held[i]), "free");
  check(CU(int, cuCtxSynchronize, void)(), "cuCtxSynchronize");
  check(memory_info(&free_after, &total), "cuMemGetInfo");
  printf("{\"api\": \"%s\", \"step\": %zu, \"total\": %zu, \"device_total\": %zu, \"nvml_total\": %llu, \"nvml_used_full\": %llu, "
         "\"own_before\": %llu, \"own_full\": %llu, \"free_before\": %zu, \"free_full\": %zu, \"free_after\": %zu, \"taken\": %zu, "
         "\"refused_with\": %d, \"ns_each\": %llu}\n",
         api->name, step, total, device_total, (unsigned long long)nvml_total, (unsigned long long)nvml_used, (unsigned long long)own_before,
         (unsigned long long)own_full, free_before, free_full, free_after, taken, refused,
         (unsigned long long)(taken ? (filled - start) / taken : 0));
  return 0;
}
