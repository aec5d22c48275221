/* Memory of all processes of the container on a card, against the card's limit.

   Each process writes its own claims only. To ask for memory it first announces the amount as `trying`, then adds up
   everybody's claims: two processes that ask at once see each other, so they never both pass a full limit. If they are
   in each other's way only by what they try, the lower record goes first. Nothing here can be left locked. */
#ifndef VGPU_CLAIM_H
#define VGPU_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

/* Claims bytes if all claims stay within the limit; otherwise nothing changes. */
bool claim_try(int card, uint64_t bytes);

/* Around a call of the driver that takes claimed memory: what of this process's claims the driver may or may not have
   taken yet. */
void claim_departs(int card, uint64_t bytes);
void claim_landed(int card, uint64_t bytes);

/* Claims bytes that are taken already, whatever the limit. */
void claim_add(int card, uint64_t bytes);

/* Gives bytes back. */
void claim_return(int card, uint64_t bytes);

/* Sets what contexts and modules of this process take. */
void claim_context(int card, uint64_t bytes);

/* What this process claims for its allocations, and how much of it is under way. */
uint64_t claim_data(int card);
uint64_t claim_under_way(int card);

/* What all processes of the container claim. */
uint64_t claim_used(int card);

/* In a forked child: whatever thread of the parent was judging is not here. */
void claim_forget(void);

#endif
