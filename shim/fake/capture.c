/* Streams that record: what a capture allows, who belongs to it, and how it ends. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CAPTURES 256

static struct capture captures[MAX_CAPTURES]; /* in use while .graph is set */
static unsigned long long next_capture = 1;
static _Thread_local int thread_mode; /* 0 global, 1 of the thread, 2 relaxed */

static const void *this_thread(void) {
	static _Thread_local char mark;
	return &mark;
}

bool capture_is_live(const struct capture *c, unsigned long long id) {
	return c->graph && c->id == id;
}

bool capture_forbids(void) {
	bool forbidden = false;
	for (int i = 0; i < MAX_CAPTURES && thread_mode != 2; i++) {
		struct capture *c = &captures[i];
		bool mine = c->thread == this_thread() && c->mode != 2;
		if (c->graph && (mine || (thread_mode == 0 && c->mode == 0))) {
			c->broken = true;
			forbidden = true;
		}
	}
	return forbidden;
}

/* Work on the legacy stream would wait for a blocking stream that records. */
bool capture_implicit(const struct stream *s) {
	if (s != s->context->legacy)
		return false;
	for (const struct stream *o = s->context->streams; o; o = o->next)
		if (o->capture && !(o->flags & 1) && o->capture->mode != 2)
			return true;
	return false;
}

void capture_break(struct stream *s, CUresult why) {
	(void)why;
	if (s->capture)
		s->capture->broken = true;
	for (struct stream *o = s == s->context->legacy ? s->context->streams : NULL; o; o = o->next)
		if (o->capture && !(o->flags & 1))
			o->capture->broken = true;
}

static CUresult set_joins(struct node ***joins, size_t *count, struct node *const *from, size_t n, bool add) {
	size_t kept = add ? *count : 0;
	struct node **all = realloc(*joins, (kept + n + 1) * sizeof *all);
	if (!all)
		return ERR_MEMORY;
	for (size_t i = 0; i < n; i++) {
		bool there = false;
		for (size_t j = 0; j < kept; j++)
			there |= all[j] == from[i];
		if (!there)
			all[kept++] = from[i];
	}
	*joins = all;
	*count = kept;
	return OK;
}

struct node *capture_node(struct stream *s, enum node_type type, CUresult *r) {
	struct node *n = NULL;
	*r = s->capture->broken ? ERR_CAPTURE_INVALIDATED : node_new(s->capture->graph, type, s->joins, s->join_count, &n);
	if (n)
		*r = set_joins(&s->joins, &s->join_count, &n, 1, false);
	return n;
}

CUresult capture_record(struct stream *s, struct event *e) {
	if (s->capture->broken)
		return ERR_CAPTURE_INVALIDATED;
	e->capture = s->capture;
	e->capture_id = s->capture->id;
	e->recorded = true;
	return set_joins(&e->joins, &e->join_count, s->joins, s->join_count, false);
}

CUresult capture_wait(struct stream *s, struct event *e) {
	struct capture *of = e->capture && capture_is_live(e->capture, e->capture_id) ? e->capture : NULL;
	if (s->capture && s->capture->broken)
		return ERR_CAPTURE_INVALIDATED;
	if (!of) {
		if (!e->recorded)
			return OK;
		s->capture->broken = true;
		return ERR_CAPTURE_ISOLATION;
	}
	if (of->broken)
		return ERR_CAPTURE_INVALIDATED;
	if (s->capture && s->capture != of) {
		s->capture->broken = of->broken = true;
		return ERR_CAPTURE_MERGE;
	}
	if (s == s->context->legacy) {
		of->broken = true;
		return ERR_CAPTURE_IMPLICIT;
	}
	bool joining = !s->capture;
	s->capture = of;
	return set_joins(&s->joins, &s->join_count, e->joins, e->join_count, !joining);
}

static CUresult begin(CUstream handle, int mode, struct graph *given, struct node *const *needs, size_t count) {
	struct stream *s;
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (mode < 0 || mode > 2)
		return leave(ERR_VALUE);
	if ((r = stream_get(handle, &s)))
		return leave(r);
	if (s == s->context->legacy)
		return leave(ERR_CAPTURE_UNSUPPORTED);
	if (s->capture)
		return leave(ERR_STATE);
	struct capture *c = captures;
	while (c < captures + MAX_CAPTURES && c->graph)
		c++;
	if (c == captures + MAX_CAPTURES)
		return leave(ERR_MEMORY);
	struct graph *g = given;
	if (!g) {
		g = object_new(K_GRAPH, sizeof *g);
		if (!g)
			return leave(ERR_MEMORY);
		g->end = &g->nodes;
	}
	*c = (struct capture){.graph = g, .origin = s, .mode = mode, .thread = this_thread(), .id = next_capture++, .given = given != NULL};
	g->capturing = true;
	s->capture = c;
	process.captures++;
	return leave(set_joins(&s->joins, &s->join_count, needs, count, false));
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) { return begin(stream, mode, NULL, NULL, 0); }
CUresult cuStreamBeginCapture(CUstream stream) { return begin(stream, 0, NULL, NULL, 0); }

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph g, CUgraphNode const *needs, const void *edges, size_t count, int mode) {
	(void)edges;
	return is_kind(g, K_GRAPH) && (needs || !count) ? begin(stream, mode, g, needs, count) : ERR_VALUE;
}

