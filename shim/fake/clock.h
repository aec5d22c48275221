/* The simulation's time: the machine's monotonic clock, or a virtual one that only moves when everybody waits. */
#ifndef FAKE_CLOCK_H
#define FAKE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

bool clock_is_virtual(void); /* VGPUCTL_FAKE_TIME=virtual */
int64_t clock_now(void);     /* ns */
void clock_sleep_until(int64_t when);

#endif
