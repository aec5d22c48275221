/* The inside of the simulated libcuda: the process's objects and how an entry point starts and ends.
 *
 * Every entry point calls enter(), works with the process's lock held, and returns through leave(). Nothing waits with it held. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include "abi.h"
#include "state.h"

#define GRANULE (2 * MIB)      /* physical memory comes in such pieces */
#define POOL_GRANULE (32 * MIB)
#define KEPT MIB               /* an allocation's first bytes, which hold data; what lies behind them is address space only */
#define LAUNCH_DEPTH 1024      /* launches in flight before a launch blocks */

enum kind { K_CONTEXT = 0x63747831, K_STREAM, K_EVENT, K_MODULE, K_FUNCTION, K_LIBRARY, K_POOL, K_ARRAY, K_MIPMAP, K_GRAPH,
            K_NODE, K_EXEC, K_EXTERNAL, K_PHYSICAL, K_DEAD };

struct head { enum kind kind; };

struct work { /* of a stream; blocks 0: not a kernel */
	uint64_t ns;
	unsigned blocks, threads; /* threads of each block */
	bool early;               /* it may begin while what comes before it ends */
	CUdeviceptr log;          /* where it notes its start and end; 0 nowhere */
};

struct device {
	int card, slice; /* slice: index of the MIG device, -1: the whole card */
	struct context *primary;
	unsigned primary_refs, primary_flags;
	struct pool *default_pool, *current_pool;
	uint64_t graph_used, graph_used_high, graph_reserved, graph_reserved_high;
	uint64_t launched, launch_position[LAUNCH_DEPTH];
	struct place { uint64_t start, end; struct work work; } *places; /* kernels that run or wait */
	size_t place_count, place_room;
	uint64_t tail; /* the end of all work */
	const struct context *last_context;
};

struct context {
	struct head head;
	struct context *next;
	int device;
	unsigned flags, refs, version;
	unsigned long long id;
	bool primary;
	unsigned peers;          /* devices whose memory it may reach */
	uint64_t charged;        /* the context's own cost and its modules */
	uint64_t small;          /* bytes in allocations that share granules */
	struct stream *legacy, *streams;
	size_t limit[16];
};

struct stream {
	struct head head;
	struct stream *next;
	struct context *context;
	unsigned flags;
	int priority;
	bool own; /* a thread's default stream */
	unsigned long long id;
	uint64_t tail;      /* position of the last work */
	bool after_kernel;  /* which was a kernel */
	uint64_t host_tail; /* number of the last host function */
	struct capture *capture;
	struct node **joins; /* capture: what the next node depends on */
	size_t join_count;
};

struct function { struct head head; struct module *module; char name[128]; bool timed, logs; struct function *next; };
struct module { struct head head; struct context *context; struct function *functions; uint64_t bytes; bool named; char *text; struct module *next; };

enum block_kind { B_LINEAR, B_MANAGED, B_POOL, B_GRAPH, B_HOST, B_REGISTERED, B_IPC, B_EXTERNAL, B_VMM, B_RESERVED, B_GLOBAL, B_ARRAY };

struct block { /* a range of addresses */
	CUdeviceptr base;
	size_t size, mapped, kept; /* asked for; of address space; from the start on, bytes that hold data */
	enum block_kind kind;
	int device;             /* -1: host */
	struct context *context;
	struct pool *pool;
	uint64_t charged, small; /* granules of its own; bytes in the context's shared ones */
	struct physical *physical;
	unsigned flags, references;
	unsigned long long id;
	bool released;          /* graph: freed, or not yet allocated */
};

struct array { struct head head; struct array3d_desc desc; uint64_t bytes; CUdeviceptr pointer; bool level; };

struct process {
	pthread_mutex_t lock;
	_Atomic bool initialised, forked;
	struct state *shared;
	int slot, devices;
	struct device device[MAX_CARDS];
	struct context *contexts;
	_Atomic int captures; /* under way, in any thread */
	unsigned long long next_id;
};
extern struct process process;

enum need { ANY = 0, CONTEXT = 1, UNSAFE = 2 /* not while a capture forbids it */ };

/* The driver is ready, the calling thread's context (CONTEXT) is there, no capture is in the way (UNSAFE): OK with the lock held. */
CUresult enter(int need);
CUresult leave(CUresult result);
/* Checks of handles: the object is of that kind and alive. */
bool is_kind(const void *handle, enum kind kind);
void *object_new(enum kind kind, size_t size);
void object_end(void *object);

struct context *context_current(void);
CUresult context_check(const struct context *c);
struct device *device_of(const struct context *c);
const struct card *card_of(int device);

/* Take or give back device memory; ERR_MEMORY when the card (or MIG device) has no more. */
CUresult memory_charge(int device, uint64_t bytes);
void memory_refund(int device, uint64_t bytes);
void memory_figures(int device, uint64_t *free_bytes, uint64_t *total);
/* In a context's shared granules. */
CUresult memory_charge_small(struct context *c, uint64_t bytes);
void memory_refund_small(struct context *c, uint64_t bytes);

struct block *block_find(CUdeviceptr p);        /* that holds the address */
struct block *block_at(CUdeviceptr p);          /* that starts there */
struct block *block_new(enum block_kind kind, size_t size, int device);
void block_add(struct block *b);
void block_end(struct block *b);
void blocks_end_of(struct context *c);
void block_each(void (*visit)(struct block *, void *), void *arg);
CUresult block_free(struct block *b);
CUresult pool_free(struct block *b);
CUresult graph_memory_free(struct block *b);
/* The part of a range that holds data: how many bytes from p on may be touched. */
size_t data_at(CUdeviceptr p, size_t bytes);
/* From now on all of it holds data. */
void block_keep(struct block *b);

/* The stream behind a handle, NULL and the special ones too, for the current context. */
CUresult stream_get(CUstream handle, struct stream **out);
CUresult stream_ready(struct stream *s);        /* may this stream be used now, given captures elsewhere? */
uint64_t stream_tail(const struct stream *s);
void streams_end(struct context *c);
CUresult stream_work(struct stream *s, const struct work *work);
/* The same for work that comes in several pieces: wait until a launch is possible; add each piece; end the launch. */
CUresult stream_launch(struct stream *s);
void stream_add(struct stream *s, const struct work *work);
void stream_launched(struct stream *s);
/* Where a stream's next work ends on its card: see schedule.c. */
uint64_t schedule(struct stream *s, const struct work *work);
/* Kernels that are done note their times. */
void schedule_done(int device);
CUresult wait_position(int device, uint64_t position, uint64_t host);
CUresult host_call(struct stream *s, CUhostFn fn, CUstreamCallback callback, void *data);
bool host_done(uint64_t number);
void device_settle(int device);                 /* a synchronisation: pools give back what they need not keep */
void pools_settle(int device);
void pools_end(int device);

bool capture_forbids(void);
void capture_break(struct stream *s, CUresult why);

CUresult kernel_work(const struct function *f, const unsigned grid[3], const unsigned block[3], void **params, void **extra, int device,
                     struct work *out);

#endif
