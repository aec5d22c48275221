/* The share of a card that a program gets, by kernels of fixed work that stamp their own start and end. On a
   simulated card the number of iterations is the kernel's time in ns.

     share [--iterations N --period NS] [--at NS] CELL...
     share [--fill MIB] --follow

   CELL is kind,microseconds,limit,seconds. kind: dense, sync (a wait after each kernel), host:US (host work after each
   launch), streams:N[:BLOCKS], graph:NODES, coop, pdl, mix (one kernel fifteen times as long and fifteen shorter ones, each
   of another size; those of the first round take longer, as with cold caches), light (one kernel every 10 ms, waited for), job:BUSY_MS:IDLE_MS (a
   fixed number of rounds, so many as fit into the time without a limit).
   The limit is written into the region that CUDA_DEVICE_MEMORY_SHARED_CACHE names, so solo rates (limit 100) come from the
   same process and stream: before and after each cell of kernels up to 20 us, else once for each kernel. With --iterations
   and --period they are given, and the limit is left alone. --at: begin at that time of CLOCK_MONOTONIC.

   --follow: does what it reads, a line at a time, and answers each with a line of JSON, so that several can be led together:
     calibrate CELL          the iterations of a kernel of that length
     solo CELL N             period and busy share of it at limit 100
     run CELL N AT           the cell; at once if AT is 0
     windows FROM NS COUNT   the busy share of windows of the last run, FROM in CLOCK_MONOTONIC
   --fill: takes so much memory first, or as much as it gets.

   One line of JSON for each cell: share is of the kernels that the program finishes without a limit, time of the time that
   it keeps the card busy then, cpu the processor time of the process over wall time while it launches. */
#include "gpu.h"

#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_STAMPS = 1 << 21, MAX_STREAMS = 16, THREADS = 128, MAX_WINDOWS = 1024, LIMITS_OFFSET = 1728, MAX_LATENCIES = 8192 };
static const uint64_t window = 100000000, warm_up = 500000000; /* ns */

