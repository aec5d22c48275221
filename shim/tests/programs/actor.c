/* A process on the GPU that does what it is told: one command a line on standard input, one answer a line on standard output,
 * "CODE [VALUE]...". CODE is the driver's result, -1 when this driver has no such function, -2 for a command that cannot be read.
 *
 * What was allocated is kept in order; free N and the likes name it by its number. */
#define _GNU_SOURCE
#include "api.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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

struct job { const struct way *way; size_t size; CUresult result; };

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

/* The words of one command, and where its answer goes. */
struct request { const char *name; unsigned long long number, a, b; const struct way *way; char *out; size_t room; };

#define ROOM 4096

static void say(const struct request *q, unsigned long long value) {
	snprintf(q->out, q->room, "%llu", value);
}

static void say_bytes(const struct request *q, const char *bytes, int n) {
	for (int i = 0; i < n; i++)
		snprintf(q->out + 2 * i, q->room - 2 * (size_t)i, "%02x", (unsigned char)bytes[i]);
}

static long long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static CUresult do_init(struct request *q) { return cu.cuInit((unsigned)q->number); }

static CUresult do_version(struct request *q) {
	int v = 0;
	CUresult r = cu.cuDriverGetVersion(&v);
	say(q, (unsigned)v);
	return r;
}

static CUresult do_count(struct request *q) {
	int n = 0;
	CUresult r = cu.cuDeviceGetCount(&n);
	say(q, (unsigned)n);
	return r;
}

static CUresult do_uuid(struct request *q) {
	char u[16];
	CUresult r = cu.cuDeviceGetUuid(u, (int)q->number);
	say_bytes(q, u, 16);
	return r;
}

static CUresult do_total(struct request *q) {
	size_t t = 0;
	CUresult r = cu.cuDeviceTotalMem_v2(&t, (int)q->number);
	say(q, t);
	return r;
}

static CUresult do_retain(struct request *q) {
	void *context;
	CUresult r = cu.cuDevicePrimaryCtxRetain(&context, (int)q->number);
	return r ? r : cu.cuCtxSetCurrent(context);
}

static CUresult do_release(struct request *q) { return cu.cuDevicePrimaryCtxRelease_v2((int)q->number); }

static CUresult do_reset(struct request *q) {
	count = 0;
	return cu.cuDevicePrimaryCtxReset_v2((int)q->number);
}

static CUresult do_context(struct request *q) {
	void *context;
	return cu.cuCtxCreate_v2(&context, 0, (int)q->number);
}

static CUresult do_destroy(struct request *q) {
	void *context;
	(void)q;
	count = 0;
	CUresult r = cu.cuCtxGetCurrent(&context);
	return r ? r : cu.cuCtxDestroy_v2(context);
}

static CUresult do_stream(struct request *q) {
	(void)q;
	return cu.cuStreamCreate(&stream, 1);
}

static CUresult do_take(struct request *q) { return take(q->way, q->a); }

/* In steps, until refused; how many. */
static CUresult do_fill(struct request *q) {
	int before = count;
	CUresult r;
	while (!(r = take(q->way, q->a)))
		;
	say(q, (unsigned)(count - before));
	return r;
}

static CUresult do_give(struct request *q) {
	CUresult r = held[q->number].way->give(&held[q->number]);
	held[q->number] = held[count - 1];
	count--;
	settle();
	return r;
}

static CUresult do_give_all(struct request *q) {
	(void)q;
	return give_all();
}

static CUresult do_churn(struct request *q) { return churn(q->way, q->a, (int)q->b); }

static CUresult do_thread(struct request *q) {
	struct job j = {.way = q->way, .size = q->a};
	pthread_t t;
	pthread_create(&t, NULL, in_thread, &j);
	pthread_join(t, NULL);
	return j.result;
}

static CUresult do_pointer(struct request *q) {
	say(q, held[q->number].pointer);
	return 0;
}

static CUresult do_free(struct request *q) { return cu.cuMemFree_v2(q->number); }
static CUresult do_free_async(struct request *q) { return cu.cuMemFreeAsync ? cu.cuMemFreeAsync(q->number, stream) : ABSENT; }

static CUresult do_info(struct request *q) {
	size_t f = 0, t = 0;
	CUresult r = cu.cuMemGetInfo_v2(&f, &t);
	snprintf(q->out, q->room, "%zu %zu", f, t);
	return r;
}

/* With one output, or none. */
static CUresult do_info_null(struct request *q) {
	size_t v = 0;
	CUresult r = cu.cuMemGetInfo_v2(!strcmp(q->name, "free") ? &v : NULL, !strcmp(q->name, "total") ? &v : NULL);
	say(q, v);
	return r;
}

static CUresult do_trim(struct request *q) { return cu.cuDeviceGraphMemTrim ? cu.cuDeviceGraphMemTrim((int)q->number) : ABSENT; }

/* Of the default pool's release. */
static CUresult do_threshold(struct request *q) {
	uint64_t v = q->number;
	void *default_pool;
	if (!cu.cuDeviceGetDefaultMemPool)
		return ABSENT;
	CUresult r = cu.cuDeviceGetDefaultMemPool(&default_pool, current_device());
	return r ? r : cu.cuMemPoolSetAttribute(default_pool, 4, &v);
}

static CUresult do_sync(struct request *q) {
	(void)q;
	return cu.cuCtxSynchronize();
}

static CUresult do_spin(struct request *q) { return launch(q->number, (int)(q->a ? q->a : 1)); }

