/* A process on the GPU that does what it is told: one command a line on standard input, one answer a line on standard output,
 * "CODE [VALUE]...". CODE is the driver's result, -1 when this driver has no such function, -2 for a command that cannot be read.
 *
 * What was allocated is kept in order; free N and the likes name it by its number. */
#define _GNU_SOURCE
#include "api.h"
#include "ways.h"

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

static struct held held[MAX_HELD];
static int count;

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
	if (j->way->by_handle) {
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
