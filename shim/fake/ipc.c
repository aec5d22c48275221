/* Memory of another process: legacy IPC handles, and memory that another interface made. */
#define _GNU_SOURCE
#include "driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define IPC_MAGIC 0x76677075666b6970ULL

struct ipc { uint64_t magic, size, id; int pid, file, card; };

/* The part that holds data moves into a file that the other process opens by this process's descriptor. */
static int publish(const struct block *b) {
	size_t n = b->mapped < KEPT ? b->mapped : KEPT;
	void *at = (void *)(uintptr_t)b->base;
	int file = memfd_create("vgpuctl-fake-ipc", MFD_CLOEXEC);
	if (file < 0)
		return -1;
	if (ftruncate(file, (off_t)n) || pwrite(file, at, n, 0) != (ssize_t)n
	    || mmap(at, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
		close(file);
		return -1;
	}
	return file;
}

CUresult cuIpcGetMemHandle(CUipcHandle *out, CUdeviceptr p) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	struct block *b = block_find(p);
	if (!out || !b || b->kind != B_LINEAR)
		return leave(ERR_VALUE);
	if (!b->references) {
		int file = publish(b);
		if (file < 0)
			return leave(ERR_OS);
		b->references = 1;
		b->flags = (unsigned)file;
	}
	struct ipc h = {IPC_MAGIC, b->size, b->id, getpid(), (int)b->flags, process.device[b->device].card};
	memset(out, 0, sizeof *out);
	memcpy(out, &h, sizeof h);
	return leave(OK);
}

static void find_same(struct block *b, void *arg) {
	struct block **wanted = arg;
	if (b->kind == B_IPC && b->id == wanted[0]->id && b->flags == wanted[0]->flags)
		wanted[1] = b;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcHandle handle, unsigned flags) {
	CUresult r = enter(CONTEXT);
	struct ipc h;
	if (r)
		return r;
	memcpy(&h, &handle, sizeof h);
	if (!out || flags != 1 || h.magic != IPC_MAGIC)
		return leave(ERR_VALUE);
	if (h.pid == getpid())
		return leave(ERR_CONTEXT);
	struct block key = {.id = h.id, .flags = (unsigned)h.pid}, *found[2] = {&key, NULL};
	block_each(find_same, found);
	if (found[1]) {
		found[1]->references++;
		*out = found[1]->base;
		return leave(OK);
	}
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", h.pid, h.file);
	int file = open(path, O_RDWR | O_CLOEXEC);
	int device = context_current()->device;
	struct block *b = file >= 0 ? block_new(B_IPC, h.size, device) : NULL;
	size_t n = h.size < KEPT ? (h.size + 4095) & ~(size_t)4095 : KEPT;
	if (!b || mmap((void *)(uintptr_t)b->base, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
		if (file >= 0)
			close(file);
		return leave(file < 0 ? ERR_VALUE : ERR_MEMORY);
	}
	close(file);
	b->context = context_current();
	b->references = 1;
	b->id = h.id;
	b->flags = (unsigned)h.pid;
	*out = b->base;
	return leave(OK);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcHandle handle, unsigned flags) { return cuIpcOpenMemHandle_v2(out, handle, flags); }

CUresult cuIpcCloseMemHandle(CUdeviceptr p) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	struct block *b = block_at(p);
	if (!b || b->kind != B_IPC)
		return leave(ERR_VALUE);
	if (--b->references == 0)
		block_end(b);
	return leave(OK);
}

/* External memory was made, and is paid for, by the interface that exported it. */
struct external { struct head head; uint64_t size; };

CUresult cuImportExternalMemory(CUexternalMemory *out, const struct external_desc *d) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!out || !d || !d->size)
		return leave(ERR_VALUE);
	if (d->type != 1) /* an opaque file descriptor */
		return leave(ERR_SUPPORTED);
	struct external *x = object_new(K_EXTERNAL, sizeof *x);
	if (!x)
		return leave(ERR_MEMORY);
	x->size = d->size;
	close(d->handle.fd); /* the driver owns it now */
	*out = x;
	return leave(OK);
}

struct buffer_desc { unsigned long long offset, size; unsigned flags, reserved[16]; };

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory x, const struct buffer_desc *d) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!out || !d || !d->size || !is_kind(x, K_EXTERNAL))
		return leave(is_kind(x, K_EXTERNAL) ? ERR_VALUE : ERR_HANDLE);
	if (d->offset + d->size > x->size)
		return leave(ERR_VALUE);
	struct block *b = block_new(B_EXTERNAL, d->size, context_current()->device);
	if (!b)
		return leave(ERR_MEMORY);
	b->context = context_current();
	*out = b->base;
	return leave(OK);
}

CUresult cuDestroyExternalMemory(CUexternalMemory x) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!is_kind(x, K_EXTERNAL))
		return leave(ERR_HANDLE);
	object_end(x);
	return leave(OK);
}
