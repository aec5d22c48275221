#include "driver.h"

#include <stdlib.h>

#define DEPTH 64

static _Thread_local struct { struct context *stack[DEPTH]; int depth; } current;

struct context *context_current(void) {
	return current.depth ? current.stack[current.depth - 1] : NULL;
}

CUresult context_check(const struct context *c) {
	if (!c)
		return ERR_CONTEXT;
	return is_kind(c, K_CONTEXT) ? OK : ERR_DESTROYED;
}

struct device *device_of(const struct context *c) {
	return &process.device[c->device];
}

static void count_contexts(int device, int by) {
	state_lock(process.shared);
	process.shared->slot[process.slot].card[process.device[device].card].contexts += (uint32_t)by;
	state_unlock(process.shared);
}

static CUresult create(int device, unsigned flags, struct context **out) {
	uint64_t cost = card_of(device)->context;
	CUresult r = memory_charge(device, cost);
	if (r)
		return r;
	struct context *c = object_new(K_CONTEXT, sizeof *c);
	c->device = device;
	c->flags = flags;
	c->charged = cost;
	c->refs = 1;
	c->id = ++process.next_id;
	c->limit[0] = 1024;
	c->limit[1] = MIB;
	c->limit[2] = 8 * MIB;
	c->next = process.contexts;
	process.contexts = c;
	count_contexts(device, 1);
	*out = c;
	return OK;
}

static void destroy(struct context *c) {
	int device = c->device;
	for (struct context **p = &process.contexts; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			break;
		}
	blocks_end_of(c);
	streams_end(c);
	memory_refund(device, c->charged + (c->small + GRANULE - 1) / GRANULE * GRANULE);
	count_contexts(device, -1);
	if (process.device[device].primary == c) {
		process.device[device].primary = NULL;
		pools_end(device);
	}
	object_end(c);
}

static CUresult push(struct context *c) {
	if (current.depth == DEPTH)
		return ERR_VALUE;
	current.stack[current.depth++] = c;
	return OK;
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) {
	CUresult r = enter(UNSAFE);
	if (r)
		return r;
	if (!out)
		return leave(ERR_VALUE);
	if (device < 0 || device >= process.devices)
		return leave(ERR_DEVICE);
	struct context *c;
	r = create(device, flags, &c);
	if (!r) {
		c->version = 3020;
		push(c);
		*out = c;
	}
	return leave(r);
}

CUresult cuCtxCreate_v3(CUcontext *out, void *affinity, int count, unsigned flags, CUdevice device) {
	(void)affinity;
	if (count < 0)
		return ERR_VALUE;
	return cuCtxCreate_v2(out, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *out, void *params, unsigned flags, CUdevice device) {
	(void)params;
	return cuCtxCreate_v2(out, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext c) {
	CUresult r = enter(UNSAFE);
	if (r)
		return r;
	if (!is_kind(c, K_CONTEXT) || c->primary)
		return leave(ERR_CONTEXT);
	if (context_current() == c)
		current.depth--;
	destroy(c);
	return leave(OK);
}

CUresult cuCtxAttach(CUcontext *out, unsigned flags) {
	if (!out || flags)
		return ERR_VALUE;
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	*out = context_current();
	(*out)->refs++;
	return leave(OK);
}

CUresult cuCtxDetach(CUcontext c) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (c != context_current())
		return leave(ERR_CONTEXT);
	if (--c->refs == 0 && !c->primary) {
		current.depth--;
		destroy(c);
	}
	return leave(OK);
}

CUresult cuCtxGetCurrent(CUcontext *out) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out)
		return leave(ERR_VALUE);
	*out = context_current();
	return leave(OK);
}

CUresult cuCtxSetCurrent(CUcontext c) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (c && !is_kind(c, K_CONTEXT))
		return leave(ERR_CONTEXT);
	if (current.depth)
		current.depth--;
	return leave(c ? push(c) : OK);
}

CUresult cuCtxPushCurrent_v2(CUcontext c) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	return leave(is_kind(c, K_CONTEXT) ? push(c) : ERR_CONTEXT);
}

CUresult cuCtxPopCurrent_v2(CUcontext *out) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!current.depth)
		return leave(ERR_CONTEXT);
	struct context *c = current.stack[--current.depth];
	if (out)
		*out = c;
	return leave(OK);
}

CUresult cuCtxGetDevice(CUdevice *out) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!out)
		return leave(ERR_VALUE);
	*out = context_current()->device;
	return leave(OK);
}

CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext c) {
	if (!c)
		return cuCtxGetDevice(out);
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out)
		return leave(ERR_VALUE);
	if (!is_kind(c, K_CONTEXT))
		return leave(ERR_CONTEXT);
	*out = c->device;
	return leave(OK);
}

CUresult cuCtxGetFlags(unsigned *out) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (out)
		*out = context_current()->flags;
	return leave(out ? OK : ERR_VALUE);
}

