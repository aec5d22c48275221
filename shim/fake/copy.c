/* Copies and fills. They touch the bytes that an allocation really keeps; the rest reads as zero. A copy or fill inside the device
 * takes the time that its memory needs, a copy between host and device none of the card's. */
#include "driver.h"

#include "graph.h"

#include <string.h>

enum { HOST_MEMORY = 1, DEVICE_MEMORY, ARRAY_MEMORY, UNIFIED_MEMORY };



static CUdeviceptr of(const void *p) {
	return (CUdeviceptr)(uintptr_t)p;
}

static bool on_device(CUdeviceptr p) {
	const struct block *b = block_find(p);
	return b && b->device >= 0 && b->kind != B_MANAGED;
}

static size_t readable(CUdeviceptr p, size_t n) {
	return block_find(p) ? data_at(p, n) : n;
}

static void move(CUdeviceptr to, CUdeviceptr from, size_t n) {
	size_t room = readable(to, n), data = readable(from, room);
	memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, data);
	memset((char *)(uintptr_t)to + data, 0, room - data);
}

static uint64_t copy_ns(int device, uint64_t bytes) {
	const struct card *c = card_of(device);
	return bytes * 1000 / ((uint64_t)c->memory_mhz * 2 * (unsigned)c->bus_bits / 8 + 1);
}

/* Is [p, p+n) inside one allocation of this device, or no device memory at all? */
static bool fits(CUdeviceptr p, size_t n) {
	const struct block *b = block_find(p);
	return !b || (b->kind != B_RESERVED && p + n <= b->base + b->size);
}

static CUresult start(CUstream stream, enum node_type type, uint64_t ns, struct stream **s) {
	CUresult r;
	if ((r = stream_get(stream, s)) || (r = stream_ready(*s)))
		return r;
	if (!(*s)->capture)
		return ns ? stream_work(*s, &(struct work){.ns = ns}) : OK;
	struct node *n = capture_node(*s, type, &r);
	if (n)
		n->work.ns = ns;
	return r;
}

/* device: which sides must be device memory: bit 0 the source, bit 1 the destination. */
static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream, bool wait, int device) {
	CUresult r = enter(CONTEXT);
	struct stream *s;
	if (r)
		return r;
	if (!n)
		return leave(OK);
	if (!to || !from || !fits(to, n) || !fits(from, n) || (device & 1 && !block_find(from)) || (device & 2 && !block_find(to)))
		return leave(ERR_VALUE);
	bool inside = on_device(to) && on_device(from);
	if ((r = start(stream, N_MEMCPY, inside ? 2 * copy_ns(context_current()->device, n) : 0, &s)) || s->capture)
		return leave(r);
	if (wait && !inside)
		wait_position(s->context->device, stream_tail(s), s->host_tail);
	move(to, from, n);
	return leave(OK);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n) { return copy(to, of(from), n, NULL, true, 2); }
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n) { return copy(of(to), from, n, NULL, true, 1); }
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n) { return copy(to, from, n, NULL, true, 3); }
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t n) { return copy(to, from, n, NULL, true, 0); }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s) { return copy(to, of(from), n, s, false, 2); }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) { return copy(to, from, n, s, false, 3); }
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) { return copy(to, from, n, s, false, 0); }

/* Later work may still write what is read here: data is moved when the call is made. */
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s) { return copy(of(to), from, n, s, false, 1); }

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext a, CUdeviceptr from, CUcontext b, size_t n) {
	return is_kind(a, K_CONTEXT) && is_kind(b, K_CONTEXT) ? copy(to, from, n, NULL, true, 3) : ERR_CONTEXT;
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext a, CUdeviceptr from, CUcontext b, size_t n, CUstream s) {
	return is_kind(a, K_CONTEXT) && is_kind(b, K_CONTEXT) ? copy(to, from, n, s, false, 3) : ERR_CONTEXT;
}

static CUresult fill(CUdeviceptr p, size_t pitch, unsigned value, size_t unit, size_t width, size_t height, CUstream stream) {
	CUresult r = enter(CONTEXT);
	struct stream *s;
	if (r)
		return r;
	size_t row = width * unit, all = height > 1 ? pitch * (height - 1) + row : row;
	const struct block *b = block_find(p);
	if (!row || !height)
		return leave(OK);
	if (!b || !fits(p, all) || p % unit || (height > 1 && pitch < row))
		return leave(ERR_VALUE);
	if ((r = start(stream, N_MEMSET, copy_ns(context_current()->device, row * height), &s)) || s->capture)
		return leave(r);
	for (size_t y = 0; y < height; y++) {
		size_t n = data_at(p + y * pitch, row) / unit;
		if (!n)
			break;
		for (size_t x = 0; x < n; x++)
			memcpy((char *)(uintptr_t)(p + y * pitch) + x * unit, &value, unit);
	}
	return leave(OK);
}

CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char v, size_t n) { return fill(p, 0, v, 1, n, 1, NULL); }
CUresult cuMemsetD16_v2(CUdeviceptr p, unsigned short v, size_t n) { return fill(p, 0, v, 2, n, 1, NULL); }
CUresult cuMemsetD32_v2(CUdeviceptr p, unsigned v, size_t n) { return fill(p, 0, v, 4, n, 1, NULL); }
CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char v, size_t n, CUstream s) { return fill(p, 0, v, 1, n, 1, s); }
CUresult cuMemsetD16Async(CUdeviceptr p, unsigned short v, size_t n, CUstream s) { return fill(p, 0, v, 2, n, 1, s); }
CUresult cuMemsetD32Async(CUdeviceptr p, unsigned v, size_t n, CUstream s) { return fill(p, 0, v, 4, n, 1, s); }
CUresult cuMemsetD2D8_v2(CUdeviceptr p, size_t pitch, unsigned char v, size_t w, size_t h) { return fill(p, pitch, v, 1, w, h, NULL); }
CUresult cuMemsetD2D16_v2(CUdeviceptr p, size_t pitch, unsigned short v, size_t w, size_t h) { return fill(p, pitch, v, 2, w, h, NULL); }
CUresult cuMemsetD2D32_v2(CUdeviceptr p, size_t pitch, unsigned v, size_t w, size_t h) { return fill(p, pitch, v, 4, w, h, NULL); }

CUresult cuMemsetD2D8Async(CUdeviceptr p, size_t pitch, unsigned char v, size_t w, size_t h, CUstream s) {
	return fill(p, pitch, v, 1, w, h, s);
}

CUresult cuMemsetD2D16Async(CUdeviceptr p, size_t pitch, unsigned short v, size_t w, size_t h, CUstream s) {
	return fill(p, pitch, v, 2, w, h, s);
}

CUresult cuMemsetD2D32Async(CUdeviceptr p, size_t pitch, unsigned v, size_t w, size_t h, CUstream s) {
	return fill(p, pitch, v, 4, w, h, s);
}

/* The start of a side of a 2D or 3D copy. */
static CUdeviceptr side(int type, const void *host, CUdeviceptr device, const struct array *a, size_t x, size_t row, size_t *pitch) {
	CUdeviceptr base = type == HOST_MEMORY ? of(host) : device;
	if (type == ARRAY_MEMORY) {
		if (!is_kind(a, K_ARRAY))
			return 0;
		*pitch = a->desc.width ? a->bytes / (a->desc.width ? (a->desc.height ? a->desc.height : 1) * (a->desc.depth ? a->desc.depth : 1) : 1) : 0;
		base = a->pointer;
	}
	if (!*pitch)
		*pitch = row;
	return base ? base + x : 0;
}

static CUresult copy2d(const struct copy2d *c, CUstream stream, bool wait) {
	CUresult r = enter(CONTEXT);
	struct stream *s;
	if (r)
		return r;
	if (!c)
		return leave(ERR_VALUE);
	size_t from_pitch = c->src_pitch, to_pitch = c->dst_pitch;
	CUdeviceptr from = side(c->src_type, c->src_host, c->src_device, c->src_array, c->src_x, c->width, &from_pitch);
	CUdeviceptr to = side(c->dst_type, c->dst_host, c->dst_device, c->dst_array, c->dst_x, c->width, &to_pitch);
	if (!c->width || !c->height)
		return leave(OK);
	if (!from || !to || from_pitch < c->width || to_pitch < c->width)
		return leave(ERR_VALUE);
	if ((r = start(stream, N_MEMCPY, 0, &s)) || s->capture)
		return leave(r);
	if (wait)
		wait_position(s->context->device, stream_tail(s), s->host_tail);
	for (size_t y = 0; y < c->height; y++)
		move(to + (c->dst_y + y) * to_pitch, from + (c->src_y + y) * from_pitch, c->width);
	return leave(OK);
}

CUresult cuMemcpy2D_v2(const struct copy2d *c) { return copy2d(c, NULL, true); }
CUresult cuMemcpy2DUnaligned_v2(const struct copy2d *c) { return copy2d(c, NULL, true); }
CUresult cuMemcpy2DAsync_v2(const struct copy2d *c, CUstream s) { return copy2d(c, s, false); }

static CUresult array_copy(struct array *a, size_t offset, CUdeviceptr other, size_t n, CUstream stream, bool to_array) {
	if (!is_kind(a, K_ARRAY) || offset + n > a->bytes)
		return ERR_VALUE;
	CUdeviceptr inside = a->pointer + offset;
	return to_array ? copy(inside, other, n, stream, true, 0) : copy(other, inside, n, stream, true, 0);
}

CUresult cuMemcpyHtoA_v2(CUarray a, size_t offset, const void *p, size_t n) { return array_copy(a, offset, of(p), n, NULL, true); }
CUresult cuMemcpyAtoH_v2(void *p, CUarray a, size_t offset, size_t n) { return array_copy(a, offset, of(p), n, NULL, false); }
CUresult cuMemcpyDtoA_v2(CUarray a, size_t offset, CUdeviceptr p, size_t n) { return array_copy(a, offset, p, n, NULL, true); }
CUresult cuMemcpyAtoD_v2(CUdeviceptr p, CUarray a, size_t offset, size_t n) { return array_copy(a, offset, p, n, NULL, false); }
CUresult cuMemcpyHtoAAsync_v2(CUarray a, size_t o, const void *p, size_t n, CUstream s) { return array_copy(a, o, of(p), n, s, true); }
CUresult cuMemcpyAtoHAsync_v2(void *p, CUarray a, size_t o, size_t n, CUstream s) { return array_copy(a, o, of(p), n, s, false); }
