/* Graphs made ready to run, and the device memory of their allocation nodes. */
#include "graph.h"

#include "clock.h"
#include "timeline.h"

#include <stdlib.h>

enum { AUTO_FREE = 1, UPLOAD = 2, DEVICE_LAUNCH = 4 };

struct exec { struct head head; struct graph *graph; const struct graph *source; unsigned long long flags; };

static uint64_t memory_of(size_t size) {
	return (size + 511) / 512 * 512;
}

CUresult graph_alloc_address(struct node *n) {
	struct block *b = block_new(B_GRAPH, n->alloc.size, n->alloc.props.location.id);
	if (!b)
		return ERR_MEMORY;
	b->released = true;
	b->references = 1;
	n->alloc.pointer = b->base;
	return OK;
}

void graph_address_keep(CUdeviceptr p) {
	struct block *b = block_at(p);
	if (b)
		b->references++;
}

void graph_address_drop(CUdeviceptr p) {
	struct block *b = block_at(p);
	if (b && b->kind == B_GRAPH && --b->references == 0 && b->released)
		block_end(b);
}

CUresult graph_memory_free(struct block *b) {
	if (b->released)
		return ERR_VALUE;
	b->released = true;
	process.device[b->device].graph_used -= memory_of(b->size);
	if (!b->references)
		block_end(b);
	return OK;
}

static CUresult graph_memory_take(struct block *b) {
	struct device *d = &process.device[b->device];
	uint64_t need = d->graph_used + memory_of(b->size);
	if (need > d->graph_reserved) {
		uint64_t more = (need - d->graph_reserved + GRANULE - 1) / GRANULE * GRANULE;
		CUresult r = memory_charge(b->device, more);
		if (r)
			return r;
		d->graph_reserved += more;
	}
	d->graph_used = need;
	if (d->graph_used > d->graph_used_high)
		d->graph_used_high = d->graph_used;
	if (d->graph_reserved > d->graph_reserved_high)
		d->graph_reserved_high = d->graph_reserved;
	b->released = false;
	return OK;
}

static CUresult instantiate(CUgraphExec *out, CUgraph g, unsigned long long flags) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!out || !is_kind(g, K_GRAPH))
		return leave(ERR_VALUE);
	if (flags & DEVICE_LAUNCH)
		return leave(ERR_SUPPORTED);
	struct exec *e = object_new(K_EXEC, sizeof *e);
	if (!e)
		return leave(ERR_MEMORY);
	struct graph *made = object_new(K_GRAPH, sizeof *made);
	if (!made)
		return leave(ERR_MEMORY);
	made->end = &made->nodes;
	for (struct node *n = g->nodes; n; n = n->next) {
		struct node *m;
		if ((r = node_new(made, n->type, NULL, 0, &m)))
			return leave(r);
		struct node **needs = m->needs;
		*m = *n;
		m->graph = made;
		m->next = NULL;
		m->needs = needs;
		m->need_count = 0;
		m->copy_of = n;
		m->child = NULL;
		if (m->type == N_ALLOC)
			graph_address_keep(m->alloc.pointer);
		for (struct node *k = n->child ? n->child->nodes : NULL; k; k = k->next)
			m->work.ns += k->work.ns;
	}
	e->graph = made;
	e->source = g;
	e->flags = flags;
	*out = e;
	return leave(OK);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags) { return instantiate(out, g, flags); }

static CUresult with_log(CUgraphExec *out, CUgraph g, CUgraphNode *error, char *log, size_t size) {
	if (error)
		*error = NULL;
	if (log && size)
		*log = 0;
	return instantiate(out, g, 0);
}

CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph g, CUgraphNode *error, char *log, size_t size) {
	return with_log(out, g, error, log, size);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph g, CUgraphNode *error, char *log, size_t size) {
	return with_log(out, g, error, log, size);
}

struct instantiate_params { unsigned long long flags; CUstream upload; CUgraphNode error; int result; };

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph g, struct instantiate_params *p) {
	if (!p)
		return ERR_VALUE;
	CUresult r = instantiate(out, g, p->flags & ~(unsigned long long)UPLOAD);
	p->error = NULL;
	p->result = r ? 1 : 0;
	return r;
}

CUresult cuGraphExecDestroy(CUgraphExec e) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(e, K_EXEC))
		return leave(ERR_VALUE);
	graph_end(e->graph);
	object_end(e);
	return leave(OK);
}

CUresult cuGraphExecGetFlags(CUgraphExec e, unsigned long long *out) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out || !is_kind(e, K_EXEC))
		return leave(ERR_VALUE);
	*out = e->flags;
	return leave(OK);
}

/* Give back what the first `count` nodes of a launch that failed took. */
static void undo(struct exec *e, const struct node *failed) {
	for (struct node *n = e->graph->nodes; n && n != failed; n = n->next) {
		struct block *b = n->type == N_ALLOC ? block_at(n->alloc.pointer) : NULL;
		if (b && !b->released)
			graph_memory_free(b);
	}
}

/* The order of the nodes is the order they were added in, so an allocation comes before what needs it. */
static CUresult take_memory(struct exec *e) {
	for (struct node *n = e->graph->nodes; n; n = n->next) {
		struct block *b = n->type == N_ALLOC || n->type == N_FREE ? block_at(n->alloc.pointer) : NULL;
		CUresult r = OK;
		if (b && n->type == N_ALLOC) {
			if (!b->released && !(e->flags & AUTO_FREE))
				r = ERR_VALUE;
			else if (!b->released)
				graph_memory_free(b);
			if (!r)
				r = graph_memory_take(b);
		} else if (b)
			r = block_free(b);
		if (r) {
			undo(e, n);
			return r;
		}
	}
	return OK;
}

