/* Arrays and mipmaps: an opaque layout, so plain memory of the right size. */
#include "driver.h"



struct mipmap { struct head head; struct array3d_desc desc; unsigned levels; uint64_t bytes; CUdeviceptr pointer; struct array *level[32]; };

enum { LAYERED = 1, SPARSE = 0x40, DEFERRED = 0x80 };

static unsigned format_bytes(int format) {
	switch (format) {
	case 0x01: case 0x08: return 1;              /* 8-bit integers */
	case 0x02: case 0x09: case 0x10: return 2;   /* 16-bit, half */
	case 0x03: case 0x0a: case 0x20: return 4;   /* 32-bit, float */
	default: return 0;
	}
}

static uint64_t at_least_1(uint64_t n) {
	return n ? n : 1;
}

static uint64_t bytes_of(const struct array3d_desc *d, unsigned level) {
	uint64_t depth = d->flags & LAYERED ? at_least_1(d->depth) : at_least_1(d->depth >> level);
	return at_least_1(d->width >> level) * at_least_1(d->height >> level) * depth * d->channels * format_bytes(d->format);
}

static bool usable(const struct array3d_desc *d) {
	return d->width && format_bytes(d->format) && (d->channels == 1 || d->channels == 2 || d->channels == 4);
}

/* Memory for an array, freed with its context; arrays take whole pieces of 64 KiB, large ones granules. */
static CUresult take(struct context *c, uint64_t bytes, bool backed, CUdeviceptr *out) {
	uint64_t unit = bytes <= MIB ? 65536 : GRANULE, cost = backed ? (bytes + unit - 1) / unit * unit : 0;
	CUresult r = !cost ? OK : bytes <= MIB ? memory_charge_small(c, cost) : memory_charge(c->device, cost);
	if (r)
		return r;
	struct block *b = block_new(B_ARRAY, bytes, c->device);
	if (!b)
		return ERR_MEMORY;
	b->context = c;
	*(bytes <= MIB ? &b->small : &b->charged) = cost;
	*out = b->base;
	return OK;
}

static void give_back(CUdeviceptr p) {
	struct block *b = block_at(p);
	if (b && b->kind == B_ARRAY)
		block_free(b);
}

static struct array *array_new(const struct array3d_desc *d, uint64_t bytes, CUdeviceptr p) {
	struct array *a = object_new(K_ARRAY, sizeof *a);
	if (!a)
		return NULL;
	a->desc = *d;
	a->bytes = bytes;
	a->pointer = p;
	return a;
}

static bool is_backed(const struct array3d_desc *d) {
	return !(d->flags & (SPARSE | DEFERRED));
}

CUresult cuArray3DCreate_v2(CUarray *out, const struct array3d_desc *d) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	if (!out || !d || !usable(d))
		return leave(ERR_VALUE);
	uint64_t bytes = bytes_of(d, 0);
	CUdeviceptr p;
	if ((r = take(context_current(), bytes, is_backed(d), &p)))
		return leave(r);
	*out = array_new(d, bytes, p);
	return leave(*out ? OK : ERR_MEMORY);
}

CUresult cuArrayCreate_v2(CUarray *out, const struct array_desc *d) {
	if (!d)
		return ERR_VALUE;
	struct array3d_desc all = {.width = d->width, .height = d->height, .format = d->format, .channels = d->channels};
	return cuArray3DCreate_v2(out, &all);
}

CUresult cuArrayDestroy(CUarray a) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	if (!is_kind(a, K_ARRAY) || a->level)
		return leave(ERR_HANDLE);
	give_back(a->pointer);
	object_end(a);
	return leave(OK);
}

CUresult cuArray3DGetDescriptor_v2(struct array3d_desc *out, CUarray a) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out || !is_kind(a, K_ARRAY))
		return leave(out ? ERR_HANDLE : ERR_VALUE);
	*out = a->desc;
	return leave(OK);
}

CUresult cuArrayGetDescriptor_v2(struct array_desc *out, CUarray a) {
	struct array3d_desc all;
	CUresult r = cuArray3DGetDescriptor_v2(out ? &all : NULL, a);
	if (!r)
		*out = (struct array_desc){all.width, all.height, all.format, all.channels};
	return r;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const struct array3d_desc *d, unsigned levels) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	if (!out || !d || !usable(d) || !levels)
		return leave(ERR_VALUE);
	uint64_t longest = d->width > d->height ? d->width : d->height;
	if (!(d->flags & LAYERED) && d->depth > longest)
		longest = d->depth;
	unsigned most = 1;
	while (longest >>= 1)
		most++;
	struct mipmap *m = object_new(K_MIPMAP, sizeof *m);
	if (!m)
		return leave(ERR_MEMORY);
	m->levels = levels < most ? levels : most;
	for (unsigned i = 0; i < m->levels; i++)
		m->bytes += bytes_of(d, i);
	m->desc = *d;
	if ((r = take(context_current(), m->bytes, is_backed(d), &m->pointer))) {
		object_end(m);
		return leave(r);
	}
	*out = m;
	return leave(OK);
}

CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray m, unsigned level) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out || !is_kind(m, K_MIPMAP) || level >= m->levels)
		return leave(out && is_kind(m, K_MIPMAP) ? ERR_VALUE : ERR_HANDLE);
	if (!m->level[level]) {
		struct array3d_desc d = m->desc;
		d.width = at_least_1(d.width >> level);
		d.height = d.height ? at_least_1(d.height >> level) : 0;
		CUdeviceptr p = m->pointer;
		for (unsigned i = 0; i < level; i++)
			p += bytes_of(&m->desc, i);
		m->level[level] = array_new(&d, bytes_of(&m->desc, level), p);
		if (m->level[level])
			m->level[level]->level = true;
	}
	*out = m->level[level];
	return leave(*out ? OK : ERR_MEMORY);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray m) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	if (!is_kind(m, K_MIPMAP))
		return leave(ERR_HANDLE);
	give_back(m->pointer);
	for (unsigned i = 0; i < m->levels; i++)
		if (m->level[i])
			object_end(m->level[i]);
	object_end(m);
	return leave(OK);
}
