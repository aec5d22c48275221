#include "ways.h"

#include <string.h>

void *stream;
static void *pool;

static CUresult take_linear(struct held *h, size_t n) { return cu.cuMemAlloc_v2(&h->pointer, n); }
static CUresult give_pointer(struct held *h) { return cu.cuMemFree_v2(h->pointer); }

static CUresult take_pitch(struct held *h, size_t n) {
	size_t pitch, row = 4096;
	return cu.cuMemAllocPitch_v2(&h->pointer, &pitch, row, (n + row - 1) / row, 4);
}

static CUresult take_managed(struct held *h, size_t n) { return cu.cuMemAllocManaged(&h->pointer, n, 1); }

static CUresult take_array(struct held *h, size_t n) {
	struct array2d d = {1024, (n + 4095) / 4096, 0x20, 1}; /* floats */
	return cu.cuArrayCreate_v2(&h->object, &d);
}

static CUresult take_array3d(struct held *h, size_t n) {
	struct array3d d = {64, 64, (n + 16383) / 16384, 0x20, 1, 0};
	return cu.cuArray3DCreate_v2(&h->object, &d);
}

static CUresult give_array(struct held *h) { return cu.cuArrayDestroy(h->object); }

static CUresult take_mipmap(struct held *h, size_t n) {
	struct array3d d = {1024, (n * 3 / 4 + 4095) / 4096, 0, 0x20, 1, 0}; /* the levels together are 4/3 of the first */
	return cu.cuMipmappedArrayCreate(&h->object, &d, 32);
}

static CUresult give_mipmap(struct held *h) { return cu.cuMipmappedArrayDestroy(h->object); }

int current_device(void) {
	int d = 0;
	cu.cuCtxGetDevice(&d);
	return d;
}

size_t granule(size_t n) {
	return (n + (2 << 20) - 1) / (2 << 20) * (2 << 20);
}

static CUresult map(struct held *h, size_t n, const struct physical_prop *p) {
	h->size = granule(n);
	CUresult r = cu.cuMemCreate(&h->handle, h->size, p, 0);
	if (r)
		return r;
	if ((r = cu.cuMemAddressReserve(&h->pointer, h->size, 0, 0, 0)) || (r = cu.cuMemMap(h->pointer, h->size, 0, h->handle, 0)))
		return r;
	struct access a = {{1, current_device()}, 3};
	return cu.cuMemSetAccess(h->pointer, h->size, &a, 1);
}

static CUresult take_vmm(struct held *h, size_t n) {
	struct physical_prop p = {.type = 1, .place = {1, current_device()}};
	return map(h, n, &p);
}

static CUresult take_vmm_host(struct held *h, size_t n) {
	struct physical_prop p = {.type = 1, .place = {3, 0}}; /* a NUMA node of the host */
	return map(h, n, &p);
}

static CUresult give_vmm(struct held *h) {
	CUresult r = cu.cuMemUnmap(h->pointer, h->size);
	if (!r)
		r = cu.cuMemRelease(h->handle);
	return r ? r : cu.cuMemAddressFree(h->pointer, h->size);
}

static CUresult take_async(struct held *h, size_t n) { return cu.cuMemAllocAsync(&h->pointer, n, stream); }

static CUresult take_pool(struct held *h, size_t n) {
	struct pool_props p = {.type = 1, .place = {1, current_device()}};
	CUresult r = pool ? 0 : cu.cuMemPoolCreate(&pool, &p);
	return r ? r : cu.cuMemAllocFromPoolAsync(&h->pointer, n, pool, stream);
}

static CUresult give_async(struct held *h) { return cu.cuMemFreeAsync(h->pointer, stream); }

static CUresult take_graph(struct held *h, size_t n) {
	struct alloc_node p = {.pool = {.type = 1, .place = {1, current_device()}}, .size = n};
	void *graph, *node;
	CUresult r = cu.cuGraphCreate(&graph, 0);
	if (r)
		return r;
	r = cu.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &p);
	if (!r)
		r = cu.cuGraphInstantiateWithFlags(&h->object, graph, 0);
	cu.cuGraphDestroy(graph);
	if (r)
		return r;
	r = cu.cuGraphLaunch(h->object, stream);
	if (!r)
		r = cu.cuStreamSynchronize(stream);
	if (r)
		cu.cuGraphExecDestroy(h->object);
	h->pointer = p.pointer;
	return r;
}

static CUresult give_graph(struct held *h) {
	CUresult r = cu.cuMemFree_v2(h->pointer);
	return r ? r : cu.cuGraphExecDestroy(h->object);
}

static CUresult take_host(struct held *h, size_t n) { return cu.cuMemHostAlloc(&h->object, n, 0); }
static CUresult give_host(struct held *h) { return cu.cuMemFreeHost(h->object); }

static const struct way ways[] = {
	{"linear", take_linear, give_pointer, 0},   {"pitch", take_pitch, give_pointer, 0}, {"managed", take_managed, give_pointer, 0},
	{"array", take_array, give_array, 0},       {"array3d", take_array3d, give_array, 0}, {"mipmap", take_mipmap, give_mipmap, 0},
	{"vmm", take_vmm, give_vmm, 1},             {"vmm-host", take_vmm_host, give_vmm, 1}, {"async", take_async, give_async, 0},
	{"pool", take_pool, give_async, 0},         {"graph", take_graph, give_graph, 0},     {"host", take_host, give_host, 0},
	{"async-sync", take_async, give_pointer, 0},
};

const struct way *way_of(const char *name) {
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	return NULL;
}

int has_way(const struct way *w) {
	const struct { CUresult (*take)(struct held *, size_t); int there; } needs[] = {
		{take_async, cu.cuMemAllocAsync != NULL}, {take_pool, cu.cuMemAllocFromPoolAsync != NULL},
		{take_graph, cu.cuGraphAddMemAllocNode != NULL}, {take_vmm, cu.cuMemCreate != NULL}, {take_vmm_host, cu.cuMemCreate != NULL},
	};
	for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
		if (needs[i].take == w->take)
			return needs[i].there;
	return 1;
}
