/* Where a launch finds its place on the card.
 *
 * Work in one stream runs in order, with a gap that the card needs between two kernels; kernels of several streams of one context run
 * side by side as long as their threads fit on the card, each slower the more blocks an SM holds. Places are given in the order of
 * the launches: what comes later delays nothing that came before. Work of another context of the process waits for all that is there. */
#include "driver.h"

#include "timeline.h"

#include <stdlib.h>

/* Measured on an H200, with blocks of 128 threads. */
enum { GAP_NS = 1500, EARLY_GAP_NS = 700 };
enum { SLOWER_PERMILLE = 105 }; /* by each further block on an SM: four streams get 4 / 1.315 */
enum { SM_THREADS = 2048 };

static uint64_t most(uint64_t a, uint64_t b) {
	return a > b ? a : b;
}

static void note(const struct device *d, const struct place *p) {
	struct block *b = block_find(p->work.log);
	if (!b)
		return;
	block_keep(b);
	uint64_t room = data_at(p->work.log, b->size) / sizeof(uint64_t), *log = (uint64_t *)(uintptr_t)p->work.log;
	if (room < 2 || log[0] * 2 + 4 > room)
		return;
	log[2 + 2 * log[0]] = (uint64_t)timeline_when(process.shared, d->card, process.slot, p->start);
	log[3 + 2 * log[0]] = (uint64_t)timeline_when(process.shared, d->card, process.slot, p->end);
	log[0]++;
}

static void forget_done(struct device *d, uint64_t served) {
	size_t kept = 0;
	for (size_t i = 0; i < d->place_count; i++) {
		if (d->places[i].end > served)
			d->places[kept++] = d->places[i];
		else if (d->places[i].work.log)
			note(d, &d->places[i]);
	}
	d->place_count = kept;
}

void schedule_done(int device) {
	struct device *d = &process.device[device];
	if (d->place_count)
		forget_done(d, timeline_served(process.shared, d->card, process.slot));
}

static void keep(struct device *d, const struct place *p) {
	if (d->place_count == d->place_room) {
		size_t room = d->place_room ? 2 * d->place_room : LAUNCH_DEPTH;
		struct place *more = realloc(d->places, room * sizeof *more);
		if (!more)
			return;
		d->places = more;
		d->place_room = room;
	}
	d->places[d->place_count++] = *p;
}

uint64_t schedule(struct stream *s, const struct work *work) {
	struct device *d = device_of(s->context);
	uint64_t served = timeline_served(process.shared, d->card, process.slot), tail = stream_tail(s);
	if (s != s->context->legacy && s->context->legacy && !(s->flags & 1))
		tail = most(tail, s->context->legacy->tail);
	if (d->last_context != s->context)
		tail = most(tail, d->tail);
	uint64_t start = most(tail, served) + (work->early && s->after_kernel && tail > served ? EARLY_GAP_NS : GAP_NS), end = start + work->ns;
	forget_done(d, served);
	if (work->blocks) {
		uint64_t sms = (uint64_t)card_of(s->context->device)->sms, room = sms * SM_THREADS, blocks, threads, next;
		uint64_t own = (uint64_t)work->blocks * work->threads;
		for (;;) {
			blocks = work->blocks, threads = own < room ? own : room, next = 0;
			for (size_t i = 0; i < d->place_count; i++) {
				const struct place *p = &d->places[i];
				if (p->start > start || p->end <= start)
					continue;
				blocks += p->work.blocks;
				threads += most((uint64_t)p->work.blocks * p->work.threads, 1);
				next = next && next < p->end ? next : p->end;
			}
			if (threads <= room || !next)
				break;
			start = next;
		}
		uint64_t beside = blocks - work->blocks, free = sms > work->blocks ? sms - work->blocks : 0;
		uint64_t crowd = beside > free ? beside - free : 0;
		end = start + work->ns + work->ns * crowd * SLOWER_PERMILLE / sms / 1000;
		keep(d, &(struct place){start, end, *work});
	}
	d->last_context = s->context;
	d->tail = most(d->tail, end);
	return end;
}
