#include "core_time.h"

#include <sys/prctl.h>

static const unsigned long slack = MICROSECOND;

void core_sleep_until(int64_t when) {
  int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  if (before > 0) prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
  struct timespec time = {when / SECOND, when % SECOND};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
  if (before > 0) prctl(PR_SET_TIMERSLACK, (unsigned long)before, 0, 0, 0);
}
