/* The bucket of a card: one shared 64-bit word, the time up to which the container's compute time is spoken for (GCRA).

   Work of m ns moves it by m / limit. While it lies behind the present the container has credit, at most `most`; while
   it lies before it, the container is in debt. Nothing has to be filled up, and a killed process leaves nothing to repair. */
#ifndef VGPU_CORE_BUCKET_H
#define VGPU_CORE_BUCKET_H

#include <stdint.h>

/* Takes away what credit there is: time without a limit earns none. */
void core_bucket_start(uint64_t *word, int64_t now);

/* Charges compute time, ns; a negative one is given back. percent: 1 to 99. */
void core_bucket_charge(uint64_t *word, int64_t now, int64_t busy, unsigned percent, int64_t most);

/* Credit in ns of wall time; negative: debt. A word that makes no sense (left from before a restart, or scribbled over) is
   set to the present. */
int64_t core_bucket_credit(uint64_t *word, int64_t now, int64_t most);

#endif
