/* What the library adds to one call: in one process, the function that a program gets by dlsym against the driver's own.

     cost SECONDS_PER_MEASURE [--cpu] [MEASURE...]

   --cpu: in processor time, user and system, of the calling thread instead of time. Without names it is every measure.

   The driver's own function is read from the symbol table of libcuda.so.1 in memory, so that no preload can come between.
   Both are called in short batches in the order A B B A B A A B, where A is the driver's, so that drifts and the place in
   the order fall out of each unit of eight. Only the calling thread is pinned, once the driver's threads exist. One line of
   JSON for each measure: median ns of one call by both ways; the medians over all units of the difference and of what is
   added in percent, and the same of the sums, which rare costs enter too, each with its 95 % interval by bootstrap over
   units. Where both pointers are the same the measure shows the method's noise. */
#include "elf_find.h"
#include "gpu.h"

#include <sched.h>
#include <stddef.h>
#include <stdbool.h>

enum { MAX_UNITS = 20000, LIVE = 2000, SIZE = 1 << 20, DRAWS = 1000, DEPTH = 1200, REAL = 0, HOOKED = 1 };

/* Work by a count. The name lets a simulated card take the count for nanoseconds. */
static const char work_kernel[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry work_ns(.param .u64 count)\n{\n"
    ".reg .pred %p;\n.reg .u64 %n;\n.reg .f32 %a, %b, %c;\nld.param.u64 %n, [count];\n"
    "mov.f32 %a, 0f3F800001;\nmov.f32 %b, 0f3F7FFFFF;\nmov.f32 %c, 0f33000000;\n"
    "again:\nfma.rn.f32 %a, %a, %b, %c;\nfma.rn.f32 %a, %a, %b, %c;\nsub.u64 %n, %n, 1;\nsetp.ne.u64 %p, %n, 0;\n@%p bra again;\n"
    "setp.eq.f32 %p, %a, 0f7F7FFFFF;\n@%p trap;\nret;\n}\n";

typedef int launch_function(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static struct calls {
  launch_function *launch;
  int (*allocate)(address_t *, size_t), (*release)(address_t);
  int (*allocate_async)(address_t *, size_t, void *), (*release_async)(address_t, void *);
  int (*info)(size_t *, size_t *), (*total)(size_t *, int);
} calls[2];

static const struct name {
  const char *name;
  size_t place;
} names[] = {
    {"cuLaunchKernel", offsetof(struct calls, launch)},          {"cuMemAlloc_v2", offsetof(struct calls, allocate)},
    {"cuMemFree_v2", offsetof(struct calls, release)},           {"cuMemAllocAsync", offsetof(struct calls, allocate_async)},
    {"cuMemFreeAsync", offsetof(struct calls, release_async)},   {"cuMemGetInfo_v2", offsetof(struct calls, info)},
    {"cuDeviceTotalMem_v2", offsetof(struct calls, total)},
};
enum { NAMES = sizeof names / sizeof names[0] };

static void *empty, *work, *stream;
static uint64_t iterations = 1;
static int (*synchronize)(void);

static void launches(const struct calls *by) { check(by->launch(empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), "cuLaunchKernel"); }

static void busy_launches(const struct calls *by) {
  void *parameters[] = {&iterations};
  check(by->launch(work, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL), "cuLaunchKernel");
}

static void pairs(const struct calls *by) {
  address_t p;
  check(by->allocate(&p, SIZE), "cuMemAlloc");
  check(by->release(p), "cuMemFree");
}

static void async_pairs(const struct calls *by) {
  address_t p;
  check(by->allocate_async(&p, SIZE, stream), "cuMemAllocAsync");
  check(by->release_async(p, stream), "cuMemFreeAsync");
}

static void queries(const struct calls *by) {
  size_t free, total;
  check(by->info(&free, &total), "cuMemGetInfo");
}

static void totals(const struct calls *by) {
  size_t total;
  check(by->total(&total, 0), "cuDeviceTotalMem");
}

static const struct measure {
  const char *name;
  void (*call)(const struct calls *);
  int batch;      /* calls */
  bool wait;      /* for the card after each batch, outside the time */
  int live;       /* allocations that exist meanwhile */
  unsigned uses;  /* which names */
} measures[] = {
    {"launch", launches, 100, true, 0, 1},
    {"launch_20us_queue_full", busy_launches, 50, false, 0, 1},
    {"alloc_pair", pairs, 4, false, 0, 2 | 4},
    {"alloc_pair_2000_live", pairs, 4, false, LIVE, 2 | 4},
    {"async_pair", async_pairs, 50, true, 0, 8 | 16},
    {"memory_info", queries, 20, false, 0, 32},
    {"total_memory", totals, 500, false, 0, 64},
};

static uint64_t processor_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t (*clock_of_calls)(void) = now_ns;

static double batch(const struct measure *measure, int side) {
  uint64_t start = clock_of_calls();
  for (int i = 0; i < measure->batch; i++) measure->call(&calls[side]);
  double each = (double)(clock_of_calls() - start) / measure->batch;
  if (measure->wait) synchronize();
  return each;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static uint64_t draw(uint64_t *state) {
  *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
  return *state;
}

/* The k-th smallest; the values change their order. */
static double smallest(double *values, int count, int k) {
  for (int low = 0, high = count - 1; low < high;) {
    double pivot = values[(low + high) / 2];
    int i = low, j = high;
    while (i <= j) {
      while (values[i] < pivot) i++;
      while (values[j] > pivot) j--;
      if (i > j) break;
      double kept = values[i];
      values[i++] = values[j], values[j--] = kept;
    }
    if (k <= j) high = j;
    else if (k >= i) low = i;
    else break;
  }
  return values[k];
}

/* The value for all units, then the limits of its 95 % interval. */
static void print_interval(const char *name, double value, double *drawn) {
  qsort(drawn, DRAWS, sizeof drawn[0], by_value);
  printf(", \"%s\": [%.3f, %.3f, %.3f]", name, value, drawn[DRAWS / 40], drawn[DRAWS - 1 - DRAWS / 40]);
}

static void print_median(const char *name, const double *values, int count) {
  static double sample[MAX_UNITS], drawn[DRAWS];
  uint64_t state = 88172645463325252u;
  memcpy(sample, values, (size_t)count * sizeof *values);
  double median = smallest(sample, count, count / 2);
  for (int i = 0; i < DRAWS; i++) {
    for (int k = 0; k < count; k++) sample[k] = values[draw(&state) % (uint64_t)count];
    drawn[i] = smallest(sample, count, count / 2);
  }
  print_interval(name, median, drawn);
}

static double percent(double hooked, double real) { return (hooked / real - 1) * 100; }

static void print_ratio_of_sums(const char *name, const double sums[2][MAX_UNITS], int count) {
  static double drawn[DRAWS];
  uint64_t state = 88172645463325252u;
  double all[2] = {0, 0};
  for (int k = 0; k < count; k++) all[REAL] += sums[REAL][k], all[HOOKED] += sums[HOOKED][k];
  for (int i = 0; i < DRAWS; i++) {
    double real = 0, hooked = 0;
    for (int k = 0; k < count; k++) {
      uint64_t unit = draw(&state) % (uint64_t)count;
      real += sums[REAL][unit], hooked += sums[HOOKED][unit];
    }
    drawn[i] = percent(hooked, real);
  }
  print_interval(name, percent(all[HOOKED], all[REAL]), drawn);
}

static bool same_pointers(unsigned uses) {
  bool same = true;
  for (int i = 0; i < NAMES; i++)
    if (uses >> i & 1) same &= memcmp((char *)&calls[REAL] + names[i].place, (char *)&calls[HOOKED] + names[i].place, sizeof(void *)) == 0;
  return same;
}

static void compare(const struct measure *measure, double seconds) {
  static const int order[] = {REAL, HOOKED, HOOKED, REAL, HOOKED, REAL, REAL, HOOKED};
  static double each[2][MAX_UNITS * 4], sums[2][MAX_UNITS], differences[MAX_UNITS], percents[MAX_UNITS];
  static address_t live[LIVE];
  int units = 0;
  for (int i = 0; i < measure->live; i++) check(calls[HOOKED].allocate(&live[i], SIZE), "cuMemAlloc");
  if (measure->call == busy_launches)
    for (int i = 0; i < DEPTH; i++) busy_launches(&calls[REAL]);
  batch(measure, REAL), batch(measure, HOOKED);
  for (uint64_t end = now_ns() + (uint64_t)(seconds * 1e9); now_ns() < end && units < MAX_UNITS; units++) {
    int taken[2] = {4 * units, 4 * units};
    sums[REAL][units] = sums[HOOKED][units] = 0;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
      double ns = batch(measure, order[i]);
      each[order[i]][taken[order[i]]++] = ns;
      sums[order[i]][units] += ns;
    }
    differences[units] = (sums[HOOKED][units] - sums[REAL][units]) / 4;
    percents[units] = percent(sums[HOOKED][units], sums[REAL][units]);
  }
  synchronize();
  for (int i = 0; i < measure->live; i++) check(calls[HOOKED].release(live[i]), "cuMemFree");
  printf("{\"measure\": \"%s\", \"same_pointers\": %s, \"batches\": %d, \"calls_each\": %d, \"real_ns\": %.1f, \"hooked_ns\": %.1f", measure->name,
         same_pointers(measure->uses) ? "true" : "false", 8 * units, measure->batch, smallest(each[REAL], 4 * units, 2 * units),
         smallest(each[HOOKED], 4 * units, 2 * units));
  print_median("difference_ns", differences, units);
  print_median("percent", percents, units);
  print_ratio_of_sums("percent_of_sums", sums, units);
  printf("}\n");
  fflush(stdout);
}

/* How many iterations take 20 us on this card. A simulated card takes the first parameter for nanoseconds. */
static void calibrate(void) {
  uint64_t took[2];
  for (int i = 0; i < 2; i++) {
    iterations = i ? 21000 : 1000;
    busy_launches(&calls[REAL]);
    synchronize();
    uint64_t start = now_ns();
    for (int k = 0; k < 1000; k++) busy_launches(&calls[REAL]);
    synchronize();
    took[i] = (now_ns() - start) / 1000; /* long enough for the clocks to rise */
  }
  iterations = took[1] > took[0] ? 20000 * (uint64_t)20000 / (took[1] - took[0]) : 20000;
}

static bool named(const char *name, int count, char **words) {
  for (int i = 0; i < count; i++)
    if (strcmp(words[i], name) == 0) return true;
  return count == 0;
}

int main(int count, char **words) {
  static const char *const libcuda[] = {"libcuda.so", NULL};
  struct elf_object object;
  void *module;
  uint64_t keep = UINT64_MAX;
  double seconds = count > 1 ? strtod(words[1], NULL) : 0.5;
  int first = 2;
  if (count > 2 && strcmp(words[2], "--cpu") == 0) clock_of_calls = processor_ns, first = 3;
  start_device(0);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(sched_getcpu(), &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
  if (!elf_object_named(libcuda, &object)) return 3;
  for (int i = 0; i < NAMES; i++) {
    *(void **)((char *)&calls[HOOKED] + names[i].place) = driver(names[i].name);
    void *real = elf_symbol(&object, names[i].name);
    if (!real) {
      fprintf(stderr, "%s defines no %s\n", object.name, names[i].name);
      return 3;
    }
    *(void **)((char *)&calls[REAL] + names[i].place) = real;
  }
  check(CU(int, cuModuleLoadData, void **, const void *)(&module, empty_kernel), "cuModuleLoadData");
  check(CU(int, cuModuleGetFunction, void **, void *, const char *)(&empty, module, "empty"), "cuModuleGetFunction");
  check(CU(int, cuModuleLoadData, void **, const void *)(&module, work_kernel), "cuModuleLoadData");
  check(CU(int, cuModuleGetFunction, void **, void *, const char *)(&work, module, "work_ns"), "cuModuleGetFunction");
  check(CU(int, cuStreamCreate, void **, unsigned)(&stream, 1), "cuStreamCreate");
  synchronize = (int (*)(void))driver("cuCtxSynchronize");
  /* Both sides then take from a pool that holds memory already, as a program does that runs for a while. */
  void *pool;
  check(CU(int, cuDeviceGetDefaultMemPool, void **, int)(&pool, 0), "cuDeviceGetDefaultMemPool");
  check(CU(int, cuMemPoolSetAttribute, void *, int, void *)(pool, 4, &keep), "cuMemPoolSetAttribute");
  calibrate();
  for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++)
    if (named(measures[i].name, count > first ? count - first : 0, words + first)) compare(&measures[i], seconds);
  return 0;
}