/* Launches kernels of so many ns for so many ns; how many. */
static CUresult do_busy(struct request *q) {
	unsigned long long n = 0;
	CUresult r = 0;
	for (long long end = 0; !r && (end == 0 || now() < end); n++) {
		r = launch(q->number, 1);
		if (end == 0)
			end = now() + (long long)q->a;
	}
	say(q, n);
	return r;
}

static CUresult do_export(struct request *q) {
	CUipc h;
	CUresult r = cu.cuIpcGetMemHandle(&h, held[q->number].pointer);
	if (!r)
		say_bytes(q, h.bytes, 64);
	return r;
}

static CUresult do_import(struct request *q) {
	CUipc h;
	CUptr at = 0;
	for (int i = 0; i < 64; i++) {
		unsigned byte = 0;
		sscanf(q->name + 2 * i, "%2x", &byte);
		h.bytes[i] = (char)byte;
	}
	CUresult r = cu.cuIpcOpenMemHandle_v2(&at, h, 1);
	say(q, at);
	return r;
}

static CUresult do_close(struct request *q) { return cu.cuIpcCloseMemHandle(q->number); }

static CUresult do_write(struct request *q) {
	unsigned v = (unsigned)q->a;
	return cu.cuMemcpyHtoD_v2(q->number, &v, sizeof v);
}

static CUresult do_read(struct request *q) {
	unsigned v = 0;
	CUresult r = cu.cuMemcpyDtoH_v2(&v, q->number, sizeof v);
	say(q, v);
	return r;
}

/* The code that a child gets which touches the driver and ends by exit or _exit. "clone": a child made without fork's handlers, which
 * only ends, by exit. */
static CUresult do_fork(struct request *q) {
	int raw = !strcmp(q->name, "clone");
	pid_t child = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
	if (child == 0 && raw)
		exit(7);
	if (child == 0) {
		size_t f, t;
		CUptr p;
		CUresult r = cu.cuMemGetInfo_v2(&f, &t), s = cu.cuMemAlloc_v2(&p, 1 << 20);
		if (!strcmp(q->name, "exit"))
			exit(r == s ? r : 99);
		_exit(r == s ? r : 99);
	}
	int status = 0;
	waitpid(child, &status, 0);
	snprintf(q->out, q->room, "%d", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	return 0;
}

/* Answers, then becomes that program. */
static CUresult do_exec(struct request *q) {
	answer(0, "");
	execl(q->name, q->name, NULL);
	exit(98);
}

static CUresult do_clock(struct request *q) {
	say(q, (unsigned long long)now());
	return 0;
}

static CUresult do_sleep(struct request *q) {
	return nanosleep(&(struct timespec){(time_t)(q->number / 1000000000), (long)(q->number % 1000000000)}, NULL);
}

enum need { NOTHING, A_WAY, A_HELD };

static const struct { const char *word; CUresult (*run)(struct request *); enum need need; } commands[] = {
	{"init", do_init, NOTHING},         {"version", do_version, NOTHING},   {"count", do_count, NOTHING},
	{"uuid", do_uuid, NOTHING},         {"total", do_total, NOTHING},       {"retain", do_retain, NOTHING},
	{"release", do_release, NOTHING},   {"reset", do_reset, NOTHING},       {"context", do_context, NOTHING},
	{"destroy", do_destroy, NOTHING},   {"stream", do_stream, NOTHING},     {"take", do_take, A_WAY},
	{"fill", do_fill, A_WAY},           {"churn", do_churn, A_WAY},         {"thread", do_thread, A_WAY},
	{"give", do_give, A_HELD},          {"give-all", do_give_all, NOTHING}, {"pointer", do_pointer, A_HELD},
	{"free", do_free, NOTHING},         {"free-async", do_free_async, NOTHING}, {"info", do_info, NOTHING},
	{"info-null", do_info_null, NOTHING}, {"trim", do_trim, NOTHING},       {"threshold", do_threshold, NOTHING},
	{"sync", do_sync, NOTHING},         {"spin", do_spin, NOTHING},         {"busy", do_busy, NOTHING},
	{"export", do_export, A_HELD},      {"import", do_import, NOTHING},     {"close", do_close, NOTHING},
	{"write", do_write, NOTHING},       {"read", do_read, NOTHING},         {"fork", do_fork, NOTHING},
	{"exec", do_exec, NOTHING},         {"clock", do_clock, NOTHING},       {"sleep", do_sleep, NOTHING},
};

static CUresult obey(const char *line, char *out) {
	char word[32] = "", name[512] = "";
	struct request q = {.name = name, .out = out, .room = ROOM};
	sscanf(line, "%31s %511s %llu %llu", word, name, &q.a, &q.b);
	q.number = strtoull(name, NULL, 0);
	q.way = way_of(name);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		if (strcmp(commands[i].word, word))
			continue;
		if (commands[i].need == A_WAY && q.way && !has_way(q.way))
			return ABSENT;
		if ((commands[i].need == A_WAY && !q.way) || (commands[i].need == A_HELD && q.number >= (unsigned)count))
			return UNREADABLE;
		return commands[i].run(&q);
	}
	return UNREADABLE;
}

int main(int argc, char **argv) {
	static char line[4096], out[ROOM];
	if (api_load(argc > 1 ? argv[1] : "getproc"))
		return 3;
	while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n")) {
		*out = 0;
		CUresult r = obey(line, out);
		answer(r, out);
	}
	return 0;
}