/* Every branch must have come back: no node that nothing follows but those the origin stands at. */
static bool is_joined(const struct capture *c) {
	for (const struct node *n = c->graph->nodes; n; n = n->next) {
		bool followed = false;
		for (size_t i = 0; i < c->origin->join_count; i++)
			followed |= c->origin->joins[i] == n;
		for (const struct node *o = n->next; o && !followed; o = o->next)
			for (size_t i = 0; i < o->need_count; i++)
				followed |= o->needs[i] == n;
		if (!followed)
			return false;
	}
	return true;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *out) {
	struct stream *s;
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out)
		return leave(ERR_VALUE);
	*out = NULL;
	if ((r = stream_get(handle, &s)))
		return leave(r);
	struct capture *c = s->capture;
	if (!c)
		return leave(ERR_STATE);
	if (c->mode != 2 && c->thread != this_thread())
		return leave(ERR_CAPTURE_THREAD);
	if (c->origin != s)
		r = ERR_CAPTURE_UNMATCHED;
	else if (c->broken)
		r = ERR_CAPTURE_INVALIDATED;
	else if (!is_joined(c))
		r = ERR_CAPTURE_UNJOINED;
	for (struct context *x = process.contexts; x; x = x->next)
		for (struct stream *o = x->streams; o; o = o->next)
			if (o->capture == c) {
				o->capture = NULL;
				o->join_count = 0;
			}
	struct graph *g = c->graph;
	g->capturing = false;
	c->graph = NULL;
	process.captures--;
	if (!r)
		*out = g;
	else if (!c->given)
		graph_end(g);
	return leave(r);
}

static CUresult info(CUstream handle, int *status, unsigned long long *id, CUgraph *graph, CUgraphNode const **needs, size_t *count) {
	struct stream *s;
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!status)
		return leave(ERR_VALUE);
	if ((r = stream_get(handle, &s)))
		return leave(r);
	if (!s->capture && process.captures && capture_implicit(s))
		return leave(ERR_CAPTURE_IMPLICIT);
	*status = s->capture ? s->capture->broken ? 2 : 1 : 0;
	if (id && s->capture)
		*id = s->capture->id;
	if (graph && s->capture)
		*graph = s->capture->graph;
	if (needs)
		*needs = s->joins;
	if (count)
		*count = s->capture ? s->join_count : 0;
	return leave(OK);
}

CUresult cuStreamIsCapturing(CUstream s, int *status) { return info(s, status, NULL, NULL, NULL, NULL); }

CUresult cuStreamGetCaptureInfo(CUstream s, int *status, unsigned long long *id) { return info(s, status, id, NULL, NULL, NULL); }

CUresult cuStreamGetCaptureInfo_v2(CUstream s, int *status, unsigned long long *id, CUgraph *graph, CUgraphNode const **needs,
                                   size_t *count) {
	return info(s, status, id, graph, needs, count);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream s, int *status, unsigned long long *id, CUgraph *graph, CUgraphNode const **needs,
                                   const void **edges, size_t *count) {
	if (edges)
		*edges = NULL;
	return info(s, status, id, graph, needs, count);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *needs, size_t count, unsigned flags) {
	struct stream *s;
	CUresult r = enter(ANY);
	if (r)
		return r;
	if ((r = stream_get(handle, &s)))
		return leave(r);
	if (!s->capture)
		return leave(ERR_STATE);
	return leave(flags > 1 ? ERR_VALUE : set_joins(&s->joins, &s->join_count, needs, count, flags == 0));
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream s, CUgraphNode *needs, const void *edges, size_t count, unsigned flags) {
	(void)edges;
	return cuStreamUpdateCaptureDependencies(s, needs, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
	if (!mode || *mode < 0 || *mode > 2)
		return ERR_VALUE;
	int before = thread_mode;
	thread_mode = *mode;
	*mode = before;
	return OK;
}
