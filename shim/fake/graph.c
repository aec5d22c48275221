/* Graphs and their nodes. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

CUresult node_new(struct graph *g, enum node_type type, struct node *const *needs, size_t count, struct node **out) {
	for (size_t i = 0; i < count; i++)
		if (!is_kind(needs[i], K_NODE) || needs[i]->graph != g)
			return ERR_VALUE;
	struct node *n = object_new(K_NODE, sizeof *n);
	if (!n || !(n->needs = calloc(count + 1, sizeof *n->needs)))
		return ERR_MEMORY;
	if (count)
		memcpy(n->needs, needs, count * sizeof *n->needs);
	n->need_count = count;
	n->type = type;
	n->graph = g;
	*g->end = n;
	g->end = &n->next;
	g->count++;
	*out = n;
	return OK;
}

static void node_end(struct node *n) {
	if (n->type == N_ALLOC)
		graph_address_drop(n->alloc.pointer);
	if (n->child)
		graph_end(n->child);
	free(n->needs);
	n->needs = NULL;
	object_end(n);
}

void graph_end(struct graph *g) {
	for (struct node *n = g->nodes, *next; n; n = next) {
		next = n->next;
		node_end(n);
	}
	object_end(g);
}

static struct graph *graph_new(void) {
	struct graph *g = object_new(K_GRAPH, sizeof *g);
	if (g)
		g->end = &g->nodes;
	return g;
}

static CUresult copy(const struct graph *from, struct graph **out) {
	struct graph *g = graph_new();
	if (!g)
		return ERR_MEMORY;
	for (struct node *n = from->nodes; n; n = n->next) {
		struct node *m;
		CUresult r = node_new(g, n->type, NULL, 0, &m);
		if (r)
			return r;
		struct node *next = m->next, **needs = m->needs;
		*m = *n;
		m->graph = g;
		m->next = next;
		m->copy_of = n;
		free(needs);
		m->needs = calloc(n->need_count + 1, sizeof *m->needs);
		for (size_t i = 0; m->needs && i < n->need_count; i++)
			for (struct node *o = g->nodes; o; o = o->next)
				if (o->copy_of == n->needs[i])
					m->needs[i] = o;
		if (n->child && (r = copy(n->child, &m->child)))
			return r;
	}
	*out = g;
	return OK;
}

CUresult cuGraphCreate(CUgraph *out, unsigned flags) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out || flags)
		return leave(ERR_VALUE);
	*out = graph_new();
	return leave(*out ? OK : ERR_MEMORY);
}

CUresult cuGraphDestroy(CUgraph g) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(g, K_GRAPH) || g->child)
		return leave(ERR_VALUE);
	graph_end(g);
	return leave(OK);
}

CUresult cuGraphClone(CUgraph *out, CUgraph g) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out || !is_kind(g, K_GRAPH))
		return leave(ERR_VALUE);
	for (struct node *n = g->nodes; n; n = n->next)
		if (n->type == N_ALLOC || n->type == N_FREE)
			return leave(ERR_SUPPORTED);
	return leave(copy(g, out));
}

/* The start of every cuGraphAdd*: OK with the node made and the lock held. */
static CUresult add(CUgraphNode *out, CUgraph g, enum node_type type, CUgraphNode const *needs, size_t count, const void *params) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out || !is_kind(g, K_GRAPH) || (count && !needs) || !params)
		return leave(ERR_VALUE);
	r = node_new(g, type, needs, count, out);
	return r ? leave(r) : OK;
}

static CUresult set_kernel(struct node *n, const struct kernel_params *p, bool long_form) {
	struct function *f = p->function ? p->function : long_form ? (struct function *)p->kernel : NULL;
	struct context *c = context_current() ? context_current() : process.contexts;
	if (!is_kind(f, K_FUNCTION) || !c)
		return ERR_VALUE;
	memcpy(n->kernel.grid, p->grid, sizeof n->kernel.grid);
	memcpy(n->kernel.block, p->block, sizeof n->kernel.block);
	n->kernel.shared = p->shared;
	n->kernel.function = f;
	return kernel_work(f, p->grid, p->block, p->params, p->extra, c->device, &n->work);
}

static CUresult drop_last(struct graph *g, CUresult why) {
	struct node **p = &g->nodes;
	while (*p && (*p)->next)
		p = &(*p)->next;
	if (*p) {
		node_end(*p);
		*p = NULL;
		g->end = p;
		g->count--;
	}
	return why;
}

