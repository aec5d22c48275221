/* Streams and waiting. */
#include "driver.h"

#include "clock.h"
#include "graph.h"
#include "timeline.h"

#include <stdlib.h>

static _Thread_local bool null_is_own;

void fake_null_is_own(int on);
void fake_null_is_own(int on) {
	null_is_own = on;
}

static struct stream *stream_new(struct context *c, unsigned flags, int priority) {
	struct stream *s = object_new(K_STREAM, sizeof *s);
	if (!s)
		return NULL;
	s->context = c;
	s->flags = flags;
	s->priority = priority;
	s->id = ++process.next_id;
	s->next = c->streams;
	c->streams = s;
	return s;
}

static struct stream *own_stream(struct context *c) {
	static _Thread_local struct { struct context *context; unsigned long long id; struct stream *stream; } last;
	if (last.context == c && last.id == c->id && is_kind(last.stream, K_STREAM))
		return last.stream;
	struct stream *s = stream_new(c, 0, 0);
	if (s)
		s->own = true;
	last.context = c;
	last.id = c->id;
	last.stream = s;
	return s;
}

CUresult stream_get(CUstream handle, struct stream **out) {
	struct context *c = context_current();
	if (!handle && null_is_own)
		handle = STREAM_PER_THREAD;
	if (handle == NULL || handle == STREAM_LEGACY || handle == STREAM_PER_THREAD) {
		CUresult r = context_check(c);
		if (r)
			return r;
		if (handle == STREAM_PER_THREAD)
			*out = own_stream(c);
		else {
			if (!c->legacy)
				c->legacy = stream_new(c, 0, 0);
			*out = c->legacy;
		}
		return *out ? OK : ERR_MEMORY;
	}
	if (!is_kind(handle, K_STREAM))
		return ERR_HANDLE;
	*out = handle;
	return OK;
}

CUresult stream_ready(struct stream *s) {
	if (s->capture)
		return s->capture->broken ? ERR_CAPTURE_INVALIDATED : OK;
	return process.captures && capture_implicit(s) ? ERR_CAPTURE_IMPLICIT : OK;
}

/* The legacy stream waits for all blocking ones of its context. */
uint64_t stream_tail(const struct stream *s) {
	uint64_t tail = s->tail;
	if (s == s->context->legacy)
		for (const struct stream *o = s->context->streams; o; o = o->next)
			if (!(o->flags & 1) && o->tail > tail)
				tail = o->tail;
	return tail;
}

void streams_end(struct context *c) {
	for (struct stream *s = c->streams, *next; s; s = next) {
		next = s->next;
		free(s->joins);
		object_end(s);
	}
	c->streams = c->legacy = NULL;
}

CUresult stream_launch(struct stream *s) {
	struct device *d = device_of(s->context);
	int card = d->card;
	uint64_t oldest = d->launch_position[d->launched % LAUNCH_DEPTH];
	if (oldest && !timeline_done(process.shared, card, process.slot, oldest)) {
		pthread_mutex_unlock(&process.lock);
		timeline_wait(process.shared, card, process.slot, oldest);
		pthread_mutex_lock(&process.lock);
		if (!is_kind(s, K_STREAM))
			return ERR_DESTROYED;
	}
	if (clock_is_virtual()) { /* the card learns of it when the call is nearly done */
		pthread_mutex_unlock(&process.lock);
		clock_spend(LAUNCH_NS);
		pthread_mutex_lock(&process.lock);
		if (!is_kind(s, K_STREAM))
			return ERR_DESTROYED;
	}
	return OK;
}

void stream_add(struct stream *s, const struct work *work) {
	s->tail = schedule(s, work);
	s->after_kernel = work->blocks != 0;
	timeline_submit(process.shared, device_of(s->context)->card, process.slot, s->tail);
}

void stream_launched(struct stream *s) {
	struct device *d = device_of(s->context);
	d->launch_position[d->launched++ % LAUNCH_DEPTH] = s->tail;
}

CUresult stream_work(struct stream *s, const struct work *work) {
	CUresult r = stream_launch(s);
	if (r)
		return r;
	stream_add(s, work);
	stream_launched(s);
	return OK;
}

