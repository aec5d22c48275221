/* A process on the GPU that does what it is told: one command a line on standard input, one answer a line on standard output,
 * "CODE [VALUE]...". CODE is the driver's result, -1 when this driver has no such function, -2 for a command that cannot be read.
 *
 * What was allocated is kept in order; free N and the likes name it by its number. */
#define _GNU_SOURCE
#include "api.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_HELD 100000
#define ABSENT (-1)
#define UNREADABLE (-2)

struct held { const struct way *way; CUptr pointer; unsigned long long handle; void *object, *extra; size_t size; };

/* A way to get memory: how, and how to give it back. */
struct way { const char *name; CUresult (*take)(struct held *, size_t); CUresult (*give)(struct held *); };

static struct held held[MAX_HELD];
static int count;
static void *pool, *stream;

static CUresult take_linear(struct held *h, size_t n) { return cu.cuMemAlloc_v2(&h->pointer, n); }
static CUresult give_pointer(struct held *h) { return cu.cuMemFree_v2(h->pointer); }

static CUresult take_pitch(struct held *h, size_t n) {
	size_t pitch, row = 4096;
	return cu.cuMemAllocPitch_v2(&h->pointer, &pitch, row, (n + row - 1) / row, 4);
}

static CUresult take_managed(struct held *h, size_t n) { return cu.cuMemAllocManaged(&h->pointer, n, 1); }

static CUresult take_array(struct held *h, size_t n) {
	struct array2d d = {1024, (n + 4095) / 4096, 0x20, 1}; /* floats */
	return cu.cuArrayCreate_v2(&h->object, &d);
}

static CUresult take_array3d(struct held *h, size_t n) {
	struct array3d d = {64, 64, (n + 16383) / 16384, 0x20, 1, 0};
	return cu.cuArray3DCreate_v2(&h->object, &d);
}

static CUresult give_array(struct held *h) { return cu.cuArrayDestroy(h->object); }

static CUresult take_mipmap(struct held *h, size_t n) {
	struct array3d d = {1024, (n * 3 / 4 + 4095) / 4096, 0, 0x20, 1, 0}; /* the levels together are 4/3 of the first */
	return cu.cuMipmappedArrayCreate(&h->object, &d, 32);
}

static CUresult give_mipmap(struct held *h) { return cu.cuMipmappedArrayDestroy(h->object); }

static int current_device(void) {
	int d = 0;
	cu.cuCtxGetDevice(&d);
	return d;
}

static size_t granule(size_t n) {
	return (n + (2 << 20) - 1) / (2 << 20) * (2 << 20);
}

static CUresult map(struct held *h, size_t n, const struct physical_prop *p) {
	h->size = granule(n);
	CUresult r = cu.cuMemCreate(&h->handle, h->size, p, 0);
	if (r)
		return r;
	if ((r = cu.cuMemAddressReserve(&h->pointer, h->size, 0, 0, 0)) || (r = cu.cuMemMap(h->pointer, h->size, 0, h->handle, 0)))
		return r;
	struct access a = {{1, current_device()}, 3};
	return cu.cuMemSetAccess(h->pointer, h->size, &a, 1);
}

static CUresult take_vmm(struct held *h, size_t n) {
	struct physical_prop p = {.type = 1, .place = {1, current_device()}};
	return map(h, n, &p);
}

static CUresult take_vmm_host(struct held *h, size_t n) {
	struct physical_prop p = {.type = 1, .place = {3, 0}}; /* a NUMA node of the host */
	return map(h, n, &p);
}

static CUresult give_vmm(struct held *h) {
	CUresult r = cu.cuMemUnmap(h->pointer, h->size);
	if (!r)
		r = cu.cuMemRelease(h->handle);
	return r ? r : cu.cuMemAddressFree(h->pointer, h->size);
}

static CUresult take_async(struct held *h, size_t n) { return cu.cuMemAllocAsync(&h->pointer, n, stream); }

static CUresult take_pool(struct held *h, size_t n) {
	struct pool_props p = {.type = 1, .place = {1, current_device()}};
	CUresult r = pool ? 0 : cu.cuMemPoolCreate(&pool, &p);
	return r ? r : cu.cuMemAllocFromPoolAsync(&h->pointer, n, pool, stream);
}

static CUresult give_async(struct held *h) { return cu.cuMemFreeAsync(h->pointer, stream); }

