/* Time as the core limit counts it: ns of CLOCK_MONOTONIC, the same for all containers of a host. */
#ifndef VGPU_CORE_TIME_H
#define VGPU_CORE_TIME_H

#include <stdint.h>
#include <time.h>

enum { MICROSECOND = 1000, MILLISECOND = 1000000, SECOND = 1000000000 };

static inline int64_t core_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

/* Sleeps until then, with the thread's timer slack lowered meanwhile: the usual 50 us would be felt. */
void core_sleep_until(int64_t when);

#endif
