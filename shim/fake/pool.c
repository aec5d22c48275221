/* Stream-ordered memory. A pool takes device memory in pieces of 32 MiB and gives back, at a synchronisation, what lies above its
 * release threshold. */
#include "driver.h"

#include "graph.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pool {
	struct head head;
	struct pool *next;
	int device; /* -1: host */
	bool is_default, destroyed, foreign;
	unsigned long long id;
	struct pool_props props;
	uint64_t used, used_high, reserved, reserved_high, threshold;
	int reuse[3];
	size_t live;
};

static struct pool *pools;

static struct pool *pool_new(int device, const struct pool_props *props) {
	struct pool *p = object_new(K_POOL, sizeof *p);
	if (!p)
		return NULL;
	p->device = device;
	p->id = ++process.next_id;
	for (int i = 0; i < 3; i++)
		p->reuse[i] = 1;
	if (props)
		p->props = *props;
	p->next = pools;
	pools = p;
	return p;
}

static struct pool *default_pool(int device) {
	struct device *d = &process.device[device];
	if (!d->default_pool) {
		d->default_pool = pool_new(device, NULL);
		if (d->default_pool)
			d->default_pool->is_default = true;
	}
	return d->default_pool;
}

static struct pool *current_pool(int device) {
	struct device *d = &process.device[device];
	if (!d->current_pool)
		d->current_pool = default_pool(device);
	return d->current_pool;
}

static void shrink(struct pool *p, uint64_t keep) {
	uint64_t least = (p->used + GRANULE - 1) / GRANULE * GRANULE;
	if (keep < least)
		keep = least;
	if (p->reserved > keep && p->device >= 0) {
		keep = (keep + GRANULE - 1) / GRANULE * GRANULE;
		memory_refund(p->device, p->reserved - keep);
		p->reserved = keep;
	}
}

static CUresult grow(struct pool *p, uint64_t bytes) {
	uint64_t need = p->used + bytes, more = 0;
	if (p->device < 0)
		return OK;
	if (p->props.max_size && need > p->props.max_size)
		return ERR_MEMORY;
	if (need > p->reserved) {
		more = (need - p->reserved + POOL_GRANULE - 1) / POOL_GRANULE * POOL_GRANULE;
		CUresult r = memory_charge(p->device, more);
		if (r) {
			more = (need - p->reserved + GRANULE - 1) / GRANULE * GRANULE;
			r = memory_charge(p->device, more);
		}
		if (r)
			return r;
	}
	p->reserved += more;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
	return OK;
}

static CUresult allocate(struct pool *p, size_t size, CUdeviceptr *out) {
	if (!size)
		return ERR_VALUE;
	if (size > UINT64_MAX / 2)
		return ERR_MEMORY;
	uint64_t bytes = (size + 511) / 512 * 512;
	CUresult r = grow(p, bytes);
	if (r)
		return r;
	struct block *b = block_new(p->device < 0 ? B_HOST : B_POOL, size, p->device);
	if (!b)
		return ERR_MEMORY;
	b->pool = p;
	p->live++;
	p->used += bytes;
	if (p->used > p->used_high)
		p->used_high = p->used;
	*out = b->base;
	return OK;
}

static void drop_if_over(struct pool *p) {
	if (!p->destroyed || p->live)
		return;
	for (struct pool **q = &pools; *q; q = &(*q)->next)
		if (*q == p) {
			*q = p->next;
			break;
		}
	p->used = 0;
	shrink(p, 0);
	object_end(p);
}

CUresult pool_free(struct block *b) {
	struct pool *p = b->pool;
	p->used -= (b->size + 511) / 512 * 512;
	p->live--;
	block_end(b);
	drop_if_over(p);
	return OK;
}

void pools_settle(int device) {
	for (struct pool *p = pools; p; p = p->next)
		if (p->device == device)
			shrink(p, p->threshold);
}

static void collect(struct block *b, void *arg) {
	struct block **list = arg;
	if (b->kind == B_POOL && b->pool == (struct pool *)list[0]->pool)
		list[1] = b;
}