static CUresult add_kernel(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count, const struct kernel_params *p, bool long_form) {
	CUresult r = add(out, g, N_KERNEL, needs, count, p);
	if (r)
		return r;
	r = set_kernel(*out, p, long_form);
	return leave(r ? drop_last(g, r) : OK);
}

CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count, const struct kernel_params *p) {
	return add_kernel(out, g, needs, count, p, false);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count, const struct kernel_params *p) {
	return add_kernel(out, g, needs, count, p, true);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count) {
	CUresult r = add(out, g, N_EMPTY, needs, count, g);
	return r ? r : leave(OK);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count, const void *p, CUcontext c) {
	(void)c;
	CUresult r = add(out, g, N_MEMCPY, needs, count, p);
	return r ? r : leave(OK);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count, const void *p, CUcontext c) {
	(void)c;
	CUresult r = add(out, g, N_MEMSET, needs, count, p);
	return r ? r : leave(OK);
}

struct host_params { CUhostFn fn; void *data; };

CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count, const struct host_params *p) {
	CUresult r = add(out, g, N_HOST, needs, count, p);
	if (r)
		return r;
	(*out)->fn = p->fn;
	(*out)->data = p->data;
	return leave(OK);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count, CUgraph child) {
	if (!is_kind(child, K_GRAPH))
		return ERR_VALUE;
	CUresult r = add(out, g, N_GRAPH, needs, count, child);
	if (r)
		return r;
	r = copy(child, &(*out)->child);
	if (!r)
		(*out)->child->child = true;
	return leave(r);
}

static CUresult add_event(CUgraphNode *out, CUgraph g, enum node_type type, CUgraphNode const *needs, size_t count, CUevent e) {
	if (!is_kind(e, K_EVENT))
		return ERR_VALUE;
	CUresult r = add(out, g, type, needs, count, e);
	if (r)
		return r;
	(*out)->event = e;
	return leave(OK);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count, CUevent e) {
	return add_event(out, g, N_EVENT_RECORD, needs, count, e);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count, CUevent e) {
	return add_event(out, g, N_EVENT_WAIT, needs, count, e);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count, struct alloc_node_params *p) {
	CUresult r = add(out, g, N_ALLOC, needs, count, p);
	if (r)
		return r;
	(*out)->alloc = *p;
	if (!p->size || p->props.location.type != LOCATION_DEVICE || p->props.location.id < 0 || p->props.location.id >= process.devices)
		r = ERR_VALUE;
	else
		r = graph_alloc_address(*out);
	if (r)
		return leave(drop_last(g, r));
	p->pointer = (*out)->alloc.pointer;
	return leave(OK);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count, CUdeviceptr pointer) {
	CUresult r = add(out, g, N_FREE, needs, count, g);
	if (r)
		return r;
	(*out)->alloc.pointer = pointer;
	struct block *b = block_at(pointer);
	return leave(b && b->kind == B_GRAPH ? OK : drop_last(g, ERR_VALUE));
}

/* CUgraphNodeParams: the type at 0, the kind's own parameters at 16. */
CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, const void *edges, size_t count, char *params) {
	(void)edges;
	if (!params)
		return ERR_VALUE;
	void *own = params + 16;
	switch (*(int *)params) {
	case N_KERNEL: return add_kernel(out, g, needs, count, own, true);
	case N_MEMCPY: return cuGraphAddMemcpyNode(out, g, needs, count, own, NULL);
	case N_MEMSET: return cuGraphAddMemsetNode(out, g, needs, count, own, NULL);
	case N_HOST: return cuGraphAddHostNode(out, g, needs, count, own);
	case N_GRAPH: return cuGraphAddChildGraphNode(out, g, needs, count, *(CUgraph *)own);
	case N_EMPTY: return cuGraphAddEmptyNode(out, g, needs, count);
	case N_EVENT_WAIT: return cuGraphAddEventWaitNode(out, g, needs, count, *(CUevent *)own);
	case N_EVENT_RECORD: return cuGraphAddEventRecordNode(out, g, needs, count, *(CUevent *)own);
	case N_ALLOC: return cuGraphAddMemAllocNode(out, g, needs, count, own);
	case N_FREE: return cuGraphAddMemFreeNode(out, g, needs, count, *(CUdeviceptr *)own);
	default: return ERR_SUPPORTED;
	}
}

CUresult cuGraphAddNode(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, size_t count, char *params) {
	return cuGraphAddNode_v2(out, g, needs, NULL, count, params);
}

CUresult cuGraphAddNode_v3(CUgraphNode *out, CUgraph g, CUgraphNode const *needs, const void *edges, size_t count, char *params) {
	return cuGraphAddNode_v2(out, g, needs, edges, count, params);
}