static CUresult record_child(struct stream *s, const struct exec *e) {
	CUresult r;
	struct node *n = capture_node(s, N_GRAPH, &r);
	for (struct node *k = n ? e->graph->nodes : NULL; k; k = k->next)
		n->work.ns += k->work.ns;
	return r;
}

CUresult cuGraphLaunch(CUgraphExec e, CUstream stream) {
	CUresult r = enter(CONTEXT);
	struct stream *s;
	if (r)
		return r;
	if (!is_kind(e, K_EXEC))
		return leave(ERR_VALUE);
	if ((r = stream_get(stream, &s)) || (r = stream_ready(s)))
		return leave(r);
	if (s->capture)
		return leave(record_child(s, e));
	if ((r = take_memory(e)))
		return leave(r);
	if ((r = stream_launch(s)))
		return leave(r);
	bool begun = false;
	for (struct node *n = e->graph->nodes; n && !r; n = n->next) {
		if (n->work.ns && !n->disabled) {
			struct work work = n->work;
			work.early = begun; /* the gap between two nodes is short */
			begun = true;
			stream_add(s, &work);
		}
		if (n->type == N_HOST) {
			r = host_call(s, n->fn, NULL, n->data);
		} else if (n->type == N_EVENT_RECORD && is_kind(n->event, K_EVENT)) {
			n->event->recorded = true;
			n->event->capture = NULL;
			n->event->position = s->tail;
			n->event->host = s->host_tail;
			n->event->at = clock_now();
			n->event->finished = 0;
		}
	}
	stream_launched(s);
	return leave(r);
}

CUresult cuGraphUpload(CUgraphExec e, CUstream stream) {
	CUresult r = enter(CONTEXT);
	struct stream *s;
	if (r)
		return r;
	if (!is_kind(e, K_EXEC))
		return leave(ERR_VALUE);
	return leave(stream_get(stream, &s));
}

/* The new graph must have the same nodes in the same order. */
static CUresult update(CUgraphExec e, CUgraph g) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(e, K_EXEC) || !is_kind(g, K_GRAPH))
		return leave(ERR_VALUE);
	struct node *n = e->graph->nodes, *m = g->nodes;
	for (; n && m && n->type == m->type; n = n->next, m = m->next)
		;
	if (n || m)
		return leave(ERR_UPDATE);
	for (n = e->graph->nodes, m = g->nodes; n; n = n->next, m = m->next) {
		n->work = m->work;
		n->kernel = m->kernel;
		n->fn = m->fn;
		n->data = m->data;
		n->event = m->event;
	}
	return leave(OK);
}

CUresult cuGraphExecUpdate(CUgraphExec e, CUgraph g, CUgraphNode *error, int *result) {
	CUresult r = update(e, g);
	if (error)
		*error = NULL;
	if (result)
		*result = r == OK ? 0 : 1;
	return r;
}

struct update_info { int result; CUgraphNode error, from; };

CUresult cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g, struct update_info *out) {
	CUresult r = update(e, g);
	if (out)
		*out = (struct update_info){r == OK ? 0 : 1, NULL, NULL};
	return r;
}

static CUresult set_params(CUgraphExec e, CUgraphNode of, const struct kernel_params *p) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!is_kind(e, K_EXEC) || !p)
		return leave(ERR_VALUE);
	for (struct node *n = e->graph->nodes; n; n = n->next)
		if (n->copy_of == of && n->type == N_KERNEL && is_kind(p->function, K_FUNCTION))
			return leave(kernel_work(p->function, p->grid, p->block, p->params, p->extra, context_current()->device, &n->work));
	return leave(ERR_VALUE);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec e, CUgraphNode n, const struct kernel_params *p) { return set_params(e, n, p); }
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec e, CUgraphNode n, const struct kernel_params *p) { return set_params(e, n, p); }

static CUresult device_check(CUdevice device) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	return device >= 0 && device < process.devices ? OK : leave(ERR_DEVICE);
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
	CUresult r = device_check(device);
	if (r)
		return r;
	struct device *d = &process.device[device];
	uint64_t keep = (d->graph_used + GRANULE - 1) / GRANULE * GRANULE;
	if (d->graph_reserved > keep) {
		memory_refund(device, d->graph_reserved - keep);
		d->graph_reserved = keep;
	}
	return leave(OK);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, uint64_t *out) {
	CUresult r = device_check(device);
	if (r)
		return r;
	const struct device *d = &process.device[device];
	const uint64_t values[] = {d->graph_used, d->graph_used_high, d->graph_reserved, d->graph_reserved_high};
	if (!out || attribute < 0 || attribute > 3)
		return leave(ERR_VALUE);
	*out = values[attribute];
	return leave(OK);
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, int attribute, const uint64_t *value) {
	CUresult r = device_check(device);
	if (r)
		return r;
	struct device *d = &process.device[device];
	if (!value || *value || (attribute != 1 && attribute != 3))
		return leave(ERR_VALUE);
	if (attribute == 1)
		d->graph_used_high = d->graph_used;
	else
		d->graph_reserved_high = d->graph_reserved;
	return leave(OK);
}

void device_settle(int device) {
	pools_settle(device);
}
