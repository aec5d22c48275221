#define _GNU_SOURCE
#include "clock.h"

#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SHORT_NS 60000   /* a real sleep takes about as long to wake up */
#define POLL_NS 1000000  /* how often a waiting thread looks whether the others are blocked */
#define BLOCKED_LOOKS 3

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t leaving;
static bool is_virtual;
static unsigned long awaited;
static _Thread_local struct thread_record *own;

static int thread_id(void) {
	return (int)syscall(SYS_gettid);
}

static void leave_thread(void *record) {
	struct thread_record *r = record;
	if (r->tid == thread_id())
		r->tid = 0;
}

static void forget_in_child(void) {
	own = NULL;
}

static void choose(void) {
	const char *v = getenv("VGPUCTL_FAKE_TIME");
	is_virtual = v && !strcmp(v, "virtual") && state_get();
	if (is_virtual) {
		const char *n = getenv("VGPUCTL_FAKE_THREADS");
		awaited = n ? strtoul(n, NULL, 10) : 0;
		pthread_key_create(&leaving, leave_thread);
		pthread_atfork(NULL, NULL, forget_in_child);
	}
}

bool clock_is_virtual(void) {
	pthread_once(&once, choose);
	return is_virtual;
}

/* System calls, because a library that answers clock_gettime may stand before libc's. */
static int64_t real_now(void) {
	struct timespec t;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int64_t clock_now(void) {
	return clock_is_virtual() ? state_get()->clock.now : real_now();
}

static void futex(_Atomic uint32_t *word, int operation, uint32_t value, int64_t timeout_ns) {
	struct timespec t = {timeout_ns / 1000000000, timeout_ns % 1000000000};
	syscall(SYS_futex, word, operation, value, timeout_ns ? &t : NULL, NULL, 0);
}

static void lock(struct shared_clock *c) {
	if (pthread_mutex_lock(&c->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&c->lock);
}

/* The calling thread's record; the libraries of one process have it in common. */
static struct thread_record *own_record(struct shared_clock *c) {
	if (own)
		return own;
	int tid = thread_id();
	struct thread_record *free_one = NULL;
	for (int i = MAX_THREADS; i-- > 0 && !own;) {
		if (c->thread[i].tid == tid)
			own = &c->thread[i];
		else if (!c->thread[i].tid)
			free_one = &c->thread[i];
	}
	if (!own && free_one) {
		own = free_one;
		*own = (struct thread_record){.tid = tid};
	}
	pthread_setspecific(leaving, own);
	return own;
}

/* The kernel's letter for what the thread does; 0 when it is gone. */
static char kernel_state(int tid) {
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/%d/stat", tid);
	int f = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = f >= 0 ? read(f, text, sizeof text - 1) : -1;
	if (f >= 0)
		close(f);
	if (n <= 0)
		return 0;
	text[n] = 0;
	const char *end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : 0;
}

/* The first end of a wait, or 0 while some thread runs. `look`: ask the kernel about those that do not wait here. */
static int64_t next_end(struct shared_clock *c, bool look) {
	int64_t first = INT64_MAX;
	unsigned long there = 0;
	for (int i = 0; i < MAX_THREADS; i++) {
		struct thread_record *t = &c->thread[i];
		if (!t->tid)
			continue;
		there++;
		if (t->until > c->now) {
			first = t->until < first ? t->until : first;
			continue;
		}
		if (look) { /* one whose wait is over is about to run, unless somebody stopped or killed it */
			char state = kernel_state(t->tid);
			t->blocked = state == 'R' || (t->until && state == 'S') ? 0 : t->blocked + 1;
			if (state == 0 || state == 'Z' || state == 'X')
				*t = (struct thread_record){0};
		}
		if (t->tid && t->blocked < BLOCKED_LOOKS)
			return 0;
	}
	if (!c->begun && there < awaited)
		return 0;
	c->begun = 1;
	return first == INT64_MAX ? 0 : first;
}

static void virtual_sleep_until(struct shared_clock *c, int64_t when) {
	bool look = false;
	lock(c);
	struct thread_record *me = own_record(c);
	if (!me) { /* more threads than there is room for: this one does not hold time up */
		pthread_mutex_unlock(&c->lock);
		return;
	}
	me->until = when;
	me->blocked = 0;
	while (c->now < when) {
		int64_t next = next_end(c, look);
		if (next) {
			c->now = next;
			c->moves++;
			if (c->now < when) {
				futex(&c->moves, FUTEX_WAKE, INT32_MAX, 0);
				look = false;
			}
			continue;
		}
		uint32_t seen = c->moves;
		pthread_mutex_unlock(&c->lock);
		futex(&c->moves, FUTEX_WAIT, seen, POLL_NS);
		lock(c);
		look = c->moves == seen;
	}
	me->until = 0;
	pthread_mutex_unlock(&c->lock);
}

void clock_sleep_until(int64_t when) {
	if (clock_is_virtual()) {
		virtual_sleep_until(&state_get()->clock, when);
		return;
	}
	while (when - real_now() > SHORT_NS) {
		int64_t target = when - SHORT_NS / 2;
		struct timespec t = {target / 1000000000, target % 1000000000};
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
	while (real_now() < when)
		sched_yield();
}

void clock_spend(int64_t ns) {
	if (clock_is_virtual())
		clock_sleep_until(clock_now() + ns);
}