/* The device's primary context is gone: its pools' memory with it. */
void pools_end(int device) {
	for (struct pool *p = pools; p; p = p->next) {
		if (p->device != device)
			continue;
		struct block key = {.pool = p}, *list[2] = {&key, NULL};
		while (p->live) {
			list[1] = NULL;
			block_each(collect, list);
			if (!list[1])
				break;
			p->used -= (list[1]->size + 511) / 512 * 512;
			p->live--;
			block_end(list[1]);
		}
		p->used = 0;
		shrink(p, 0);
	}
	struct device *d = &process.device[device];
	if (d->graph_reserved)
		memory_refund(device, d->graph_reserved);
	d->graph_reserved = d->graph_used = 0;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool p, CUstream stream) {
	CUresult r = enter(ANY);
	struct stream *s;
	if (r)
		return r;
	if (!out || !is_kind(p, K_POOL) || p->destroyed || p->foreign)
		return leave(ERR_VALUE);
	if ((r = stream_get(stream, &s)) || (r = stream_ready(s)))
		return leave(r);
	if (!s->capture)
		return leave(allocate(p, size, out));
	struct node *n = size ? capture_node(s, N_ALLOC, &r) : NULL;
	if (n) {
		n->alloc.size = size;
		n->alloc.props.location = (struct location){LOCATION_DEVICE, p->device};
		r = graph_alloc_address(n);
		*out = n->alloc.pointer;
	}
	return leave(size ? r : ERR_VALUE);
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream) {
	CUresult r = enter(ANY);
	struct stream *s;
	if (r)
		return r;
	if ((r = stream_get(stream, &s)))
		return leave(r);
	struct pool *p = current_pool(s->context->device);
	leave(OK);
	return cuMemAllocFromPoolAsync(out, size, p, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
	if (!pointer)
		return OK;
	CUresult r = enter(ANY);
	struct stream *s;
	if (r)
		return r;
	if ((r = stream_get(stream, &s)) || (r = stream_ready(s)))
		return leave(r);
	struct block *b = block_at(pointer);
	if (!b || b->kind == B_HOST || b->kind == B_REGISTERED || b->kind == B_IPC)
		return leave(ERR_VALUE);
	if (!s->capture)
		return leave(block_free(b));
	struct node *n = capture_node(s, N_FREE, &r);
	if (n)
		n->alloc.pointer = pointer;
	return leave(r);
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const struct pool_props *props) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out || !props)
		return leave(ERR_VALUE);
	int type = props->location.type, device = type == LOCATION_DEVICE ? props->location.id : -1;
	if (props->alloc_type != 1 || type < 1 || type > 4 || (type == LOCATION_DEVICE && (device < 0 || device >= process.devices)))
		return leave(ERR_VALUE);
	*out = pool_new(device, props);
	return leave(*out ? OK : ERR_MEMORY);
}

CUresult cuMemPoolDestroy(CUmemoryPool p) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(p, K_POOL) || p->is_default)
		return leave(ERR_VALUE);
	if (p->device >= 0 && process.device[p->device].current_pool == p)
		process.device[p->device].current_pool = NULL;
	p->destroyed = true;
	drop_if_over(p);
	return leave(OK);
}

enum { REUSE_FIRST = 1, THRESHOLD = 4, RESERVED, RESERVED_HIGH, USED, USED_HIGH };

static uint64_t *figure(struct pool *p, int attribute) {
	switch (attribute) {
	case THRESHOLD: return &p->threshold;
	case RESERVED: return &p->reserved;
	case RESERVED_HIGH: return &p->reserved_high;
	case USED: return &p->used;
	case USED_HIGH: return &p->used_high;
	default: return NULL;
	}
}

CUresult cuMemPoolGetAttribute(CUmemoryPool p, int attribute, void *value) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(p, K_POOL) || !value)
		return leave(ERR_VALUE);
	if (attribute >= REUSE_FIRST && attribute < THRESHOLD)
		*(int *)value = p->reuse[attribute - 1];
	else if (figure(p, attribute))
		*(uint64_t *)value = *figure(p, attribute);
	else
		return leave(ERR_VALUE);
	return leave(OK);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool p, int attribute, void *value) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(p, K_POOL) || !value)
		return leave(ERR_VALUE);
	if (attribute >= REUSE_FIRST && attribute < THRESHOLD)
		p->reuse[attribute - 1] = *(int *)value;
	else if (attribute == THRESHOLD)
		p->threshold = *(uint64_t *)value;
	else if ((attribute == RESERVED_HIGH || attribute == USED_HIGH) && *(uint64_t *)value == 0)
		*figure(p, attribute) = *figure(p, attribute - 1);
	else
		return leave(ERR_VALUE);
	return leave(OK);
}

CUresult cuMemPoolTrimTo(CUmemoryPool p, size_t keep) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(p, K_POOL))
		return leave(ERR_VALUE);
	shrink(p, keep);
	return leave(OK);
}

CUresult cuMemPoolSetAccess(CUmemoryPool p, const struct access_desc *access, size_t count) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	return leave(is_kind(p, K_POOL) && (access || !count) ? OK : ERR_VALUE);
}

CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool p, struct location *where) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!flags || !where || !is_kind(p, K_POOL))
		return leave(ERR_VALUE);
	*flags = where->type == LOCATION_DEVICE && where->id == p->device ? 3 : 0;
	return leave(OK);
}

static CUresult give_pool(CUmemoryPool *out, CUdevice device, struct pool *(*which)(int)) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out)
		return leave(ERR_VALUE);
	if (device < 0 || device >= process.devices)
		return leave(ERR_DEVICE);
	*out = which(device);
	return leave(*out ? OK : ERR_MEMORY);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) { return give_pool(out, device, default_pool); }
CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device) { return give_pool(out, device, current_pool); }

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool p) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (device < 0 || device >= process.devices)
		return leave(ERR_DEVICE);
	if (!is_kind(p, K_POOL) || p->device != device)
		return leave(ERR_VALUE);
	process.device[device].current_pool = p;
	return leave(OK);
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, const struct location *where, int type) {
	return where && where->type == LOCATION_DEVICE && type == 1 ? cuDeviceGetDefaultMemPool(out, where->id) : ERR_VALUE;
}

CUresult cuMemGetMemPool(CUmemoryPool *out, const struct location *where, int type) {
	return where && where->type == LOCATION_DEVICE && type == 1 ? cuDeviceGetMemPool(out, where->id) : ERR_VALUE;
}

CUresult cuMemSetMemPool(const struct location *where, int type, CUmemoryPool p) {
	return where && where->type == LOCATION_DEVICE && type == 1 ? cuDeviceSetMemPool(where->id, p) : ERR_VALUE;
}
