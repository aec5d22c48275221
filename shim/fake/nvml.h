/* The part of NVML's ABI that the simulated library speaks, and what its sources share. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include "state.h"
#include "timeline.h"

typedef int nvmlReturn_t;
typedef struct handle *nvmlDevice_t;

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, TOO_SMALL = 7, NOT_LOADED = 9,
       NO_FUNCTION = 13, BAD_VERSION = 25, UNKNOWN = 999 };

struct handle { int card, slice; }; /* slice: the MIG device, -1: the card */

/* The handle is one of ours and the library is initialised. */
nvmlReturn_t nvml_check(nvmlDevice_t handle, const void *out);
nvmlReturn_t nvml_ready(void);
const struct card *nvml_card(nvmlDevice_t handle);
struct state *nvml_state(void);
nvmlDevice_t nvml_handle(int card, int slice);
nvmlReturn_t nvml_text(char *out, unsigned size, const char *text);

#endif
