/* Events, and functions that the host runs in a stream's order. */
#include "driver.h"

#include "clock.h"
#include "graph.h"
#include "timeline.h"

#include <stdlib.h>

enum { TIMED_BEFORE_NS = 500, TIMED_AFTER_NS = 1600 }; /* what a timed event takes of a busy card, before and after its stamp; measured on an H200 */

CUresult cuEventCreate(CUevent *out, unsigned flags) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!out || flags > 7)
		return leave(ERR_VALUE);
	struct event *e = object_new(K_EVENT, sizeof *e);
	if (!e)
		return leave(ERR_MEMORY);
	e->flags = flags;
	e->timing = !(flags & 2);
	e->context = context_current();
	e->device = e->context->device;
	*out = e;
	return leave(OK);
}

CUresult cuEventDestroy_v2(CUevent e) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(e, K_EVENT))
		return leave(ERR_HANDLE);
	free(e->joins);
	e->joins = NULL;
	object_end(e);
	return leave(OK);
}

CUresult cuEventDestroy(CUevent e) { return cuEventDestroy_v2(e); }

CUresult cuEventRecord(CUevent e, CUstream stream) {
	CUresult r = enter(ANY);
	struct stream *s;
	if (r)
		return r;
	if (!is_kind(e, K_EVENT))
		return leave(ERR_HANDLE);
	if ((r = stream_get(stream, &s)) || (r = stream_ready(s)))
		return leave(r);
	if (s->context->device != e->device)
		return leave(ERR_HANDLE);
	if (s->capture)
		return leave(capture_record(s, e));
	if (e->timing && clock_is_virtual()) {
		pthread_mutex_unlock(&process.lock);
		clock_spend(RECORD_NS);
		pthread_mutex_lock(&process.lock);
		if (!is_kind(e, K_EVENT) || !is_kind(s, K_STREAM))
			return leave(ERR_DESTROYED);
	}
	int card = device_of(s->context)->card;
	/* The card stamps a timed event in the process's turn, and in a busy stream that takes it some time. */
	bool stamped = e->timing && clock_is_virtual();
	uint64_t tail = stream_tail(s), served = stamped ? timeline_served(process.shared, card, process.slot) : 0;
	bool costs = stamped && tail > served;
	e->recorded = true;
	e->capture = NULL;
	e->position = costs ? tail + TIMED_BEFORE_NS : stamped ? served + 1 : tail;
	e->host = s->host_tail;
	e->at = clock_now();
	e->finished = 0;
	s->after_kernel = s->after_kernel && !costs;
	if (stamped) {
		s->tail = e->position + (costs ? TIMED_AFTER_NS : 0);
		timeline_submit(process.shared, card, process.slot, s->tail);
	}
	return leave(OK);
}

CUresult cuEventRecordWithFlags(CUevent e, CUstream stream, unsigned flags) {
	return flags > 1 ? ERR_VALUE : cuEventRecord(e, stream);
}

/* When a done event's position was reached, kept from the first look on: the timeline forgets. */
static int64_t finished(struct event *e) {
	if (!e->finished) {
		int64_t when = timeline_when(process.shared, process.device[e->device].card, process.slot, e->position);
		e->finished = when > e->at ? when : e->at;
	}
	return e->finished;
}

static bool is_done(struct event *e) {
	if (!e->recorded)
		return true;
	if (!timeline_done(process.shared, process.device[e->device].card, process.slot, e->position) || !host_done(e->host))
		return false;
	finished(e);
	return true;
}

/* A captured event has no state of its own. */
static CUresult check(CUevent e) {
	if (!is_kind(e, K_EVENT))
		return ERR_HANDLE;
	if (e->capture && capture_is_live(e->capture, e->capture_id))
		return ERR_CAPTURED_EVENT;
	return OK;
}

CUresult cuEventQuery(CUevent e) {
	CUresult r = enter(UNSAFE);
	if (r)
		return r;
	if ((r = check(e)))
		return leave(r);
	bool done = is_done(e);
	leave(OK);
	clock_spend(QUERY_NS);
	return done ? OK : ERR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent e) {
	CUresult r = enter(UNSAFE);
	if (r)
		return r;
	if ((r = check(e)))
		return leave(r);
	int device = e->device;
	if (e->recorded)
		wait_position(device, e->position, e->host);
	device_settle(device);
	return leave(OK);
}