CUresult cuCtxSetFlags(unsigned flags) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	context_current()->flags = flags;
	return leave(OK);
}

CUresult cuCtxGetId(CUcontext c, unsigned long long *out) {
	CUresult r = enter(c ? ANY : CONTEXT);
	if (r)
		return r;
	if (!c)
		c = context_current();
	if (!is_kind(c, K_CONTEXT))
		return leave(ERR_CONTEXT);
	if (out)
		*out = c->id;
	return leave(out ? OK : ERR_VALUE);
}

CUresult cuCtxGetApiVersion(CUcontext c, unsigned *out) {
	CUresult r = enter(c ? ANY : CONTEXT);
	if (r)
		return r;
	if (!c)
		c = context_current();
	if (!is_kind(c, K_CONTEXT))
		return leave(ERR_CONTEXT);
	if (out)
		*out = c->version ? c->version : 3020;
	return leave(out ? OK : ERR_VALUE);
}

/* Limits 0 (stack), 1 (printf buffer) and 2 (heap of the device's malloc) take device memory when they grow. */
CUresult cuCtxSetLimit(int limit, size_t value) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	struct context *c = context_current();
	if (limit < 0 || limit > 6)
		return leave(limit < 0 ? ERR_VALUE : 215);
	size_t unit = limit == 0 ? (size_t)card_of(c->device)->sms * 2048 : limit <= 2 ? 1 : 0;
	uint64_t before = c->limit[limit] * unit / GRANULE * GRANULE, after = value * unit / GRANULE * GRANULE;
	if (after > before && (r = memory_charge(c->device, after - before)))
		return leave(r);
	if (after < before)
		memory_refund(c->device, before - after);
	c->charged += after - before;
	c->limit[limit] = value;
	return leave(OK);
}

CUresult cuCtxGetLimit(size_t *out, int limit) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!out)
		return leave(ERR_VALUE);
	if (limit < 0 || limit > 6)
		return leave(215);
	*out = context_current()->limit[limit];
	return leave(OK);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return leave(OK);
}

static CUresult plain_get(int *out, int value) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (out)
		*out = value;
	return leave(out ? OK : ERR_VALUE);
}

CUresult cuCtxGetCacheConfig(int *out) { return plain_get(out, 0); }
CUresult cuCtxGetSharedMemConfig(int *out) { return plain_get(out, 1); }

static CUresult plain_set(void) {
	CUresult r = enter(CONTEXT);
	return r ? r : leave(OK);
}

CUresult cuCtxSetCacheConfig(int config) { (void)config; return plain_set(); }
CUresult cuCtxSetSharedMemConfig(int config) { (void)config; return plain_set(); }
CUresult cuCtxResetPersistingL2Cache(void) { return plain_set(); }

static struct device *primary_device(CUdevice device) {
	return device >= 0 && device < process.devices ? &process.device[device] : NULL;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	struct device *d = primary_device(device);
	if (!out || !d)
		return leave(out ? ERR_DEVICE : ERR_VALUE);
	if (!d->primary) {
		if (process.captures && capture_forbids())
			return leave(ERR_CAPTURE_UNSUPPORTED);
		if ((r = create(device, d->primary_flags, &d->primary)))
			return leave(r);
		d->primary->primary = true;
		d->primary_refs = 0;
	}
	d->primary_refs++;
	*out = d->primary;
	return leave(OK);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	struct device *d = primary_device(device);
	if (!d)
		return leave(ERR_DEVICE);
	if (!d->primary)
		return leave(ERR_CONTEXT);
	if (--d->primary_refs == 0)
		destroy(d->primary);
	return leave(OK);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
	CUresult r = enter(UNSAFE);
	if (r)
		return r;
	struct device *d = primary_device(device);
	if (!d)
		return leave(ERR_DEVICE);
	if (d->primary)
		destroy(d->primary);
	d->primary_refs = 0;
	return leave(OK);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	struct device *d = primary_device(device);
	if (!d)
		return leave(ERR_DEVICE);
	d->primary_flags = flags;
	if (d->primary)
		d->primary->flags = flags;
	return leave(OK);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	struct device *d = primary_device(device);
	if (!d || !flags || !active)
		return leave(d ? ERR_VALUE : ERR_DEVICE);
	*flags = d->primary_flags;
	*active = d->primary != NULL;
	return leave(OK);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }
CUresult cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) { return cuDevicePrimaryCtxSetFlags_v2(device, flags); }
CUresult cuCtxPushCurrent(CUcontext c) { return cuCtxPushCurrent_v2(c); }
CUresult cuCtxPopCurrent(CUcontext *out) { return cuCtxPopCurrent_v2(out); }
CUresult cuCtxDestroy(CUcontext c) { return cuCtxDestroy_v2(c); }
CUresult cuCtxCreate(CUcontext *out, unsigned flags, CUdevice device) { return cuCtxCreate_v2(out, flags, device); }
