/* This process's records in the region, and those of processes that died. No lock: a record belongs to the process
   whose identity stands in core_process.owner, and changes hands by compare-and-swap. */
#ifndef VGPU_PROCESS_H
#define VGPU_PROCESS_H

#include "region.h"

#include <sys/types.h>

/* The record of this process, taken at the first call; -1 if nothing is configured. */
int process_slot(void);

/* Gives the records of dead processes back. Looks at most once per interval unless forced. Returns how many it found. */
int process_reap(bool force);

/* Whether the process of a record lives, as far as can be told from here. */
bool process_alive(const struct region *region, uint32_t slot);

/* The record of a process by its id in this PID namespace, -1 if it has none. */
int process_slot_of(const struct region *region, pid_t pid);

/* Whether this process sees the host's PID namespace, and so the processes of other containers. */
bool process_sees_host(void);

#endif
