/* Virtual memory management: physical memory by handle, ranges of addresses, mappings between them. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARED_MAGIC 0x76677075666b6d31ULL

struct physical {
	struct head head;
	int device; /* -1: host */
	struct alloc_prop prop;
	size_t size;
	unsigned handles, mappings;
	int file; /* -1: not shared with other processes */
	bool foreign;
};

struct trailer { uint64_t magic, size; struct alloc_prop prop; int card; }; /* behind the memory in a shared file */

static struct range { struct range *next; CUdeviceptr base; size_t size; } *ranges;

static struct physical *physical_of(CUmemHandle handle) {
	struct physical *p = (struct physical *)(uintptr_t)handle;
	return is_kind(p, K_PHYSICAL) ? p : NULL;
}

static bool is_whole(uint64_t bytes) {
	return bytes && bytes % GRANULE == 0;
}

static CUresult place(const struct alloc_prop *p, int *device) {
	int host_since = 12020;
	switch (p->location.type) {
	case LOCATION_DEVICE:
		*device = p->location.id;
		return *device >= 0 && *device < process.devices ? OK : ERR_DEVICE;
	case LOCATION_DOMAIN:
		*device = p->location.id & 0xff;
		return *device < process.devices && driver_get()->cuda >= 13050 ? OK : ERR_VALUE;
	case LOCATION_HOST: case LOCATION_NUMA: case LOCATION_NUMA_CURRENT:
		*device = -1;
		return driver_get()->cuda >= host_since ? OK : ERR_VALUE;
	default: return ERR_VALUE;
	}
}

CUresult cuMemGetAllocationGranularity(size_t *out, const struct alloc_prop *p, int option) {
	CUresult r = enter(ANY);
	int device;
	if (r)
		return r;
	if (!out || !p || option < 0 || option > 1 || (r = place(p, &device)))
		return leave(ERR_VALUE);
	*out = GRANULE;
	return leave(OK);
}

static int share(const struct physical *p) {
	int file = memfd_create("vgpuctl-fake", MFD_CLOEXEC);
	struct trailer t = {SHARED_MAGIC, p->size, p->prop, p->device < 0 ? -1 : process.device[p->device].card};
	if (file >= 0 && (ftruncate(file, (off_t)(p->size + sizeof t)) || pwrite(file, &t, sizeof t, (off_t)p->size) != sizeof t)) {
		close(file);
		file = -1;
	}
	return file;
}

CUresult cuMemCreate(CUmemHandle *out, size_t size, const struct alloc_prop *prop, unsigned long long flags) {
	CUresult r = enter(ANY);
	int device;
	if (r)
		return r;
	if (!out || !prop || flags || !is_whole(size) || prop->type != 1)
		return leave(ERR_VALUE);
	if ((r = place(prop, &device)))
		return leave(r);
	if (prop->handle_types & ~1)
		return leave(ERR_SUPPORTED);
	if (device >= 0 && (r = memory_charge(device, size)))
		return leave(r);
	struct physical *p = object_new(K_PHYSICAL, sizeof *p);
	p->device = device;
	p->prop = *prop;
	p->size = size;
	p->handles = 1;
	p->file = prop->handle_types & 1 ? share(p) : -1;
	*out = (CUmemHandle)(uintptr_t)p;
	return leave(OK);
}

static void end_if_unused(struct physical *p) {
	if (p->handles || p->mappings)
		return;
	if (p->device >= 0 && !p->foreign)
		memory_refund(p->device, p->size);
	if (p->file >= 0)
		close(p->file);
	object_end(p);
}

CUresult cuMemRelease(CUmemHandle handle) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	struct physical *p = physical_of(handle);
	if (!p || !p->handles)
		return leave(ERR_VALUE);
	p->handles--;
	end_if_unused(p);
	return leave(OK);
}

CUresult cuMemRetainAllocationHandle(CUmemHandle *out, void *address) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	struct block *b = block_find((CUdeviceptr)(uintptr_t)address);
	if (!out || !b || b->kind != B_VMM)
		return leave(ERR_VALUE);
	b->physical->handles++;
	*out = (CUmemHandle)(uintptr_t)b->physical;
	return leave(OK);
}

CUresult cuMemGetAllocationPropertiesFromHandle(struct alloc_prop *out, CUmemHandle handle) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	struct physical *p = physical_of(handle);
	if (!out || !p)
		return leave(ERR_VALUE);
	*out = p->prop;
	return leave(OK);
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr wanted, unsigned long long flags) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out || flags || !is_whole(size) || (alignment & (alignment - 1)))
		return leave(ERR_VALUE);
	size_t unit = alignment > GRANULE ? alignment : GRANULE;
	char *p = mmap((void *)(uintptr_t)wanted, size + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct range *g = calloc(1, sizeof *g);
	if (p == MAP_FAILED || !g)
		return leave(ERR_MEMORY);
	char *start = (char *)(((uintptr_t)p + unit - 1) & ~(uintptr_t)(unit - 1));
	if (start > p)
		munmap(p, (size_t)(start - p));
	munmap(start + size, (size_t)(p + unit - start));
	*g = (struct range){ranges, (CUdeviceptr)(uintptr_t)start, size};
	ranges = g;
	*out = g->base;
	return leave(OK);
}

