/* Programs under a core limit, in virtual time: how busy each card was, in windows, by the kernels' own log.
 *
 *   core_ways MODE MICROSECONDS SECONDS
 *
 * One line for each device: the percentages of windows of 50 ms. Modes:
 *   threads    four threads, each launches into its own default stream
 *   streams    two threads launch into four streams in common
 *   legacy     into the legacy default stream, a blocking and a non-blocking stream in turn
 *   devices    two devices, a thread for each
 *   cluster    with a cluster and a priority as launch attributes
 *   live       the limit becomes 20 after a third of the time, 80 after two thirds
 *   slower     the same kernel takes ten times as long in the second half
 *   pause      nothing for two seconds in the middle
 *   copies     copies inside the card, no kernels; prints how long they took
 *   tasks      ten graph launches, then seven tasks reported */
#define _GNU_SOURCE
#include "api.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { DEVICES = 2, THREADS = 4, LIMITS_OFFSET = 1728, WINDOW = 50000000, MAX_KERNELS = 1 << 19 };

static const char kernel_text[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry work_log_ns(.param .u64 ns, .param .u64 log)\n{\nret;\n}\n";

static struct device { void *context, *function; CUptr log; } devices[DEVICES];
static void *streams[THREADS];
static uint64_t begun, ends, length;
static const char *mode;

static uint64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void must(int code, const char *what) {
	if (code) {
		fprintf(stderr, "%s: %d\n", what, code);
		exit(3);
	}
}

static void open_device(int number) {
	struct device *d = &devices[number];
	void *module;
	uint64_t zero = 0;
	must(cu.cuDevicePrimaryCtxRetain(&d->context, number), "retain");
	must(cu.cuCtxSetCurrent(d->context), "current");
	must(cu.cuModuleLoadData(&module, kernel_text), "module");
	must(cu.cuModuleGetFunction(&d->function, module, "work_log_ns"), "function");
	must(cu.cuMemAlloc_v2(&d->log, 16 + (size_t)MAX_KERNELS * 16), "log");
	must(cu.cuMemcpyHtoD_v2(d->log, &zero, sizeof zero), "log");
}

static void launch(const struct device *d, void *stream, uint64_t ns) {
	CUptr log = d->log;
	void *params[] = {&ns, &log};
	if (strcmp(mode, "cluster")) {
		must(cu.cuLaunchKernel(d->function, 132, 1, 1, 128, 1, 1, 0, stream, params, NULL), "launch");
		return;
	}
	struct { int id, pad, value[16]; } attributes[] = {{.id = 4, .value = {2, 1, 1}}, {.id = 8, .value = {-1}}};
	struct launch config = {.grid = {132, 1, 1}, .block = {128, 1, 1}, .stream = stream, .attributes = attributes, .count = 2};
	must(cu.cuLaunchKernelEx(&config, d->function, params, NULL), "launch");
}

static volatile uint64_t *region_limit(void) {
	int file = open(getenv("CUDA_DEVICE_MEMORY_SHARED_CACHE"), O_RDWR);
	char *region = file < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	must(region == MAP_FAILED, "region");
	return (volatile uint64_t *)(region + LIMITS_OFFSET);
}

static void *work(void *argument) {
	int number = (int)(intptr_t)argument;
	const struct device *d = &devices[strcmp(mode, "devices") ? 0 : number];
	must(cu.cuCtxSetCurrent(d->context), "current");
	int mixed = !strcmp(mode, "legacy"), common = !strcmp(mode, "streams"), slower = !strcmp(mode, "slower"), pause = !strcmp(mode, "pause");
	void *three[] = {NULL, streams[0], streams[1]};
	uint64_t half = begun + (ends - begun) / 2, third = (ends - begun) / 3;
	volatile uint64_t *limit = strcmp(mode, "live") ? NULL : region_limit();
	for (uint64_t i = 0; now() < ends; i++) {
		if (limit)
			*limit = now() - begun > third && now() - begun < 2 * third ? 20 : 80;
		void *stream = mixed ? three[i % 3] : common ? streams[i % THREADS] : (void *)2;
		launch(d, stream, slower && now() > half ? 10 * length : length);
		if (pause && now() > half) {
			usleep(2000000);
			pause = 0;
		}
		if (length > 50000 && i % 64 == 63)
			must(cu.cuStreamSynchronize(stream), "wait");
	}
	must(cu.cuCtxSynchronize(), "wait");
	return NULL;
}

static int by_start(const void *a, const void *b) {
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static void print_windows(const struct device *d) {
	uint64_t count = 0, *log = malloc((size_t)MAX_KERNELS * 16);
	must(cu.cuCtxSetCurrent(d->context), "current");
	must(cu.cuMemcpyDtoH_v2(&count, d->log, sizeof count), "log");
	must(count > MAX_KERNELS, "too many kernels");
	must(cu.cuMemcpyDtoH_v2(log, d->log + 16, count * 16), "log");
	qsort(log, count, 16, by_start);
	uint64_t windows = (ends - begun) / WINDOW, *busy = calloc(windows + 1, sizeof *busy), reached = 0;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t from = log[2 * i] > reached ? log[2 * i] : reached, to = log[2 * i + 1];
		for (uint64_t t = from; t < to;) {
			uint64_t place = (t - begun) / WINDOW, edge = begun + (place + 1) * WINDOW, stop = to < edge ? to : edge;
			if (place < windows)
				busy[place] += stop - t;
			t = stop;
		}
		reached = to > reached ? to : reached;
	}
	for (uint64_t w = 0; w < windows; w++)
		printf("%s%.2f", w ? " " : "", (double)busy[w] * 100 / WINDOW);
	printf("\n");
}

static int copy(void) {
	CUptr to;
	CUresult (*inside)(CUptr, CUptr, size_t, void *) = (CUresult (*)(CUptr, CUptr, size_t, void *))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemcpyDtoDAsync_v2");
	must(cu.cuMemAlloc_v2(&to, 16 + (size_t)MAX_KERNELS * 16), "copy");
	uint64_t from = now();
	for (int i = 0; i < 2000; i++)
		must(inside(to, devices[0].log, (size_t)MAX_KERNELS * 16, NULL), "copy");
	must(cu.cuCtxSynchronize(), "wait");
	printf("%.6f\n", (double)(now() - from) / 1e9);
	return 0;
}

static int tasks(void) {
	void *graph, *exec;
	must(cu.cuStreamBeginCapture_v2(streams[0], 2), "capture");
	launch(&devices[0], streams[0], length);
	must(cu.cuStreamEndCapture(streams[0], &graph), "capture");
	must(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
	for (int i = 0; i < 10; i++)
		must(cu.cuGraphLaunch(exec, streams[0]), "graph");
	must(cu.cuCtxSynchronize(), "wait");
	usleep(1100000);
	launch(&devices[0], streams[0], length); /* what was launched without a limit is counted with the next launch */
	if (!strcmp(mode, "graphs"))
		return 0;
	void (*done)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "vgpu_task_done");
	must(!done, "vgpu_task_done");
	for (int i = 0; i < 7; i++)
		done();
	return 0;
}

int main(int argc, char **argv) {
	pthread_t threads[THREADS];
	must(argc != 4 || api_load("getproc") || cu.cuInit(0), "start");
	mode = argv[1];
	length = (uint64_t)(strtod(argv[2], NULL) * 1000);
	int two = !strcmp(mode, "devices"), count = two || !strcmp(mode, "streams") ? 2 : !strcmp(mode, "threads") ? THREADS : 1;
	for (int i = two; i >= 0; i--)
		open_device(i);
	for (int i = 0; i < THREADS; i++)
		must(cu.cuStreamCreate(&streams[i], i > 0), "stream");
	launch(&devices[0], streams[0], length); /* makes the region */
	begun = now();
	ends = begun + (uint64_t)(strtod(argv[3], NULL) * 1e9);
	if (!strcmp(mode, "copies"))
		return copy();
	if (!strcmp(mode, "tasks") || !strcmp(mode, "graphs"))
		return tasks();
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i <= two; i++)
		print_windows(&devices[i]);
	return 0;
}