static const char kernel_text[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry work_log_ns(.param .u64 count, .param .u64 stamps, .param .u64 ended)\n{\n"
    ".reg .pred %p, %q;\n.reg .u64 %n, %start, %end, %at, %slot;\n.reg .u32 %x, %y;\n.reg .f32 %a, %b, %c;\n"
    "mov.u64 %start, %globaltimer;\nld.param.u64 %n, [count];\nld.param.u64 %at, [stamps];\ncvta.to.global.u64 %at, %at;\n"
    "mov.f32 %a, 0f3F800001;\nmov.f32 %b, 0f3F7FFFFF;\nmov.f32 %c, 0f33000000;\n"
    "again:\nfma.rn.f32 %a, %a, %b, %c;\nfma.rn.f32 %a, %a, %b, %c;\nfma.rn.f32 %a, %a, %b, %c;\nfma.rn.f32 %a, %a, %b, %c;\n"
    "sub.u64 %n, %n, 1;\nsetp.ne.u64 %p, %n, 0;\n@%p bra again;\n"
    "setp.eq.f32 %q, %a, 0f7F7FFFFF;\n@%q st.global.f32 [%at], %a;\n"
    "mov.u32 %x, %tid.x;\nsetp.ne.u32 %p, %x, 0;\n@%p bra done;\n"
    "ld.param.u64 %slot, [ended];\ncvta.to.global.u64 %slot, %slot;\nmov.u32 %x, %nctaid.x;\nsub.u32 %x, %x, 1;\n"
    "atom.global.inc.u32 %y, [%slot], %x;\nsetp.ne.u32 %p, %x, %y;\n@%p bra done;\n" /* the last block stamps */
    "mov.u64 %end, %globaltimer;\natom.global.add.u64 %slot, [%at], 1;\nsetp.ge.u64 %q, %slot, 2097151;\n@%q bra done;\n"
    "shl.b64 %slot, %slot, 4;\nadd.u64 %at, %at, %slot;\nst.global.u64 [%at+16], %start;\nst.global.u64 [%at+24], %end;\n"
    "done:\nret;\n}\n";

struct cell {
  char kind[32];
  double microseconds, seconds;
  unsigned limit, blocks;
  int streams, nodes, host_us, busy_ms, idle_ms;
};

struct stamp {
  uint64_t start, end;
};

struct figures {
  uint64_t kernels, span;   /* kernels in span ns */
  uint64_t busy;            /* of it, ns with a kernel running; 0 unknown */
  double cv;                /* of the kernels' time in windows of 100 ms; -1 unknown */
  double cpu;
  uint64_t began, ended;    /* CLOCK_MONOTONIC, first launch and end of the last kernel */
};

static void *function, *streams[MAX_STREAMS];
static address_t stamps, ended; /* ended: by stream, blocks of its kernel that are done */
static struct stamp *copied;
static uint64_t copied_count;
static int64_t clock_lead; /* of the card's clock before CLOCK_MONOTONIC, ns */
static uint64_t given_iterations, start_at, last_busy;
static double given_period;
static volatile uint64_t *limits;
static bool simulated;
static double latencies[MAX_LATENCIES];
static int latency_count;

static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
static int (*launch_cooperative)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **);
static int (*launch_ex)(const void *, void *, void **, void **);
static int (*launch_graph)(void *, void *);
static int (*synchronize)(void), (*stream_synchronize)(void *), (*record)(void *, void *), (*query)(void *);

/* Keeps the queue of launches short enough for long kernels: some 50 ms of work, three launches at least. */
enum { MAX_FLIGHT = 1000, NOT_READY = 600 };
static void *flight[MAX_FLIGHT];

static void bound_flight(uint64_t number, void *stream, double launch_us) {
  if (launch_us < 60) return;
  uint64_t depth = (uint64_t)(50000 / launch_us) < 3 ? 3 : (uint64_t)(50000 / launch_us);
  useconds_t pause = launch_us > 4000 ? 1000 : (useconds_t)(launch_us / 4);
  void **slot = &flight[number % depth];
  if (!*slot) check(CU(int, cuEventCreate, void **, unsigned)(slot, 2), "cuEventCreate");
  while (number >= depth && query(*slot) == NOT_READY) usleep(pause);
  check(record(*slot, stream), "cuEventRecord");
}

static void open_limits(void) {
  const char *path = getenv("CUDA_DEVICE_MEMORY_SHARED_CACHE");
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  char *region = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (region != MAP_FAILED) limits = (volatile uint64_t *)(region + LIMITS_OFFSET);
  close(fd);
}

static void set_limit(unsigned percent) {
  if (limits && !given_iterations) limits[0] = percent;
}

static void put(int stream, uint64_t iterations, unsigned blocks) {
  address_t own = ended + 4 * (address_t)stream;
  void *parameters[] = {&iterations, &stamps, &own};
  check(launch(function, blocks, 1, 1, THREADS, 1, 1, 0, streams[stream], parameters, NULL), "cuLaunchKernel");
}

static void put_cooperative(uint64_t iterations, unsigned blocks) {
  void *parameters[] = {&iterations, &stamps, &ended};
  check(launch_cooperative(function, blocks, 1, 1, THREADS, 1, 1, 0, streams[0], parameters), "cuLaunchCooperativeKernel");
}

static void put_dependent(uint64_t iterations, unsigned blocks) {
  void *parameters[] = {&iterations, &stamps, &ended};
  struct {
    int id, pad, allowed, rest[15];
  } attribute = {.id = 6, .allowed = 1};
  struct {
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned count;
  } config = {{blocks, 1, 1}, {THREADS, 1, 1}, 0, streams[0], &attribute, 1};
  check(launch_ex(&config, function, parameters, NULL), "cuLaunchKernelEx");
}

static void put_mixed(uint64_t number, uint64_t iterations, unsigned blocks) {
  uint64_t kind = number % 16, own = kind ? iterations * (1 + kind % 4) / 4 : iterations * 15;
  put(0, number < 16 ? own * 4 : own, blocks - (unsigned)kind);
}

static void *make_graph(uint64_t iterations, unsigned blocks, int nodes) {
  void *graph, *exec;
  check(CU(int, cuStreamBeginCapture_v2, void *, int)(streams[0], 2), "cuStreamBeginCapture");
  for (int i = 0; i < nodes; i++) put(0, iterations, blocks);
  check(CU(int, cuStreamEndCapture, void *, void **)(streams[0], &graph), "cuStreamEndCapture");
  check(CU(int, cuGraphInstantiateWithFlags, void **, void *, unsigned long long)(&exec, graph, 0), "cuGraphInstantiate");
  return exec;
}

static int by_end(const void *a, const void *b) {
  uint64_t x = ((const struct stamp *)a)->end, y = ((const struct stamp *)b)->end;
  return x < y ? -1 : x > y;
}

static uint64_t collect(void) {
  uint64_t count = 0;
  check(CU(int, cuMemcpyDtoH_v2, void *, address_t, size_t)(&count, stamps, sizeof count), "cuMemcpyDtoH");
  if (count > MAX_STAMPS - 1) count = MAX_STAMPS - 1;
  if (count) check(CU(int, cuMemcpyDtoH_v2, void *, address_t, size_t)(copied, stamps + 16, count * sizeof *copied), "cuMemcpyDtoH");
  qsort(copied, count, sizeof *copied, by_end);
  return count;
}

/* Counts from one launch's end to another's; per: kernels of a launch. */
static struct figures from_stamps(uint64_t count, uint64_t skip, uint64_t per) {
  struct figures figures = {.cv = -1};
  uint64_t first = per - 1;
  while (first < count && copied[first].end < copied[0].end + skip) first += per;
  if (first + 3 > count) return figures;
  static double windows[MAX_WINDOWS];
  memset(windows, 0, sizeof windows);
  uint64_t from = copied[first].end, to = copied[count - 1].end, reached = from;
  for (uint64_t i = first + 1; i < count; i++) {
    uint64_t start = copied[i].start > reached ? copied[i].start : reached;
    if (copied[i].end > start) figures.busy += copied[i].end - start;
    for (uint64_t t = start; t < copied[i].end;) {
      uint64_t place = (t - from) / window, edge = from + (place + 1) * window, end = copied[i].end < edge ? copied[i].end : edge;
      if (place < MAX_WINDOWS) windows[place] += (double)(end - t);
      t = end;
    }
    if (copied[i].end > reached) reached = copied[i].end;
  }
  figures.kernels = count - 1 - first;
  figures.span = to - from;
  int full = (int)((to - from) / window);
  if (full > MAX_WINDOWS) full = MAX_WINDOWS;
  double sum = 0, squares = 0;
  for (int i = 0; i < full; i++) {
    sum += windows[i];
    squares += windows[i] * windows[i];
  }
  if (full > 2 && sum > 0) figures.cv = sqrt(fabs(squares / full - sum / full * (sum / full))) / (sum / full);
  return figures;
}

static uint64_t processor_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* By one kernel on the idle card: good to some 10 us. */
static void compare_clocks(void) {
  uint64_t zero = 0;
  put(0, 1, 1);
  synchronize();
  uint64_t now = now_ns();
  if (collect()) clock_lead = (int64_t)copied[0].end - (int64_t)now;
  check(CU(int, cuMemcpyHtoD_v2, address_t, const void *, size_t)(stamps, &zero, sizeof zero), "cuMemcpyHtoD");
}

/* Looking at a simulated clock again and again is slow. */
static void work_on_host(uint64_t ns) {
  if (simulated) usleep((useconds_t)(ns / 1000));
  for (uint64_t until = now_ns() + ns; !simulated && now_ns() < until;) {}
}

static struct figures run(const struct cell *cell, uint64_t iterations, double seconds, uint64_t skip) {
  uint64_t zero = 0, launched = 0, per = cell->nodes ? (uint64_t)cell->nodes : 1;
  check(CU(int, cuMemcpyHtoD_v2, address_t, const void *, size_t)(stamps, &zero, sizeof zero), "cuMemcpyHtoD");
  void *exec = cell->nodes ? make_graph(iterations, cell->blocks, cell->nodes) : NULL;
  bool sync = strcmp(cell->kind, "sync") == 0, light = strcmp(cell->kind, "light") == 0;
  synchronize();
  compare_clocks();
  uint64_t processor = processor_ns();
  uint64_t began = now_ns(), end = began + skip + (uint64_t)(seconds * 1e9);
  latency_count = 0;
  for (uint64_t now = began; now < end && (launched + 1) * per < MAX_STAMPS; launched++) {
    int place = (int)(launched % (uint64_t)cell->streams);
    void *stream = streams[place];
    if (exec)
      check(launch_graph(exec, stream), "cuGraphLaunch");
    else if (strcmp(cell->kind, "coop") == 0)
      put_cooperative(iterations, cell->blocks);
    else if (strcmp(cell->kind, "pdl") == 0)
      put_dependent(iterations, cell->blocks);
    else if (strcmp(cell->kind, "mix") == 0)
      put_mixed(launched, iterations, cell->blocks);
    else
      put(place, iterations, cell->blocks);
    if (sync || light)
      stream_synchronize(stream);
    else
      bound_flight(launched, stream, cell->microseconds * (double)per);
    if (light && now >= began + skip && latency_count < MAX_LATENCIES) latencies[latency_count++] = (double)(now_ns() - now) / 1e6;
    if (light) usleep(10000);
    if (cell->host_us) work_on_host((uint64_t)cell->host_us * 1000);
    now = now_ns();
  }
  double cpu = (double)(processor_ns() - processor) / (double)(now_ns() - began);
  synchronize();
  last_busy = now_ns();
  copied_count = collect();
  if (exec) CU(int, cuGraphExecDestroy, void *)(exec);
  struct figures figures = from_stamps(copied_count, skip, per);
  figures.cpu = cpu;
  figures.began = began;
  figures.ended = last_busy;
  return figures;
}

/* The same work each time, so that jobs can be compared by their ends. */
static struct figures run_job(const struct cell *cell, uint64_t iterations, double seconds) {
  int rounds = (int)(seconds * 1e3 / (cell->busy_ms + cell->idle_ms)), each = (int)(cell->busy_ms * 1e3 / cell->microseconds);
  if (rounds < 1) rounds = 1;
  if (each < 1) each = 1;
  uint64_t began = now_ns();
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < each; i++) put(0, iterations, cell->blocks);
    check(synchronize(), "cuCtxSynchronize");
    if (round + 1 < rounds) usleep((useconds_t)cell->idle_ms * 1000);
  }
  last_busy = now_ns();
  return (struct figures){
      .kernels = (uint64_t)rounds * (uint64_t)each, .span = last_busy - began, .cv = -1, .began = began, .ended = last_busy};
}