/* Wait, with the lock released, for the device to reach a position and for a host function to have run. */
CUresult wait_position(int device, uint64_t position, uint64_t host) {
	int card = process.device[device].card;
	pthread_mutex_unlock(&process.lock);
	timeline_wait(process.shared, card, process.slot, position);
	while (!host_done(host))
		clock_sleep_until(clock_now() + 20000);
	pthread_mutex_lock(&process.lock);
	schedule_done(device);
	return OK;
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!out || flags > 1)
		return leave(ERR_VALUE);
	*out = stream_new(context_current(), flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
	return leave(*out ? OK : ERR_MEMORY);
}

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
	return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream s) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(s, K_STREAM) || s->own || s == s->context->legacy)
		return leave(ERR_HANDLE);
	if (s->capture)
		capture_break(s, ERR_CAPTURE_INVALIDATED);
	for (struct stream **p = &s->context->streams; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			break;
		}
	free(s->joins);
	s->joins = NULL;
	object_end(s);
	return leave(OK);
}

CUresult cuStreamDestroy(CUstream s) { return cuStreamDestroy_v2(s); }

/* A question or wait that a capture does not allow breaks the capture. */
static CUresult outside_capture(CUstream handle, struct stream **out) {
	CUresult r = stream_get(handle, out);
	if (r)
		return r;
	if ((*out)->capture) {
		capture_break(*out, ERR_CAPTURE_UNSUPPORTED);
		return ERR_CAPTURE_UNSUPPORTED;
	}
	if (process.captures && capture_implicit(*out)) {
		capture_break(*out, ERR_CAPTURE_IMPLICIT);
		return ERR_CAPTURE_IMPLICIT;
	}
	return OK;
}

CUresult cuStreamSynchronize(CUstream handle) {
	CUresult r = enter(ANY);
	struct stream *s;
	if (r)
		return r;
	if ((r = outside_capture(handle, &s)))
		return leave(r);
	int device = s->context->device;
	wait_position(device, stream_tail(s), s->host_tail);
	device_settle(device);
	return leave(OK);
}

CUresult cuStreamQuery(CUstream handle) {
	CUresult r = enter(ANY);
	struct stream *s;
	if (r)
		return r;
	if ((r = outside_capture(handle, &s)))
		return leave(r);
	bool done = timeline_done(process.shared, device_of(s->context)->card, process.slot, stream_tail(s)) && host_done(s->host_tail);
	leave(OK);
	clock_spend(QUERY_NS);
	return done ? OK : ERR_NOT_READY;
}

static CUresult synchronize(struct context *c) {
	if (process.captures && capture_forbids())
		return ERR_CAPTURE_UNSUPPORTED;
	uint64_t tail = 0, host = 0;
	for (struct stream *s = c->streams; s; s = s->next) {
		tail = s->tail > tail ? s->tail : tail;
		host = s->host_tail > host ? s->host_tail : host;
	}
	int device = c->device;
	wait_position(device, tail, host);
	device_settle(device);
	return OK;
}

CUresult cuCtxSynchronize(void) {
	CUresult r = enter(CONTEXT);
	return r ? r : leave(synchronize(context_current()));
}

CUresult cuCtxSynchronize_v2(CUcontext c) {
	CUresult r = enter(c ? ANY : CONTEXT);
	if (r)
		return r;
	if (c && !is_kind(c, K_CONTEXT))
		return leave(ERR_CONTEXT);
	return leave(synchronize(c ? c : context_current()));
}

static CUresult about(CUstream handle, const void *out, struct stream **s) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out)
		return leave(ERR_VALUE);
	r = stream_get(handle, s);
	return r ? leave(r) : OK;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *out) {
	struct stream *s;
	CUresult r = about(handle, out, &s);
	if (r)
		return r;
	*out = s->context;
	return leave(OK);
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *out, void **green) {
	if (green)
		*green = NULL;
	return cuStreamGetCtx(handle, out);
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *out) {
	struct stream *s;
	CUresult r = about(handle, out, &s);
	if (r)
		return r;
	*out = s->context->device;
	return leave(OK);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *out) {
	struct stream *s;
	CUresult r = about(handle, out, &s);
	if (r)
		return r;
	*out = s->flags;
	return leave(OK);
}

CUresult cuStreamGetPriority(CUstream handle, int *out) {
	struct stream *s;
	CUresult r = about(handle, out, &s);
	if (r)
		return r;
	*out = s->priority;
	return leave(OK);
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *out) {
	struct stream *s;
	CUresult r = about(handle, out, &s);
	if (r)
		return r;
	*out = s->id;
	return leave(OK);
}
