/* The simulation's time: the machine's monotonic clock, or a virtual one (VGPUCTL_FAKE_TIME=virtual).
 *
 * Virtual time is one number that all processes of the simulated machine share. It moves only when every thread that takes part
 * waits, and then straight to the first one's end, so a run gives the same figures on any machine, however busy. A thread takes
 * part from its first wait on; one that blocks elsewhere (a lock, a pipe) does not hold time up. Computing takes no time, but what
 * a program may repeat without waiting does: a launch, a question about a stream, a look at the clock.
 * With VGPUCTL_FAKE_THREADS=N time stands still until N threads take part, so that programs begin together. */
#ifndef FAKE_CLOCK_H
#define FAKE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

bool clock_is_virtual(void);
int64_t clock_now(void); /* ns */
void clock_sleep_until(int64_t when);
/* In virtual time, the calling thread's work takes so long. Nothing in real time. Not with a lock held. */
void clock_spend(int64_t ns);

enum { LAUNCH_NS = 2500, RECORD_NS = 1200, QUERY_NS = 300, LOOK_NS = 25 }; /* a launch, a timed event, a question: as measured on an H200 */

#endif