static double period(const struct cell *cell, uint64_t iterations, double *busy) {
  struct cell solo = *cell;
  solo.host_us = solo.busy_ms = 0;
  if (!solo.nodes && solo.streams < 2) strcpy(solo.kind, strcmp(cell->kind, "coop") == 0 || strcmp(cell->kind, "pdl") == 0 || strcmp(cell->kind, "mix") == 0 ? cell->kind : "dense");
  double each = cell->microseconds * 1e-6 * (cell->nodes ? cell->nodes : 1), seconds = each * 30 > 0.3 ? each * 30 : 0.3;
  if (seconds > 3) seconds = 3;
  set_limit(100);
  bool cold = now_ns() - last_busy > warm_up; /* a card that was idle needs a moment to reach its clock */
  struct figures figures = run(&solo, iterations, seconds, cold ? warm_up : (uint64_t)(seconds * 1e8));
  *busy = figures.span ? (double)figures.busy / (double)figures.span : 0;
  return figures.kernels ? (double)figures.span / (double)figures.kernels : 0;
}

static uint64_t calibrate(double microseconds) {
  double length = microseconds < 1000 ? microseconds : 1000;
  struct cell cell = {.kind = "dense", .microseconds = length, .streams = 1, .blocks = 132};
  double rate = 100; /* iterations per us */
  for (int i = 0; i < 3; i++) {
    uint64_t iterations = (uint64_t)(rate * length) ? (uint64_t)(rate * length) : 1;
    struct figures figures = run(&cell, iterations, i ? 0.05 : 0.5, 0); /* the first also wakes the card */
    if (figures.kernels && figures.busy) rate = (double)iterations / ((double)figures.busy / (double)figures.kernels / 1e3);
  }
  return (uint64_t)(rate * microseconds) ? (uint64_t)(rate * microseconds) : 1;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static struct figures run_at(const struct cell *cell, uint64_t iterations, uint64_t at) {
  while (at && now_ns() < at) usleep(100);
  return cell->busy_ms ? run_job(cell, iterations, cell->seconds) : run(cell, iterations, cell->seconds, warm_up);
}

static void print_latencies(void) {
  if (!latency_count) return;
  qsort(latencies, (size_t)latency_count, sizeof latencies[0], ascending);
  printf(", \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"latencies\": %d", latencies[latency_count / 2], latencies[latency_count * 99 / 100],
         latency_count);
}

static void measure(struct cell *cell) {
  static double known_period, known_busy, known_for;
  uint64_t iterations = given_iterations;
  set_limit(100);
  if (!iterations) iterations = calibrate(cell->microseconds);
  double before = given_period, busy = 1, after = 0;
  bool around = cell->microseconds <= 20, once = !around && known_for == cell->microseconds && cell->streams < 2 && !cell->nodes;
  if (!given_period) before = once ? known_period : period(cell, iterations, &busy);
  if (once) busy = known_busy;
  if (!around && !given_period && cell->streams < 2 && !cell->nodes) {
    known_for = cell->microseconds;
    known_period = before;
    known_busy = busy;
  }
  set_limit(cell->limit);
  struct figures figures = run_at(cell, iterations, start_at);
  double unused;
  if (around && !given_period) after = period(cell, iterations, &unused);
  double solo = after > 0 ? (before + after) / 2 : before;
  double share = figures.span ? (double)figures.kernels * solo / (double)figures.span * 100 : 0;
  double time = figures.busy && busy > 0 ? (double)figures.busy / (double)figures.span / busy * 100 : -1;
  printf("{\"kind\": \"%s\", \"us\": %g, \"limit\": %u, \"seconds\": %g, \"share\": %.3f, \"time\": %.3f, \"cv\": %.4f, \"kernels\": %llu, "
         "\"span_s\": %.3f, \"solo_us\": %.3f, \"solo_after_us\": %.3f, \"solo_busy\": %.4f, \"iterations\": %llu, \"cpu\": %.4f",
         cell->kind, cell->microseconds, cell->limit, cell->seconds, share, time, figures.cv, (unsigned long long)figures.kernels,
         (double)figures.span / 1e9, before / 1e3, after / 1e3, busy, (unsigned long long)iterations, figures.cpu);
  print_latencies();
  printf("}\n");
  fflush(stdout);
  set_limit(100);
}

static bool parse(const char *text, struct cell *cell) {
  *cell = (struct cell){.streams = 1, .blocks = 132};
  if (sscanf(text, "%31[^,],%lf,%u,%lf", cell->kind, &cell->microseconds, &cell->limit, &cell->seconds) != 4) return false;
  sscanf(cell->kind, "streams:%d:%u", &cell->streams, &cell->blocks);
  sscanf(cell->kind, "graph:%d", &cell->nodes);
  sscanf(cell->kind, "host:%d", &cell->host_us);
  sscanf(cell->kind, "job:%d:%d", &cell->busy_ms, &cell->idle_ms);
  return cell->streams >= 1 && cell->streams <= MAX_STREAMS && cell->microseconds > 0;
}

static void answer_run(const struct cell *cell, uint64_t iterations, uint64_t at) {
  if (limits) limits[0] = cell->limit;
  struct figures figures = run_at(cell, iterations, at);
  printf("{\"kernels\": %llu, \"span_s\": %.6f, \"busy_s\": %.6f, \"cv\": %.4f, \"cpu\": %.4f, \"began_s\": %.6f, \"ended_s\": %.6f",
         (unsigned long long)figures.kernels, (double)figures.span / 1e9, (double)figures.busy / 1e9, figures.cv, figures.cpu,
         (double)figures.began / 1e9, (double)figures.ended / 1e9);
  print_latencies();
  printf("}\n");
}

static void answer_windows(uint64_t from, uint64_t length, unsigned count) {
  uint64_t first = from + (uint64_t)clock_lead;
  printf("{\"windows\": [");
  for (unsigned i = 0; i < count; i++) {
    uint64_t begin = first + i * length, end = begin + length, busy = 0, reached = begin;
    for (uint64_t k = 0; k < copied_count; k++) {
      uint64_t start = copied[k].start > reached ? copied[k].start : reached, stop = copied[k].end < end ? copied[k].end : end;
      if (stop > start) {
        busy += stop - start;
        reached = stop;
      }
    }
    printf("%s%.2f", i ? ", " : "", (double)busy / (double)length * 100);
  }
  printf("]}\n");
}

static unsigned fill(unsigned mib) {
  unsigned taken = 0;
  for (address_t piece; taken + 64 <= mib && !CU(int, cuMemAlloc_v2, address_t *, size_t)(&piece, (size_t)64 << 20);) taken += 64;
  return taken;
}

/* Returns how the process is to end. */
static int follow(unsigned fill_mib) {
  char line[256], text[128];
  unsigned long long a, b;
  unsigned n;
  struct cell cell;
  printf("{\"simulated\": %s, \"filled_mib\": %u}\n", simulated ? "true" : "false", fill(fill_mib));
  for (fflush(stdout); fgets(line, sizeof line, stdin); fflush(stdout)) {
    if (sscanf(line, "calibrate %127s", text) == 1 && parse(text, &cell)) {
      if (limits) limits[0] = 100;
      printf("{\"iterations\": %llu}\n", (unsigned long long)calibrate(cell.microseconds));
    } else if (sscanf(line, "solo %127s %llu", text, &a) == 2 && parse(text, &cell)) {
      double busy = 1, ns = period(&cell, a, &busy);
      printf("{\"period_ns\": %.2f, \"busy\": %.5f}\n", ns, busy);
    } else if (sscanf(line, "run %127s %llu %llu", text, &a, &b) == 3 && parse(text, &cell)) {
      answer_run(&cell, a, b);
    } else if (sscanf(line, "windows %llu %llu %u", &a, &b, &n) == 3) {
      answer_windows(a, b, n);
    } else {
      fprintf(stderr, "not understood: %s", line);
      return 2;
    }
  }
  return 0;
}

int main(int count, char **words) {
  void *module;
  int i = 1;
  bool led = count > 1 && strcmp(words[count - 1], "--follow") == 0;
  unsigned fill_mib = 0;
  for (; i + 1 < count && strncmp(words[i], "--", 2) == 0; i += 2) {
    if (strcmp(words[i], "--iterations") == 0) given_iterations = strtoull(words[i + 1], NULL, 10);
    if (strcmp(words[i], "--period") == 0) given_period = strtod(words[i + 1], NULL);
    if (strcmp(words[i], "--fill") == 0) fill_mib = (unsigned)strtoul(words[i + 1], NULL, 10);
    if (strcmp(words[i], "--at") == 0) start_at = strtoull(words[i + 1], NULL, 10);
  }
  start_device(0);
  check(CU(int, cuModuleLoadData, void **, const void *)(&module, kernel_text), "cuModuleLoadData");
  check(CU(int, cuModuleGetFunction, void **, void *, const char *)(&function, module, "work_log_ns"), "cuModuleGetFunction");
  check(CU(int, cuMemAlloc_v2, address_t *, size_t)(&stamps, (size_t)MAX_STAMPS * sizeof *copied + 16), "cuMemAlloc");
  check(CU(int, cuMemAlloc_v2, address_t *, size_t)(&ended, 4 * MAX_STREAMS), "cuMemAlloc");
  check(CU(int, cuMemsetD32_v2, address_t, unsigned, size_t)(ended, 0, MAX_STREAMS), "cuMemsetD32");
  for (int s = 0; s < MAX_STREAMS; s++) check(CU(int, cuStreamCreate, void **, unsigned)(&streams[s], 1), "cuStreamCreate");
  copied = malloc((size_t)MAX_STAMPS * sizeof *copied);
  launch = (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))driver("cuLaunchKernel");
  launch_cooperative = (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **))driver("cuLaunchCooperativeKernel");
  launch_ex = (int (*)(const void *, void *, void **, void **))driver("cuLaunchKernelEx");
  launch_graph = (int (*)(void *, void *))driver("cuGraphLaunch");
  synchronize = (int (*)(void))driver("cuCtxSynchronize");
  stream_synchronize = (int (*)(void *))driver("cuStreamSynchronize");
  record = (int (*)(void *, void *))driver("cuEventRecord");
  query = (int (*)(void *))driver("cuEventQuery");
  uint64_t zero = 0;
  check(CU(int, cuMemcpyHtoD_v2, address_t, const void *, size_t)(stamps, &zero, sizeof zero), "cuMemcpyHtoD");
  put(0, 1000, 1);
  check(synchronize(), "cuCtxSynchronize");
  simulated = collect() && copied[0].end - copied[0].start == 1000;
  open_limits();
  if (led) return follow(fill_mib);
  for (; i < count; i++) {
    struct cell cell;
    if (!parse(words[i], &cell)) {
      fprintf(stderr, "not a cell: %s\n", words[i]);
      return 2;
    }
    measure(&cell);
  }
  return 0;
}
