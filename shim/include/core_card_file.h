/* The file in which the containers of one card agree on whose turn it is: /tmp/vgpulock/<UUID>.turns.

   Any tenant can write to it, cut it short, replace it or hold its lock. So it is never mapped (touching what was cut off
   would kill the program): it is read and written by system calls, about a microsecond each time, some thousand times a
   second at most and only where several tenants are busy. What is read is a hint; its times are bounded. */
#ifndef VGPU_CORE_CARD_FILE_H
#define VGPU_CORE_CARD_FILE_H

#include "region_layout.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct card_handle {
  int fd; /* -1 closed; 0 never opened */
  dev_t device;
  ino_t inode;
  int64_t next_open, next_check;
  int64_t refused; /* since when the lock has not been to be had; 0 it was */
  int refusals;
};

/* Reads the whole file, opening or making it if need be. False: there is none to be used now. */
bool card_file_read(struct card_handle *handle, const char *uuid, int64_t now, struct card_file *file);

/* Writes one tenant's record. */
void card_file_write(const struct card_handle *handle, int slot, const struct card_tenant *tenant);

/* Puts `turn` into the place of the one whose word is `expected`. False: it is another one's by now, or the lock was not
   to be had. */
bool card_file_swap(struct card_handle *handle, uint64_t expected, const struct card_turn *turn, int64_t now);

/* The record of this owner, or one that nobody has used for `stale` ns, now this owner's; -1 none. */
int card_file_slot(struct card_handle *handle, const struct card_tenant *tenant, int64_t stale, int64_t now);

#endif
