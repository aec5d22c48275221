/* What the environment asks for. Read once, when the process first touches CUDA or NVML. */
#ifndef VGPU_SETTINGS_H
#define VGPU_SETTINGS_H

#include "region_layout.h"

#include <stdbool.h>
#include <stdint.h>

struct settings {
  bool active;             /* a region or a limit is configured and control is not switched off */
  char region[4096];       /* path; "" when limits are set without one */
  bool default_region;     /* the path was not named by the environment */
  uint64_t memory[REGION_CARDS]; /* bytes, 0 none */
  uint64_t cores[REGION_CARDS];  /* percent, 100 none */
  uint32_t memory_named, cores_named; /* bit i: the environment names this limit of card i */
  uint32_t policy;         /* CORE_POLICY_* */
};

const struct settings *settings_get(void);

/* Whether the kernel marks this process as privileged (setuid): then this library does nothing but pass on. */
bool settings_secure(void);

/* Bytes of "4g", "5120m", "1024k", "4Gi" or plain bytes; false if the text is none of these. */
bool settings_parse_memory(const char *text, uint64_t *bytes);

#endif