CUresult cuEventElapsedTime(float *out, CUevent from, CUevent to) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out)
		return leave(ERR_VALUE);
	if ((r = check(from)) || (r = check(to)))
		return leave(r);
	if (!from->timing || !to->timing || !from->recorded || !to->recorded)
		return leave(ERR_HANDLE);
	if (!is_done(from) || !is_done(to))
		return leave(ERR_NOT_READY);
	*out = (float)(finished(to) - finished(from)) / 1e6f;
	return leave(OK);
}

CUresult cuEventElapsedTime_v2(float *out, CUevent from, CUevent to) { return cuEventElapsedTime(out, from, to); }

CUresult cuStreamWaitEvent(CUstream stream, CUevent e, unsigned flags) {
	CUresult r = enter(ANY);
	struct stream *s;
	if (r)
		return r;
	if (!is_kind(e, K_EVENT))
		return leave(ERR_HANDLE);
	if (flags > 1)
		return leave(ERR_VALUE);
	if ((r = stream_get(stream, &s)))
		return leave(r);
	if (s->capture || (e->capture && capture_is_live(e->capture, e->capture_id)))
		return leave(capture_wait(s, e));
	if ((r = stream_ready(s)))
		return leave(r);
	if (e->recorded && e->device == s->context->device && e->position > s->tail)
		s->tail = e->position;
	if (e->recorded && e->host > s->host_tail)
		s->host_tail = e->host;
	return leave(OK);
}

struct call {
	struct call *next;
	int device;
	uint64_t position, number;
	CUhostFn fn;
	CUstreamCallback callback;
	CUstream stream;
	void *data;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct call *first, **end;
	uint64_t queued;
	_Atomic uint64_t done;
	bool started;
} host = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static void *run_calls(void *unused) {
	(void)unused;
	for (;;) {
		pthread_mutex_lock(&host.lock);
		while (!host.first)
			pthread_cond_wait(&host.more, &host.lock);
		struct call *c = host.first;
		if (!(host.first = c->next))
			host.end = &host.first;
		pthread_mutex_unlock(&host.lock);
		timeline_wait(process.shared, process.device[c->device].card, process.slot, c->position);
		if (c->callback)
			c->callback(c->stream, OK, c->data);
		else
			c->fn(c->data);
		host.done = c->number;
		free(c);
	}
	return NULL;
}

bool host_done(uint64_t number) {
	return host.done >= number;
}

CUresult host_call(struct stream *s, CUhostFn fn, CUstreamCallback callback, void *data) {
	struct call *c = calloc(1, sizeof *c);
	if (!c)
		return ERR_MEMORY;
	pthread_mutex_lock(&host.lock);
	if (!host.started) {
		pthread_t thread;
		host.end = &host.first;
		host.started = pthread_create(&thread, NULL, run_calls, NULL) == 0;
		if (host.started)
			pthread_detach(thread);
	}
	*c = (struct call){.device = s->context->device, .position = s->tail, .number = ++host.queued, .fn = fn,
	                   .callback = callback, .stream = s, .data = data};
	s->host_tail = c->number;
	*host.end = c;
	host.end = &c->next;
	pthread_cond_signal(&host.more);
	pthread_mutex_unlock(&host.lock);
	return OK;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *data) {
	CUresult r = enter(ANY);
	struct stream *s;
	if (r)
		return r;
	if (!fn)
		return leave(ERR_VALUE);
	if ((r = stream_get(stream, &s)) || (r = stream_ready(s)))
		return leave(r);
	if (!s->capture)
		return leave(host_call(s, fn, NULL, data));
	struct node *n = capture_node(s, N_HOST, &r);
	if (n) {
		n->fn = fn;
		n->data = data;
	}
	return leave(r);
}

CUresult cuLaunchHostFunc_v2(CUstream stream, CUhostFn fn, void *data, unsigned mode) {
	(void)mode;
	return cuLaunchHostFunc(stream, fn, data);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned flags) {
	CUresult r = enter(ANY);
	struct stream *s;
	if (r)
		return r;
	if (!callback || flags)
		return leave(ERR_VALUE);
	if ((r = stream_get(stream, &s)))
		return leave(r);
	if (s->capture) {
		capture_break(s, ERR_CAPTURE_UNSUPPORTED);
		return leave(ERR_CAPTURE_UNSUPPORTED);
	}
	return leave(host_call(s, NULL, callback, data));
}
