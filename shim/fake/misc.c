/* Small things that programs call on their way: peers, memory operations in streams, texture and surface views, attributes. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

CUresult cuGetExportTable(const void **table, const CUuuid *id) {
	if (!table || !id)
		return ERR_VALUE;
	*table = NULL; /* the tables are private: what they hold is not known */
	return ERR_NOT_FOUND;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (flags || !is_kind(peer, K_CONTEXT))
		return leave(flags ? ERR_VALUE : ERR_CONTEXT);
	struct context *c = context_current();
	if (peer->device == c->device)
		return leave(217);
	if (c->peers & 1u << peer->device)
		return leave(ERR_PEER_ON);
	c->peers |= 1u << peer->device;
	return leave(OK);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!is_kind(peer, K_CONTEXT))
		return leave(ERR_CONTEXT);
	struct context *c = context_current();
	if (!(c->peers & 1u << peer->device))
		return leave(ERR_PEER_OFF);
	c->peers &= ~(1u << peer->device);
	return leave(OK);
}

static CUresult nothing(void) {
	CUresult r = enter(CONTEXT);
	return r ? r : leave(OK);
}

CUresult cuProfilerStart(void) { return nothing(); }
CUresult cuProfilerStop(void) { return nothing(); }
CUresult cuFlushGPUDirectRDMAWrites(int target, int scope) { return (void)target, (void)scope, nothing(); }

static CUresult in_stream(CUstream handle) {
	CUresult r = enter(CONTEXT);
	struct stream *s;
	if (r)
		return r;
	if ((r = stream_get(handle, &s)) || (r = stream_ready(s)))
		return leave(r);
	return OK;
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr p, size_t length, unsigned flags) {
	(void)length;
	CUresult r = in_stream(stream);
	if (r)
		return r;
	struct block *b = block_find(p);
	return leave(b && b->kind == B_MANAGED && (flags == 1 || flags == 2 || flags == 4) ? OK : ERR_VALUE);
}

static CUresult write_value(CUstream stream, CUdeviceptr p, uint64_t value, size_t size) {
	CUresult r = in_stream(stream);
	if (r)
		return r;
	if (data_at(p, size) == size)
		memcpy((void *)(uintptr_t)p, &value, size);
	return leave(block_find(p) ? OK : ERR_VALUE);
}

CUresult cuStreamWriteValue32(CUstream s, CUdeviceptr p, unsigned v, unsigned flags) { return (void)flags, write_value(s, p, v, 4); }
CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr p, unsigned v, unsigned flags) { return (void)flags, write_value(s, p, v, 4); }
CUresult cuStreamWriteValue64(CUstream s, CUdeviceptr p, uint64_t v, unsigned flags) { return (void)flags, write_value(s, p, v, 8); }
CUresult cuStreamWriteValue64_v2(CUstream s, CUdeviceptr p, uint64_t v, unsigned flags) { return (void)flags, write_value(s, p, v, 8); }

/* Texture and surface objects: numbers, in use while their bit is set. */
static unsigned long long next_view = 1;

static CUresult view_new(unsigned long long *out, const void *desc) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!out || !desc)
		return leave(ERR_VALUE);
	*out = next_view++;
	return leave(OK);
}

static CUresult view_end(unsigned long long view) {
	CUresult r = enter(CONTEXT);
	return r ? r : leave(view && view < next_view ? OK : ERR_VALUE);
}

CUresult cuTexObjectCreate(unsigned long long *out, const void *resource, const void *texture, const void *view) {
	(void)texture, (void)view;
	return view_new(out, resource);
}

CUresult cuTexObjectDestroy(unsigned long long view) { return view_end(view); }
CUresult cuSurfObjectCreate(unsigned long long *out, const void *resource) { return view_new(out, resource); }
CUresult cuSurfObjectDestroy(unsigned long long view) { return view_end(view); }

CUresult cuStreamSetAttribute(CUstream stream, int attribute, const void *value) {
	(void)attribute;
	CUresult r = in_stream(stream);
	return r ? r : leave(value ? OK : ERR_VALUE);
}

CUresult cuStreamGetAttribute(CUstream stream, int attribute, void *value) {
	(void)attribute;
	CUresult r = in_stream(stream);
	if (r)
		return r;
	if (value)
		memset(value, 0, 64);
	return leave(value ? OK : ERR_VALUE);
}

CUresult cuOccupancyMaxActiveClusters(int *out, CUfunction f, const struct launch_config *config) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!out || !config || !is_kind(f, K_FUNCTION))
		return leave(ERR_VALUE);
	*out = card_of(context_current()->device)->compute >= 90 ? card_of(context_current()->device)->sms : 0;
	return leave(OK);
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *out, int format, unsigned channels, CUdevice device) {
	(void)format, (void)channels;
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (device < 0 || device >= process.devices)
		return leave(ERR_DEVICE);
	if (out)
		*out = 1 << 28;
	return leave(out ? OK : ERR_VALUE);
}
