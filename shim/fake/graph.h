/* Graphs, and streams that record into them. */
#ifndef FAKE_GRAPH_H
#define FAKE_GRAPH_H

#include "driver.h"

enum node_type { N_KERNEL = 0, N_MEMCPY, N_MEMSET, N_HOST, N_GRAPH, N_EMPTY, N_EVENT_WAIT, N_EVENT_RECORD, N_SIGNAL, N_WAIT,
                 N_ALLOC = 10, N_FREE, N_BATCH, N_CONDITIONAL };

struct node {
	struct head head;
	struct graph *graph;
	struct node *next;
	enum node_type type;
	bool disabled;
	struct work work;               /* what it takes of the card */
	struct kernel_params kernel;    /* N_KERNEL, without its argument arrays */
	CUhostFn fn;                    /* N_HOST */
	void *data;
	struct graph *child;            /* N_GRAPH */
	struct event *event;
	struct alloc_node_params alloc; /* N_ALLOC; N_FREE: pointer */
	struct node **needs;            /* the nodes it depends on */
	size_t need_count;
	struct node *copy_of;
};

struct graph { struct head head; struct node *nodes, **end; size_t count; bool capturing, child; };

struct capture {
	struct graph *graph;
	struct stream *origin;
	int mode; /* 0 global, 1 of the thread, 2 relaxed */
	const void *thread;
	unsigned long long id;
	bool broken, given; /* given: the graph was the caller's */
	unsigned streams;
};

struct event {
	struct head head;
	unsigned flags;
	bool recorded, timing;
	int device;
	uint64_t position, host;
	int64_t at;              /* when it was recorded */
	int64_t finished;        /* when it was reached; 0: not known yet */
	struct capture *capture; /* recorded into this capture; NULL outside */
	unsigned long long capture_id;
	struct node **joins;
	size_t join_count;
	struct context *context;
};

/* Record a node into the stream's capture; NULL when it is broken (the code is in *r) or memory is short. */
struct node *capture_node(struct stream *s, enum node_type type, CUresult *r);
CUresult node_new(struct graph *g, enum node_type type, struct node *const *needs, size_t count, struct node **out);
/* An allocation node's address lives as long as a node in a graph or exec has it, and as it is allocated. */
CUresult graph_alloc_address(struct node *n);
void graph_address_keep(CUdeviceptr p);
void graph_address_drop(CUdeviceptr p);
void graph_end(struct graph *g);
bool capture_is_live(const struct capture *c, unsigned long long id);
CUresult capture_record(struct stream *s, struct event *e);
CUresult capture_wait(struct stream *s, struct event *e);
bool capture_implicit(const struct stream *s);

#endif
