/* The two shared files of a container, mapped; or private memory in their place where they cannot be used. */
#ifndef VGPU_REGION_H
#define VGPU_REGION_H

#include "region_layout.h"

#include <stdbool.h>

struct region {
  struct region_file *file;
  struct core_header *header;
  struct core_card *cards;
  struct core_process *processes;
  bool shared;              /* false: this process alone */
  char core_path[4096 + 8];
};

/* Opens or makes the files at the first call; NULL when nothing is configured. */
const struct region *region_get(void);

/* Goes over to private memory with the limits in force now: for a container with more processes than slots. */
void region_go_private(void);

/* Faults of core_header.faults. */
void region_count_fault(void);

/* Cards known to the region, never more than REGION_CARDS. */
int region_cards(const struct region *region);

/* Memory limit of a card now, at most its size; 0 none. */
uint64_t region_memory_limit(const struct region *region, int card);

/* Core limit of a card now, percent; 100 none. */
uint64_t region_core_limit(const struct region *region, int card);

/* UUID of a card as a string that ends, whatever stands in the file. */
void region_uuid(const struct region *region, int card, char uuid[96]);

#endif
