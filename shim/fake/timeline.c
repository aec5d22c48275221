#include "timeline.h"

#include "clock.h"

#include <string.h>

#define TURN_NS 2000000  /* the driver's time slice, measured on an H200: 2.09 ms */
#define SWITCH_NS 150000 /* and what a change of process costs */

static uint64_t pending(const struct state *s, int card, int slot) {
	const struct usage *u = &s->slot[slot].card[card];
	return u->submitted - u->served;
}

static bool is_active(const struct state *s, int slot) {
	return s->active[slot / 64] >> slot % 64 & 1;
}

/* The next slot with work after `from`, or -1; `from` itself comes last. */
static int next_busy(const struct state *s, int card, int from) {
	int first = -1;
	for (int i = -1; (i = state_next(s, i)) >= 0;) {
		if (!pending(s, card, i))
			continue;
		if (i > from)
			return i;
		if (first < 0)
			first = i;
	}
	return first;
}

static void note(struct timeline *t, int slot, int64_t from, int64_t to, uint64_t served) {
	struct segment *last = t->segments ? &t->log[(t->segments - 1) % SEGMENTS] : NULL;
	if (last && last->slot == slot && last->to == from && last->served + (uint64_t)(last->to - last->from) == served)
		last->to = to;
	else
		t->log[t->segments++ % SEGMENTS] = (struct segment){from, to, served, slot};
}

static void advance(struct state *s, int card, int64_t now) {
	struct timeline *t = &s->timeline[card];
	while (t->now < now) {
		bool has = t->current >= 0 && is_active(s, t->current) && pending(s, card, t->current);
		if (!has || t->now >= t->turn_ends) {
			int next = next_busy(s, card, t->current);
			if (next < 0) {
				t->now = now;
				break;
			}
			if (next != t->current && t->current >= 0)
				t->now += SWITCH_NS;
			t->current = next;
			t->turn_ends = t->now + TURN_NS;
			continue;
		}
		struct usage *u = &s->slot[t->current].card[card];
		int64_t run = (int64_t)pending(s, card, t->current);
		if (run > t->turn_ends - t->now)
			run = t->turn_ends - t->now;
		if (run > now - t->now)
			run = now - t->now;
		note(t, t->current, t->now, t->now + run, u->served);
		u->served += (uint64_t)run;
		t->now += run;
	}
}

static int others_busy(const struct state *s, int card, int slot) {
	int n = 0;
	for (int i = -1; (i = state_next(s, i)) >= 0;)
		if (i != slot && pending(s, card, i))
			n++;
	return n;
}

uint64_t timeline_served(struct state *s, int card, int slot) {
	state_lock(s);
	advance(s, card, clock_now());
	uint64_t served = s->slot[slot].card[card].served;
	state_unlock(s);
	return served;
}

void timeline_submit(struct state *s, int card, int slot, uint64_t position) {
	struct usage *u = &s->slot[slot].card[card];
	state_lock(s);
	advance(s, card, clock_now());
	if (position > u->submitted)
		u->submitted = position;
	state_unlock(s);
}

bool timeline_done(struct state *s, int card, int slot, uint64_t position) {
	const struct usage *u = &s->slot[slot].card[card];
	state_lock(s);
	advance(s, card, clock_now());
	bool done = u->served >= position;
	state_unlock(s);
	return done;
}

void timeline_wait(struct state *s, int card, int slot, uint64_t position) {
	const struct usage *u = &s->slot[slot].card[card];
	for (;;) {
		state_lock(s);
		int64_t now = clock_now();
		advance(s, card, now);
		if (u->served >= position) {
			state_unlock(s);
			return;
		}
		struct timeline *t = &s->timeline[card];
		int64_t left = (int64_t)(position - u->served);
		int others = others_busy(s, card, slot);
		if (others) { /* wake at changes: new work of others can come at any time */
			state_reap(s);
			int64_t turn = t->turn_ends - t->now, work = t->current < 0 ? 0 : (int64_t)pending(s, card, t->current);
			if (t->current != slot || left > turn)
				left = (work < turn ? work : turn) + SWITCH_NS;
			if (left > TURN_NS / 2 || left <= 0)
				left = TURN_NS / 2;
		}
		int64_t wake = (t->now > now ? t->now : now) + left;
		state_unlock(s);
		clock_sleep_until(wake);
	}
}

int64_t timeline_when(struct state *s, int card, int slot, uint64_t position) {
	struct timeline *t = &s->timeline[card];
	int64_t when = 0;
	state_lock(s);
	uint64_t oldest = t->segments > SEGMENTS ? t->segments - SEGMENTS : 0;
	for (uint64_t i = t->segments; i-- > oldest;) {
		const struct segment *g = &t->log[i % SEGMENTS];
		when = g->from;
		if (g->slot == slot && g->served < position) {
			uint64_t end = g->served + (uint64_t)(g->to - g->from);
			when = position <= end ? g->from + (int64_t)(position - g->served) : g->to;
			break;
		}
	}
	state_unlock(s);
	return when;
}

int64_t timeline_busy(struct state *s, int card, int slot, int64_t window) {
	struct timeline *t = &s->timeline[card];
	int64_t busy = 0;
	state_lock(s);
	int64_t now = clock_now();
	advance(s, card, now);
	uint64_t oldest = t->segments > SEGMENTS ? t->segments - SEGMENTS : 0;
	for (uint64_t i = t->segments; i-- > oldest;) {
		const struct segment *g = &t->log[i % SEGMENTS];
		if (g->to < now - window)
			break;
		if (slot < 0 || g->slot == slot)
			busy += g->to - (g->from > now - window ? g->from : now - window);
	}
	state_unlock(s);
	return busy;
}
