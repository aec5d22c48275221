/* Launches. How long a kernel takes:
 *
 * - a kernel whose name ends in _ns: what its first parameter says, an unsigned 64-bit number of nanoseconds;
 * - one whose name ends in _log_ns also appends its start and end (ns of CLOCK_MONOTONIC) to the log that its second parameter points
 *   to: a count (u64), eight bytes of nothing, pairs of u64;
 * - any other: VGPUCTL_FAKE_KERNEL_NS (5000) per wave, a wave being two blocks on every SM. */
#include "driver.h"

#include "graph.h"

#include <stdlib.h>
#include <string.h>

static uint64_t wave_ns(void) {
	static uint64_t ns;
	if (!ns) {
		const char *v = getenv("VGPUCTL_FAKE_KERNEL_NS");
		ns = v && *v ? strtoull(v, NULL, 10) : 5000;
	}
	return ns;
}

CUresult kernel_work(const struct function *f, const unsigned grid[3], const unsigned block[3], void **params, void **extra, int device,
                     struct work *out) {
	uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2], wave = 2 * (uint64_t)card_of(device)->sms;
	*out = (struct work){.blocks = blocks < UINT32_MAX ? (unsigned)blocks : UINT32_MAX, .threads = block[0] * block[1] * block[2]};
	if (!f->timed) {
		out->ns = (blocks + wave - 1) / wave * wave_ns();
		return OK;
	}
	const void *first = params ? params[0] : NULL;
	for (int i = 0; !first && extra && extra[i]; i += 2)
		if (extra[i] == (void *)1) /* the buffer of packed parameters */
			first = extra[i + 1];
	if (!first)
		return ERR_VALUE;
	memcpy(&out->ns, first, sizeof out->ns);
	if (f->logs && params)
		memcpy(&out->log, params[1], sizeof out->log);
	return OK;
}

static bool usable(const unsigned grid[3], const unsigned block[3]) {
	for (int i = 0; i < 3; i++)
		if (!grid[i] || !block[i])
			return false;
	return (uint64_t)block[0] * block[1] * block[2] <= 1024;
}

static CUresult launch(CUfunction f, const unsigned grid[3], const unsigned block[3], unsigned shared, CUstream stream, void **params,
                       void **extra, bool early) {
	struct stream *s;
	struct work work;
	CUresult r;
	if (!is_kind(f, K_FUNCTION))
		return ERR_HANDLE;
	if (!usable(grid, block))
		return ERR_VALUE;
	if ((r = stream_get(stream, &s)) || (r = stream_ready(s)))
		return r;
	if (s->context != context_current() && stream)
		return ERR_HANDLE;
	if ((r = kernel_work(f, grid, block, params, extra, s->context->device, &work)))
		return r;
	work.early = early;
	if (!s->capture)
		return stream_work(s, &work);
	struct node *n = capture_node(s, N_KERNEL, &r);
	if (n) {
		n->work = work;
		n->kernel = (struct kernel_params){.function = f, .grid = {grid[0], grid[1], grid[2]},
		                                   .block = {block[0], block[1], block[2]}, .shared = shared};
	}
	return r;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        CUstream stream, void **params, void **extra) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	return leave(launch(f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, stream, params, extra, false));
}

/* Programmatic dependent launch. */
static bool is_early(const struct launch_config *c) {
	const struct launch_attr *a = c->attrs;
	for (unsigned i = 0; a && i < c->num_attrs; i++)
		if (a[i].id == 6 && a[i].value[0])
			return true;
	return false;
}

CUresult cuLaunchKernelEx(const struct launch_config *c, CUfunction f, void **params, void **extra) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	return leave(c ? launch(f, c->grid, c->block, c->shared, c->stream, params, extra, is_early(c)) : ERR_VALUE);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                   unsigned shared, CUstream stream, void **params) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if ((uint64_t)gx * gy * gz > 32 * (uint64_t)card_of(context_current()->device)->sms)
		return leave(ERR_COOPERATIVE);
	return leave(launch(f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, stream, params, NULL, false));
}

CUresult cuLaunchCooperativeKernelMultiDevice(struct launch_params *list, unsigned count, unsigned flags) {
	(void)flags;
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!list || !count)
		return leave(ERR_VALUE);
	for (unsigned i = 0; i < count && !r; i++)
		r = launch(list[i].function, list[i].grid, list[i].block, list[i].shared, list[i].stream, list[i].params, NULL, false);
	return leave(r);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, CUfunction f, int block, size_t shared, unsigned flags) {
	(void)shared, (void)flags;
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!out || block <= 0)
		return leave(ERR_VALUE);
	if (!is_kind(f, K_FUNCTION))
		return leave(ERR_HANDLE);
	*out = 2048 / block > 32 ? 32 : 2048 / block;
	return leave(OK);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction f, int block, size_t shared) {
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, f, block, shared, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction f, void *fn, size_t shared, int limit, unsigned flags) {
	(void)fn, (void)shared, (void)flags;
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!grid || !block || !is_kind(f, K_FUNCTION))
		return leave(ERR_VALUE);
	*block = limit > 0 && limit < 1024 ? limit : 1024;
	*grid = 2 * card_of(context_current()->device)->sms;
	return leave(OK);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f, void *fn, size_t shared, int limit) {
	return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, f, fn, shared, limit, 0);
}