static CUresult take_graph(struct held *h, size_t n) {
	struct alloc_node p = {.pool = {.type = 1, .place = {1, current_device()}}, .size = n};
	void *graph, *node;
	CUresult r = cu.cuGraphCreate(&graph, 0);
	if (r)
		return r;
	r = cu.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &p);
	if (!r)
		r = cu.cuGraphInstantiateWithFlags(&h->object, graph, 0);
	cu.cuGraphDestroy(graph);
	if (r)
		return r;
	r = cu.cuGraphLaunch(h->object, stream);
	if (!r)
		r = cu.cuStreamSynchronize(stream);
	if (r)
		cu.cuGraphExecDestroy(h->object);
	h->pointer = p.pointer;
	return r;
}

static CUresult give_graph(struct held *h) {
	CUresult r = cu.cuMemFree_v2(h->pointer);
	return r ? r : cu.cuGraphExecDestroy(h->object);
}

static CUresult take_host(struct held *h, size_t n) { return cu.cuMemHostAlloc(&h->object, n, 0); }
static CUresult give_host(struct held *h) { return cu.cuMemFreeHost(h->object); }

static const struct way ways[] = {
	{"linear", take_linear, give_pointer},   {"pitch", take_pitch, give_pointer}, {"managed", take_managed, give_pointer},
	{"array", take_array, give_array},       {"array3d", take_array3d, give_array}, {"mipmap", take_mipmap, give_mipmap},
	{"vmm", take_vmm, give_vmm},             {"vmm-host", take_vmm_host, give_vmm}, {"async", take_async, give_async},
	{"pool", take_pool, give_async},         {"graph", take_graph, give_graph},     {"host", take_host, give_host},
	{"async-sync", take_async, give_pointer},
};

static const struct way *way_of(const char *name) {
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	return NULL;
}

static int has_way(const struct way *w) {
	const struct { CUresult (*take)(struct held *, size_t); int there; } needs[] = {
		{take_async, cu.cuMemAllocAsync != NULL}, {take_pool, cu.cuMemAllocFromPoolAsync != NULL},
		{take_graph, cu.cuGraphAddMemAllocNode != NULL}, {take_vmm, cu.cuMemCreate != NULL}, {take_vmm_host, cu.cuMemCreate != NULL},
	};
	for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
		if (needs[i].take == w->take)
			return needs[i].there;
	return 1;
}

static CUresult take(const struct way *w, size_t n) {
	struct held *h = &held[count];
	*h = (struct held){.way = w, .size = n};
	CUresult r = count < MAX_HELD ? w->take(h, n) : UNREADABLE;
	if (!r)
		count++;
	return r;
}

static void settle(void) {
	if (cu.cuCtxSynchronize)
		cu.cuCtxSynchronize();
}

static CUresult give_all(void) {
	CUresult r = 0;
	while (count) {
		struct held *last = &held[--count];
		CUresult one = last->way->give(last);
		r = r ? r : one;
	}
	settle();
	return r;
}

static void answer(CUresult r, const char *text) {
	printf("%d%s%s\n", r, *text ? " " : "", text);
	fflush(stdout);
}

static CUresult launch(unsigned long long ns, int times) {
	static void *module, *function;
	CUresult r = 0;
	if (!module && (r = cu.cuModuleLoadData(&module, spin_ptx)))
		return r;
	if (!function && (r = cu.cuModuleGetFunction(&function, module, "spin_ns")))
		return r;
	void *params[] = {&ns};
	for (int i = 0; i < times && !r; i++)
		r = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
	return r;
}

struct job { const struct way *way; size_t size; CUresult result; int allocated; };

static void *in_thread(void *arg) { /* a thread without a context of its own */
	struct job *j = arg;
	struct held h = {.way = j->way};
	if (j->way->take == take_vmm) {
		struct physical_prop p = {.type = 1, .place = {1, 0}};
		j->result = cu.cuMemCreate(&h.handle, granule(j->size), &p, 0);
		if (!j->result)
			j->result = cu.cuMemRelease(h.handle);
	} else {
		j->result = j->way->take(&h, j->size);
		if (!j->result)
			j->result = j->way->give(&h);
	}
	return NULL;
}

static CUresult churn(const struct way *w, size_t n, int times) {
	CUresult r = 0;
	for (int i = 0; i < times && !r; i++) {
		struct held h = {.way = w, .size = n};
		r = w->take(&h, n);
		if (!r)
			r = w->give(&h);
	}
	return r;
}

