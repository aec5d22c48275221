/* Linear and pitched device memory, managed and pinned host memory, and the questions about memory. */
#include "driver.h"

#include <stdlib.h>

#define SMALL_UNIT 512
#define PITCH_UNIT 512

static CUresult allocate(size_t size, struct block **out) {
	struct context *c = context_current();
	if (!size)
		return ERR_VALUE;
	bool small = size <= MIB;
	if (size > UINT64_MAX / 2)
		return ERR_MEMORY;
	uint64_t bytes = small ? (size + SMALL_UNIT - 1) / SMALL_UNIT * SMALL_UNIT : (size + GRANULE - 1) / GRANULE * GRANULE;
	CUresult r = small ? memory_charge_small(c, bytes) : memory_charge(c->device, bytes);
	if (r)
		return r;
	struct block *b = block_new(B_LINEAR, size, c->device);
	if (!b) {
		if (small)
			memory_refund_small(c, bytes);
		else
			memory_refund(c->device, bytes);
		return ERR_MEMORY;
	}
	b->context = c;
	*(small ? &b->small : &b->charged) = bytes;
	*out = b;
	return OK;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	struct block *b;
	r = out ? allocate(size, &b) : ERR_VALUE;
	if (!r)
		*out = b->base;
	return leave(r);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	if (!out || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
		return leave(ERR_VALUE);
	size_t row = (width + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT, size;
	struct block *b;
	if (__builtin_mul_overflow(row, height, &size))
		return leave(ERR_MEMORY);
	r = allocate(size, &b);
	if (!r) {
		*out = b->base;
		*pitch = row;
	}
	return leave(r);
}

/* Managed memory lies in the host until it is prefetched: only then does it take device memory. */
CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	if (!out || !size || (flags != 1 && flags != 2))
		return leave(ERR_VALUE);
	struct block *b = block_new(B_MANAGED, size, context_current()->device);
	if (!b)
		return leave(ERR_MEMORY);
	b->context = context_current();
	b->flags = flags;
	*out = b->base;
	return leave(OK);
}

CUresult block_free(struct block *b) {
	switch (b->kind) {
	case B_POOL:
		return pool_free(b);
	case B_GRAPH:
		return graph_memory_free(b);
	case B_VMM:
	case B_RESERVED:
	case B_GLOBAL:
		return ERR_VALUE;
	default:
		break;
	}
	if (b->small)
		memory_refund_small(b->context, b->small);
	if (b->charged)
		memory_refund(b->device, b->charged);
	block_end(b);
	return OK;
}

CUresult cuMemFree_v2(CUdeviceptr p) {
	if (!p)
		return OK;
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	struct block *b = block_at(p);
	if (!b || b->kind == B_HOST || b->kind == B_REGISTERED || b->kind == B_IPC)
		return leave(ERR_VALUE);
	return leave(block_free(b));
}

static CUresult allocate_host(void **out, size_t size, unsigned flags) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	if (!out || !size)
		return leave(ERR_VALUE);
	struct block *b = block_new(B_HOST, size, -1);
	if (!b)
		return leave(ERR_MEMORY);
	b->context = context_current();
	b->flags = flags;
	*out = (void *)(uintptr_t)b->base;
	return leave(OK);
}

CUresult cuMemAllocHost_v2(void **out, size_t size) { return allocate_host(out, size, 0); }
CUresult cuMemHostAlloc(void **out, size_t size, unsigned flags) { return allocate_host(out, size, flags); }

CUresult cuMemFreeHost(void *p) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	struct block *b = block_at((CUdeviceptr)(uintptr_t)p);
	if (!b || b->kind != B_HOST)
		return leave(ERR_VALUE);
	return leave(block_free(b));
}

CUresult cuMemHostRegister_v2(void *p, size_t size, unsigned flags) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	if (!p || !size)
		return leave(ERR_VALUE);
	if (block_find((CUdeviceptr)(uintptr_t)p))
		return leave(712);
	struct block *b = calloc(1, sizeof *b);
	if (!b)
		return leave(ERR_MEMORY);
	*b = (struct block){.base = (CUdeviceptr)(uintptr_t)p, .size = size, .mapped = size, .kind = B_REGISTERED, .device = -1,
	                    .context = context_current(), .flags = flags};
	block_add(b);
	return leave(OK);
}

CUresult cuMemHostUnregister(void *p) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	struct block *b = block_at((CUdeviceptr)(uintptr_t)p);
	if (!b || b->kind != B_REGISTERED)
		return leave(713);
	block_end(b);
	return leave(OK);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *p, unsigned flags) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	struct block *b = block_find((CUdeviceptr)(uintptr_t)p);
	if (!out || flags || !b || (b->kind != B_HOST && b->kind != B_REGISTERED))
		return leave(ERR_VALUE);
	*out = (CUdeviceptr)(uintptr_t)p;
	return leave(OK);
}

