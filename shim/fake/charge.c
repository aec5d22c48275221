/* Device memory as the card sees it: who holds how much. */
#include "driver.h"

const struct card *card_of(int device) {
	return &cards_get()->card[process.device[device].card];
}

static uint64_t slice_used(struct state *s, int card, int slice) {
	uint64_t sum = 0;
	for (int i = -1; (i = state_next(s, i)) >= 0;)
		sum += s->slot[i].card[card].slice_bytes[slice];
	return sum;
}

/* With the state locked. */
static uint64_t room(int device, uint64_t *total) {
	struct state *s = process.shared;
	const struct device *d = &process.device[device];
	const struct card *c = card_of(device);
	uint64_t all = d->slice < 0 ? c->memory - c->reserved : c->slice[d->slice].memory;
	uint64_t used = d->slice < 0 ? state_used(s, d->card) : slice_used(s, d->card, d->slice);
	if (total)
		*total = all;
	return used < all ? all - used : 0;
}

CUresult memory_charge(int device, uint64_t bytes) {
	struct state *s = process.shared;
	const struct device *d = &process.device[device];
	CUresult r = OK;
	state_lock(s);
	if (room(device, NULL) < bytes) {
		state_reap(s);
		if (room(device, NULL) < bytes)
			r = ERR_MEMORY;
	}
	if (!r) {
		struct usage *u = &s->slot[process.slot].card[d->card];
		u->bytes += bytes;
		if (d->slice >= 0)
			u->slice_bytes[d->slice] += bytes;
	}
	state_unlock(s);
	return r;
}

void memory_refund(int device, uint64_t bytes) {
	struct state *s = process.shared;
	const struct device *d = &process.device[device];
	state_lock(s);
	struct usage *u = &s->slot[process.slot].card[d->card];
	u->bytes -= bytes;
	if (d->slice >= 0)
		u->slice_bytes[d->slice] -= bytes;
	state_unlock(s);
}

void memory_figures(int device, uint64_t *free_bytes, uint64_t *total) {
	state_lock(process.shared);
	state_reap(process.shared);
	*free_bytes = room(device, total);
	state_unlock(process.shared);
}

static uint64_t granules(uint64_t bytes) {
	return (bytes + GRANULE - 1) / GRANULE * GRANULE;
}

CUresult memory_charge_small(struct context *c, uint64_t bytes) {
	uint64_t more = granules(c->small + bytes) - granules(c->small);
	CUresult r = more ? memory_charge(c->device, more) : OK;
	if (!r)
		c->small += bytes;
	return r;
}

void memory_refund_small(struct context *c, uint64_t bytes) {
	uint64_t less = granules(c->small) - granules(c->small - bytes);
	c->small -= bytes;
	if (less)
		memory_refund(c->device, less);
}
