/* Answers libc's clocks and sleeps by the virtual clock. Preloaded beside the program: LD_PRELOAD=libvtime.so. */
#define _GNU_SOURCE
#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EPOCH 1700000000000000000LL /* what the calendar says when virtual time is 0 */

static int is_answered(clockid_t clock) {
	return clock_is_virtual() && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_MONOTONIC_COARSE
	                              || clock == CLOCK_BOOTTIME || clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE);
}

/* VGPUCTL_FAKE_CALENDAR=jumps: somebody sets the calendar every second, an hour forth and back. */
static int64_t offset_of(clockid_t clock) {
	if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
		return 0;
	return EPOCH + (getenv("VGPUCTL_FAKE_CALENDAR") && clock_now() / 1000000000 % 2 ? 3600000000000LL : 0);
}

int clock_gettime(clockid_t clock, struct timespec *out) {
	if (!is_answered(clock))
		return (int)syscall(SYS_clock_gettime, clock, out);
	clock_spend(LOOK_NS);
	int64_t now = clock_now() + offset_of(clock);
	*out = (struct timespec){now / 1000000000, now % 1000000000};
	return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
	struct timespec t;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	*out = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
	return 0;
}

time_t time(time_t *out) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left) {
	if (!is_answered(clock))
		return syscall(SYS_clock_nanosleep, clock, flags, wanted, left) ? errno : 0;
	int64_t ns = wanted->tv_sec * 1000000000LL + wanted->tv_nsec;
	clock_sleep_until(flags & TIMER_ABSTIME ? ns - offset_of(clock) : clock_now() + ns);
	return 0;
}

int nanosleep(const struct timespec *wanted, struct timespec *left) {
	int e = clock_nanosleep(CLOCK_MONOTONIC, 0, wanted, left);
	errno = e ? e : errno;
	return e ? -1 : 0;
}

int usleep(useconds_t us) {
	return nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

unsigned sleep(unsigned seconds) {
	nanosleep(&(struct timespec){seconds, 0}, NULL);
	return 0;
}
