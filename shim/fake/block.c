/* Ranges of addresses: what each one is, found by any address in it. */
#define _GNU_SOURCE
#include "driver.h"

#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ALIGN (2 * MIB)

static void *tree;

static int compare(const void *a, const void *b) {
	const struct block *x = a, *y = b;
	if (x->base + x->mapped <= y->base)
		return -1;
	return x->base >= y->base + y->mapped;
}

struct block *block_find(CUdeviceptr p) {
	struct block key = {.base = p, .mapped = 1};
	struct block *const *found = tfind(&key, &tree, compare);
	return found ? *found : NULL;
}

struct block *block_at(CUdeviceptr p) {
	struct block *b = block_find(p);
	return b && b->base == p ? b : NULL;
}

void block_add(struct block *b) {
	tsearch(b, &tree, compare);
}

static size_t pages(size_t bytes) {
	return (bytes + 4095) & ~(size_t)4095;
}

/* Address space for `size` bytes; large ranges start at a multiple of 2 MiB. */
static void *reserve(size_t size, int protection) {
	size_t extra = size >= ALIGN ? ALIGN : 0;
	char *p = mmap(NULL, size + extra, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (extra) {
		char *start = (char *)(((uintptr_t)p + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
		if (start > p)
			munmap(p, (size_t)(start - p));
		if (p + extra > start)
			munmap(start + size, (size_t)(p + extra - start));
		p = start;
	}
	return p;
}

struct block *block_new(enum block_kind kind, size_t size, int device) {
	struct block *b = calloc(1, sizeof *b);
	if (!b)
		return NULL;
	bool whole = kind == B_MANAGED || kind == B_HOST;
	b->kind = kind;
	b->size = size;
	b->mapped = pages(size);
	b->kept = size < KEPT ? size : KEPT;
	b->device = device;
	b->id = ++process.next_id;
	char *p = reserve(b->mapped, whole ? PROT_READ | PROT_WRITE : PROT_NONE);
	if (!p || (!whole && kind != B_RESERVED && mprotect(p, pages(b->kept), PROT_READ | PROT_WRITE))) {
		free(b);
		return NULL;
	}
	b->base = (CUdeviceptr)(uintptr_t)p;
	block_add(b);
	return b;
}

void block_end(struct block *b) {
	tdelete(b, &tree, compare);
	if (b->kind != B_REGISTERED && b->kind != B_VMM)
		munmap((void *)(uintptr_t)b->base, b->mapped);
	free(b);
}

static void (*visitor)(struct block *, void *);
static void *visitor_arg;

static void walk(const void *node, VISIT which, int depth) {
	(void)depth;
	if (which == postorder || which == leaf)
		visitor(*(struct block *const *)node, visitor_arg);
}

void block_each(void (*visit)(struct block *, void *), void *arg) {
	visitor = visit;
	visitor_arg = arg;
	twalk(tree, walk);
}

struct list { struct context *context; struct block **blocks; size_t count; };

static void collect(struct block *b, void *arg) {
	struct list *l = arg;
	if (b->context != l->context)
		return;
	struct block **more = realloc(l->blocks, (l->count + 1) * sizeof *more);
	if (more) {
		l->blocks = more;
		l->blocks[l->count++] = b;
	}
}

void blocks_end_of(struct context *c) {
	struct list l = {.context = c};
	block_each(collect, &l);
	for (size_t i = 0; i < l.count; i++)
		block_free(l.blocks[i]);
	free(l.blocks);
}

void block_keep(struct block *b) {
	if (b->kept < b->size && !mprotect((void *)(uintptr_t)b->base, b->mapped, PROT_READ | PROT_WRITE))
		b->kept = b->size;
}

size_t data_at(CUdeviceptr p, size_t bytes) {
	const struct block *b = block_find(p);
	if (!b || b->kind == B_RESERVED)
		return 0;
	size_t offset = p - b->base, end = b->kind == B_MANAGED || b->kind == B_HOST || b->kind == B_REGISTERED ? b->size : b->kept;
	if (offset >= end)
		return 0;
	return bytes < end - offset ? bytes : end - offset;
}