static bool is_reserved(CUdeviceptr base, size_t size) {
	for (struct range *g = ranges; g; g = g->next)
		if (base >= g->base && base + size <= g->base + g->size)
			return true;
	return false;
}

static bool is_mapped(CUdeviceptr base, size_t size) {
	for (size_t at = 0; at < size; at += GRANULE)
		if (block_find(base + at))
			return true;
	return false;
}

CUresult cuMemAddressFree(CUdeviceptr base, size_t size) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	for (struct range **q = &ranges; *q; q = &(*q)->next)
		if ((*q)->base == base && (*q)->size == size && !is_mapped(base, size)) {
			struct range *g = *q;
			*q = g->next;
			munmap((void *)(uintptr_t)base, size);
			free(g);
			return leave(OK);
		}
	return leave(ERR_VALUE);
}

CUresult cuMemMap(CUdeviceptr base, size_t size, size_t offset, CUmemHandle handle, unsigned long long flags) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	struct physical *p = physical_of(handle);
	if (!p || flags || offset || !is_whole(size) || base % GRANULE || size > p->size || !is_reserved(base, size) || is_mapped(base, size))
		return leave(ERR_VALUE);
	struct block *b = calloc(1, sizeof *b);
	if (!b)
		return leave(ERR_MEMORY);
	*b = (struct block){.base = base, .size = size, .mapped = size, .kind = B_VMM, .device = p->device, .physical = p, .id = ++process.next_id};
	if (p->file >= 0)
		mmap((void *)(uintptr_t)base, KEPT, PROT_NONE, MAP_SHARED | MAP_FIXED, p->file, 0);
	p->mappings++;
	block_add(b);
	return leave(OK);
}

CUresult cuMemUnmap(CUdeviceptr base, size_t size) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_whole(size) || !is_reserved(base, size))
		return leave(ERR_VALUE);
	for (CUdeviceptr at = base; at < base + size; at += GRANULE) {
		struct block *b = block_at(at);
		if (!b || b->kind != B_VMM)
			continue;
		struct physical *p = b->physical;
		mmap((void *)(uintptr_t)b->base, b->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		block_end(b);
		p->mappings--;
		end_if_unused(p);
	}
	return leave(OK);
}

CUresult cuMemSetAccess(CUdeviceptr base, size_t size, const struct access_desc *access, size_t count) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_whole(size) || !access || !count)
		return leave(ERR_VALUE);
	for (CUdeviceptr at = base; at < base + size;) {
		struct block *b = block_find(at);
		if (!b || b->kind != B_VMM)
			return leave(ERR_VALUE);
		b->flags = (unsigned)access[0].flags;
		mprotect((void *)(uintptr_t)b->base, KEPT, b->flags ? PROT_READ | PROT_WRITE : PROT_NONE);
		at = b->base + b->size;
	}
	return leave(OK);
}

CUresult cuMemGetAccess(unsigned long long *flags, const struct location *where, CUdeviceptr p) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	struct block *b = block_find(p);
	if (!flags || !where || !b || b->kind != B_VMM)
		return leave(ERR_VALUE);
	*flags = b->flags;
	return leave(OK);
}

enum { POSIX_FILE = 1 };

CUresult cuMemExportToShareableHandle(int *out, CUmemHandle handle, int type, unsigned long long flags) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	struct physical *p = physical_of(handle);
	if (!out || !p || flags)
		return leave(ERR_VALUE);
	if (type != POSIX_FILE || p->file < 0)
		return leave(type == POSIX_FILE ? ERR_VALUE : ERR_SUPPORTED);
	*out = dup(p->file);
	return leave(*out >= 0 ? OK : ERR_OS);
}

CUresult cuMemImportFromShareableHandle(CUmemHandle *out, void *os_handle, int type) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	int file = (int)(intptr_t)os_handle;
	struct stat st;
	struct trailer t;
	if (!out || type != POSIX_FILE)
		return leave(out ? ERR_SUPPORTED : ERR_VALUE);
	if (fstat(file, &st) || st.st_size < (off_t)sizeof t || pread(file, &t, sizeof t, st.st_size - (off_t)sizeof t) != sizeof t
	    || t.magic != SHARED_MAGIC || t.size != (uint64_t)st.st_size - sizeof t)
		return leave(ERR_VALUE);
	int device = -1;
	for (int i = 0; i < process.devices; i++)
		if (process.device[i].card == t.card)
			device = i;
	if (t.card >= 0 && device < 0)
		return leave(ERR_DEVICE);
	struct physical *p = object_new(K_PHYSICAL, sizeof *p);
	if (!p)
		return leave(ERR_MEMORY);
	p->device = device;
	p->prop = t.prop;
	p->size = t.size;
	p->handles = 1;
	p->foreign = true;
	p->file = dup(file);
	*out = (CUmemHandle)(uintptr_t)p;
	return leave(OK);
}