/* The answer to one command. */
static CUresult obey(char *line, char *out, size_t room) {
	char word[32] = "", name[512] = "";
	unsigned long long a = 0, b = 0;
	int n = sscanf(line, "%31s %511s %llu %llu", word, name, &a, &b);
	unsigned long long first = n > 1 ? strtoull(name, NULL, 0) : 0;
	const struct way *w = n > 1 ? way_of(name) : NULL;
	void *p;
	if (w && !has_way(w))
		return ABSENT;
	if (!strcmp(word, "load"))
		return api_load(name) ? ABSENT : 0;
	if (!strcmp(word, "init"))
		return cu.cuInit(0);
	if (!strcmp(word, "count")) {
		int c = 0;
		CUresult r = cu.cuDeviceGetCount(&c);
		snprintf(out, room, "%d", c);
		return r;
	}
	if (!strcmp(word, "retain")) {
		CUresult r = cu.cuDevicePrimaryCtxRetain(&p, (int)first);
		return r ? r : cu.cuCtxSetCurrent(p);
	}
	if (!strcmp(word, "release"))
		return cu.cuDevicePrimaryCtxRelease_v2((int)first);
	if (!strcmp(word, "reset")) {
		count = 0;
		return cu.cuDevicePrimaryCtxReset_v2((int)first);
	}
	if (!strcmp(word, "context"))
		return cu.cuCtxCreate_v2(&p, 0, (int)first);
	if (!strcmp(word, "destroy")) {
		CUresult r = cu.cuCtxGetCurrent(&p);
		count = 0;
		return r ? r : cu.cuCtxDestroy_v2(p);
	}
	if (!strcmp(word, "uuid")) {
		char u[16];
		CUresult r = cu.cuDeviceGetUuid(u, (int)first);
		for (int i = 0; i < 16; i++)
			snprintf(out + 2 * i, room - 2 * (size_t)i, "%02x", (unsigned char)u[i]);
		return r;
	}
	if (!strcmp(word, "stream"))
		return cu.cuStreamCreate(&stream, 1);
	if (!strcmp(word, "take") && w)
		return take(w, a);
	if (!strcmp(word, "fill") && w) { /* in steps, until refused */
		int before = count;
		CUresult r;
		while (!(r = take(w, a)))
			;
		snprintf(out, room, "%d", count - before);
		return r;
	}
	if (!strcmp(word, "give") && (int)first < count) {
		CUresult r = held[first].way->give(&held[first]);
		held[first] = held[--count];
		settle();
		return r;
	}
	if (!strcmp(word, "give-all"))
		return give_all();
	if (!strcmp(word, "churn") && w)
		return churn(w, a, (int)b);
	if (!strcmp(word, "thread") && w) {
		struct job j = {.way = w, .size = a};
		pthread_t t;
		pthread_create(&t, NULL, in_thread, &j);
		pthread_join(t, NULL);
		return j.result;
	}
	if (!strcmp(word, "free"))
		return cu.cuMemFree_v2(first);
	if (!strcmp(word, "free-async"))
		return cu.cuMemFreeAsync ? cu.cuMemFreeAsync(first, stream) : ABSENT;
	if (!strcmp(word, "pointer") && (int)first < count) {
		snprintf(out, room, "%llu", held[first].pointer);
		return 0;
	}
	if (!strcmp(word, "info")) {
		size_t f = 0, t = 0;
		CUresult r = cu.cuMemGetInfo_v2(&f, &t);
		snprintf(out, room, "%zu %zu", f, t);
		return r;
	}
	if (!strcmp(word, "info-null")) { /* outputs that may be absent */
		size_t v = 0;
		CUresult r = !strcmp(name, "free") ? cu.cuMemGetInfo_v2(&v, NULL) : !strcmp(name, "total") ? cu.cuMemGetInfo_v2(NULL, &v)
		                                                                                     : cu.cuMemGetInfo_v2(NULL, NULL);
		snprintf(out, room, "%zu", v);
		return r;
	}
	if (!strcmp(word, "total")) {
		size_t t = 0;
		CUresult r = cu.cuDeviceTotalMem_v2(&t, (int)first);
		snprintf(out, room, "%zu", t);
		return r;
	}
	if (!strcmp(word, "trim"))
		return cu.cuDeviceGraphMemTrim ? cu.cuDeviceGraphMemTrim((int)first) : ABSENT;
	if (!strcmp(word, "threshold")) { /* of the default pool's release */
		uint64_t v = first;
		if (!cu.cuDeviceGetDefaultMemPool)
			return ABSENT;
		CUresult r = cu.cuDeviceGetDefaultMemPool(&p, current_device());
		return r ? r : cu.cuMemPoolSetAttribute(p, 4, &v);
	}
	if (!strcmp(word, "sync"))
		return cu.cuCtxSynchronize();
	if (!strcmp(word, "spin"))
		return launch(first, (int)(a ? a : 1));
	if (!strcmp(word, "export")) { /* legacy IPC, as hexadecimal digits */
		CUipc h;
		CUresult r = first < (unsigned)count ? cu.cuIpcGetMemHandle(&h, held[first].pointer) : UNREADABLE;
		for (int i = 0; i < 64 && !r; i++)
			snprintf(out + 2 * i, room - 2 * (size_t)i, "%02x", (unsigned char)h.bytes[i]);
		return r;
	}
	if (!strcmp(word, "import")) {
		CUipc h;
		char *digits = strchr(line, ' ') + 1;
		for (int i = 0; i < 64; i++) {
			unsigned byte = 0;
			sscanf(digits + 2 * i, "%2x", &byte);
			h.bytes[i] = (char)byte;
		}
		CUptr at = 0;
		CUresult r = cu.cuIpcOpenMemHandle_v2(&at, h, 1);
		snprintf(out, room, "%llu", at);
		return r;
	}
	if (!strcmp(word, "close"))
		return cu.cuIpcCloseMemHandle(first);
	if (!strcmp(word, "write") || !strcmp(word, "read")) {
		unsigned v = (unsigned)a;
		CUresult r = *word == 'w' ? cu.cuMemcpyHtoD_v2(first, &v, sizeof v) : cu.cuMemcpyDtoH_v2(&v, first, sizeof v);
		snprintf(out, room, "%u", v);
		return r;
	}
	if (!strcmp(word, "fork")) { /* what a child gets that touches the driver and ends */
		pid_t child = fork();
		if (child == 0) {
			size_t f, t;
			CUresult r = cu.cuMemGetInfo_v2(&f, &t);
			CUptr q;
			CUresult s = cu.cuMemAlloc_v2(&q, 1 << 20);
			if (!strcmp(name, "exit"))
				exit(r == s ? r : 99);
			_exit(r == s ? r : 99);
		}
		int status = 0;
		waitpid(child, &status, 0);
		snprintf(out, room, "%d", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
		return 0;
	}
	if (!strcmp(word, "exec")) { /* answers, then becomes that program */
		answer(0, "");
		execl(name, name, NULL);
		exit(98);
	}
	if (!strcmp(word, "clock")) { /* ns */
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		snprintf(out, room, "%lld", (long long)t.tv_sec * 1000000000 + t.tv_nsec);
		return 0;
	}
	if (!strcmp(word, "sleep")) /* ns */
		return nanosleep(&(struct timespec){(time_t)(first / 1000000000), (long)(first % 1000000000)}, NULL);
	if (!strcmp(word, "busy")) { /* launches kernels of so many ns for so many ns; how many */
		struct timespec t;
		long long end = 0, now = 0, n = 0;
		while (end == 0 || now < end) {
			CUresult r = launch(first, 1);
			if (r)
				return r;
			n++;
			clock_gettime(CLOCK_MONOTONIC, &t);
			now = (long long)t.tv_sec * 1000000000 + t.tv_nsec;
			if (end == 0)
				end = now + (long long)a;
		}
		snprintf(out, room, "%lld", n);
		return 0;
	}
	if (!strcmp(word, "pid")) {
		snprintf(out, room, "%d", (int)getpid());
		return 0;
	}
	if (!strcmp(word, "version")) {
		int v = 0;
		CUresult r = cu.cuDriverGetVersion(&v);
		snprintf(out, room, "%d", v);
		return r;
	}
	return UNREADABLE;
}

int main(int argc, char **argv) {
	static char line[4096], out[4096];
	if (api_load(argc > 1 ? argv[1] : "getproc"))
		return 3;
	while (fgets(line, sizeof line, stdin)) {
		*out = 0;
		line[strcspn(line, "\n")] = 0;
		if (!strcmp(line, "quit"))
			break;
		CUresult r = obey(line, out, sizeof out);
		answer(r, out);
	}
	return 0;
}