CUresult cuMemHostGetFlags(unsigned *out, void *p) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	struct block *b = block_find((CUdeviceptr)(uintptr_t)p);
	if (!out || !b || b->kind != B_HOST)
		return leave(ERR_VALUE);
	*out = b->flags;
	return leave(OK);
}

CUresult cuMemGetInfo_v2(size_t *free_out, size_t *total_out) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	uint64_t free_bytes, total;
	memory_figures(context_current()->device, &free_bytes, &total);
	if (free_out)
		*free_out = free_bytes;
	if (total_out)
		*total_out = total;
	return leave(OK);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr p) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	struct block *b = block_find(p);
	if (!b || b->kind == B_RESERVED)
		return leave(ERR_NOT_FOUND);
	if (base)
		*base = b->base;
	if (size)
		*size = b->size;
	return leave(OK);
}

CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t bytes, CUdevice device, CUstream stream) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	struct block *b = block_find(p);
	struct stream *s;
	if ((r = stream_get(stream, &s)))
		return leave(r);
	if (!b || b->kind != B_MANAGED || bytes > b->size || device < -1 || device >= process.devices)
		return leave(device >= process.devices ? ERR_DEVICE : ERR_VALUE);
	if (b->charged) {
		memory_refund(b->device, b->charged);
		b->charged = 0;
	}
	if (device >= 0) {
		uint64_t need = (bytes + GRANULE - 1) / GRANULE * GRANULE, free_bytes, total;
		memory_figures(device, &free_bytes, &total);
		if (need > free_bytes) /* the driver moves other pages out */
			need = free_bytes / GRANULE * GRANULE;
		b->device = device;
		if (!memory_charge(device, need))
			b->charged = need;
	}
	return leave(OK);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr p, size_t bytes, struct location where, unsigned flags, CUstream stream) {
	(void)flags;
	return cuMemPrefetchAsync(p, bytes, where.type == LOCATION_DEVICE ? where.id : -1, stream);
}

static CUresult advise(CUdeviceptr p, size_t bytes) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	struct block *b = block_find(p);
	return leave(b && b->kind == B_MANAGED && bytes <= b->size ? OK : ERR_VALUE);
}

CUresult cuMemAdvise(CUdeviceptr p, size_t bytes, int advice, CUdevice device) {
	(void)advice, (void)device;
	return advise(p, bytes);
}

CUresult cuMemAdvise_v2(CUdeviceptr p, size_t bytes, int advice, struct location where) {
	(void)advice, (void)where;
	return advise(p, bytes);
}

enum { ATTR_CONTEXT = 1, ATTR_TYPE, ATTR_DEVICE_POINTER, ATTR_HOST_POINTER, ATTR_SYNC = 6, ATTR_ID, ATTR_MANAGED, ATTR_ORDINAL,
       ATTR_START = 11, ATTR_SIZE, ATTR_MAPPED, ATTR_POOL = 17 };

static CUresult attribute(void *out, int what, CUdeviceptr p) {
	struct block *b = block_find(p);
	bool host = b && b->device < 0;
	if (!b || b->kind == B_RESERVED)
		return ERR_VALUE;
	switch (what) {
	case ATTR_CONTEXT: *(CUcontext *)out = b->context; break;
	case ATTR_TYPE: *(unsigned *)out = host ? 1 : 2; break;
	case ATTR_DEVICE_POINTER: *(CUdeviceptr *)out = p; break;
	case ATTR_HOST_POINTER:
		if (!host && b->kind != B_MANAGED)
			return ERR_VALUE;
		*(void **)out = (void *)(uintptr_t)p;
		break;
	case ATTR_SYNC: *(int *)out = 0; break;
	case ATTR_ID: *(unsigned long long *)out = b->id; break;
	case ATTR_MANAGED: *(unsigned *)out = b->kind == B_MANAGED; break;
	case ATTR_ORDINAL: *(int *)out = host ? b->context->device : b->device; break;
	case ATTR_START: *(CUdeviceptr *)out = b->base; break;
	case ATTR_SIZE: *(size_t *)out = b->size; break;
	case ATTR_MAPPED: *(int *)out = 1; break;
	case ATTR_POOL: *(CUmemoryPool *)out = b->kind == B_POOL ? b->pool : NULL; break;
	default: return ERR_SUPPORTED;
	}
	return OK;
}

CUresult cuPointerGetAttribute(void *out, int what, CUdeviceptr p) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	return leave(out ? attribute(out, what, p) : ERR_VALUE);
}

CUresult cuPointerGetAttributes(unsigned count, int *what, void **out, CUdeviceptr p) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!count || !what || !out)
		return leave(ERR_VALUE);
	for (unsigned i = 0; i < count; i++)
		if (attribute(out[i], what[i], p))
			*(unsigned *)out[i] = 0;
	return leave(OK);
}

CUresult cuPointerSetAttribute(const void *value, int what, CUdeviceptr p) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	return leave(value && what == ATTR_SYNC && block_find(p) ? OK : ERR_VALUE);
}
