#define _GNU_SOURCE
#include "clock.h"

#include "state.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHORT_NS 60000 /* a sleep takes about as long to wake up */

bool clock_is_virtual(void) {
	const char *v = getenv("VGPUCTL_FAKE_TIME");
	return v && !strcmp(v, "virtual");
}

static int64_t real_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int64_t clock_now(void) {
	return real_now();
}

void clock_sleep_until(int64_t when) {
	while (when - clock_now() > SHORT_NS) {
		int64_t target = when - SHORT_NS / 2;
		struct timespec t = {target / 1000000000, target % 1000000000};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
	while (clock_now() < when)
		sched_yield();
}