CUresult cuGraphDestroyNode(CUgraphNode n) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(n, K_NODE))
		return leave(ERR_VALUE);
	struct graph *g = n->graph;
	for (struct node **p = &g->nodes; *p;) {
		if (*p == n) {
			*p = n->next;
			continue;
		}
		for (size_t i = 0; i < (*p)->need_count; i++)
			if ((*p)->needs[i] == n)
				(*p)->needs[i--] = (*p)->needs[--(*p)->need_count];
		p = &(*p)->next;
	}
	g->end = &g->nodes;
	while (*g->end)
		g->end = &(*g->end)->next;
	g->count--;
	node_end(n);
	return leave(OK);
}

CUresult cuGraphAddDependencies(CUgraph g, CUgraphNode const *from, CUgraphNode const *to, size_t count) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(g, K_GRAPH))
		return leave(ERR_VALUE);
	for (size_t i = 0; i < count; i++) {
		if (!is_kind(from[i], K_NODE) || !is_kind(to[i], K_NODE))
			return leave(ERR_VALUE);
		struct node **more = realloc(to[i]->needs, (to[i]->need_count + 2) * sizeof *more);
		if (!more)
			return leave(ERR_MEMORY);
		to[i]->needs = more;
		more[to[i]->need_count++] = from[i];
	}
	return leave(OK);
}

CUresult cuGraphAddDependencies_v2(CUgraph g, CUgraphNode const *from, CUgraphNode const *to, const void *edges, size_t count) {
	(void)edges;
	return cuGraphAddDependencies(g, from, to, count);
}

static CUresult list(CUgraph g, CUgraphNode *out, size_t *count, bool roots) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(g, K_GRAPH) || !count)
		return leave(ERR_VALUE);
	size_t n = 0;
	for (struct node *p = g->nodes; p; p = p->next)
		if (!roots || !p->need_count) {
			if (out && n < *count)
				out[n] = p;
			n++;
		}
	for (size_t i = n; out && i < *count; i++)
		out[i] = NULL;
	*count = out && n > *count ? *count : n;
	return leave(OK);
}

CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *out, size_t *count) { return list(g, out, count, false); }
CUresult cuGraphGetRootNodes(CUgraph g, CUgraphNode *out, size_t *count) { return list(g, out, count, true); }

static CUresult about(const struct node *n, const void *out) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	return is_kind(n, K_NODE) && out ? OK : leave(ERR_VALUE);
}

CUresult cuGraphNodeGetType(CUgraphNode n, int *out) {
	CUresult r = about(n, out);
	if (r)
		return r;
	*out = (int)n->type;
	return leave(OK);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode n, CUgraphNode *out, size_t *count) {
	CUresult r = about(n, count);
	if (r)
		return r;
	for (size_t i = 0; out && i < *count; i++)
		out[i] = i < n->need_count ? n->needs[i] : NULL;
	*count = out && n->need_count > *count ? *count : n->need_count;
	return leave(OK);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode n, struct kernel_params *out) {
	CUresult r = about(n, out);
	if (r)
		return r;
	if (n->type != N_KERNEL)
		return leave(ERR_VALUE);
	*out = n->kernel;
	return leave(OK);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode n, struct kernel_params *out) {
	struct kernel_params all;
	CUresult r = cuGraphKernelNodeGetParams_v2(n, out ? &all : NULL);
	if (!r)
		memcpy(out, &all, offsetof(struct kernel_params, kernel));
	return r;
}

static CUresult set_params(CUgraphNode n, const struct kernel_params *p, bool long_form) {
	CUresult r = about(n, p);
	if (r)
		return r;
	return leave(n->type == N_KERNEL ? set_kernel(n, p, long_form) : ERR_VALUE);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode n, const struct kernel_params *p) { return set_params(n, p, false); }
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode n, const struct kernel_params *p) { return set_params(n, p, true); }

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode n, struct alloc_node_params *out) {
	CUresult r = about(n, out);
	if (r)
		return r;
	*out = n->alloc;
	return leave(n->type == N_ALLOC ? OK : ERR_VALUE);
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode n, CUdeviceptr *out) {
	CUresult r = about(n, out);
	if (r)
		return r;
	*out = n->alloc.pointer;
	return leave(n->type == N_FREE ? OK : ERR_VALUE);
}

CUresult cuGraphNodeSetEnabled(struct exec *unused, CUgraphNode n, unsigned on) {
	(void)unused;
	CUresult r = about(n, n);
	if (r)
		return r;
	n->disabled = !on;
	return leave(OK);
}
