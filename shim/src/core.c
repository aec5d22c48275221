#include "core.h"

#include "core_publish.h"
#include "core_boundary.h"
#include "core_bucket.h"
#include "core_mark.h"
#include "core_segment.h"
#include "core_time.h"
#include "core_wait.h"
#include "card.h"
#include "driver.h"
#include "graph.h"
#include "process.h"
#include "settings.h"
#include "task.h"

static int taking_turns; /* a container without a limit has its launches looked at as well */
static const struct region *limited_region; /* set at the first launch */
static int64_t uncounted[2]; /* kernels, graphs launched without a limit */
static int unlimited; /* launches passed since a limit was last seen */

static void note_time(const struct region *region) {
  static time_t last;
  time_t now = time(NULL);
  if (__builtin_expect(__atomic_load_n(&last, __ATOMIC_RELAXED) == now, 1)) return;
  __atomic_store_n(&last, now, __ATOMIC_RELAXED);
  __atomic_store_n(&region->file->last_kernel_time, (uint64_t)now, __ATOMIC_RELAXED);
  __atomic_store_n(&region->file->recent_kernel, 2, __ATOMIC_RELAXED);
  core_publish_limits(region);
  int64_t kernels = __atomic_exchange_n(&uncounted[0], 0, __ATOMIC_RELAXED), graphs = __atomic_exchange_n(&uncounted[1], 0, __ATOMIC_RELAXED);
  int card = kernels || graphs ? card_current() : CARD_NONE;
  if (card != CARD_NONE) {
    __atomic_fetch_add(&region->cards[card].launches, (uint64_t)kernels, __ATOMIC_RELAXED);
    __atomic_fetch_add(&region->cards[card].graphs, (uint64_t)graphs, __ATOMIC_RELAXED);
    if (graphs) task_graphs(&region->cards[card], (uint64_t)graphs);
  }
  CUcontext context;
  struct limiter *limiter = driver_inside ? NULL : limiter_current(&context);
  if (limiter) __atomic_store_n(&taking_turns, turn_watch(limiter, core_now()), __ATOMIC_RELAXED);
}

/* Whether the launch needs nothing: no region, or no card of it has a core limit. */
static inline bool passes(bool graph) {
  const struct region *region = __atomic_load_n(&limited_region, __ATOMIC_RELAXED);
  if (__builtin_expect(!region, 0)) {
    if (!settings_get()->active) return true;
    region = region_get();
    if (!region) return true;
    process_slot();
    __atomic_store_n(&limited_region, region, __ATOMIC_RELAXED);
  }
  note_time(region);
  int cards = region_cards(region);
  for (int i = 0; i < cards; i++)
    if (core_limit(region, i)) return false;
  if (__atomic_load_n(&taking_turns, __ATOMIC_RELAXED)) return false;
  __atomic_store_n(&uncounted[graph], uncounted[graph] + 1, __ATOMIC_RELAXED);
  if (!__atomic_load_n(&unlimited, __ATOMIC_RELAXED)) __atomic_store_n(&unlimited, 1, __ATOMIC_RELAXED);
  return true;
}

/* An error means that the legacy stream may not be used because of a capture elsewhere. */
static bool capturing(CUstream stream, bool per_thread) {
  int status = 0;
  if (__builtin_expect(!graph_captures(), 1)) return false;
  CUresult result = per_thread ? NEXT(cuStreamIsCapturing_ptsz)(stream, &status) : NEXT(cuStreamIsCapturing)(stream, &status);
  return result != CUDA_SUCCESS || status != 0;
}

/* Whether launches are measured and may be held back: there is a limit, or other tenants to take turns with. */
static bool managed(const struct limiter *limiter) {
  return limiter_percent(limiter) || (!limiter->deaf && __atomic_load_n(&taking_turns, __ATOMIC_RELAXED));
}

static void before(struct launch *launch, CUstream stream, bool per_thread, uint64_t key) {
  CUcontext context;
  launch->limiter = NULL;
  if (driver_inside || capturing(stream, per_thread)) return;
  struct limiter *limiter = limiter_current(&context);
  if (!limiter) return;
  __atomic_fetch_add(launch->graph ? &limiter->shared->graphs : &limiter->shared->launches, 1, __ATOMIC_RELAXED);
  if (launch->graph) task_graphs(limiter->shared, 1);
  if (!managed(limiter)) return;
  launch->limiter = limiter;
  launch->stream = stream;
  launch->per_thread = per_thread;
  launch->key = key;
  launch->prediction = predict_find(&limiter->predictions, key);
  if (__atomic_load_n(&unlimited, __ATOMIC_RELAXED) && __atomic_exchange_n(&unlimited, 0, __ATOMIC_RELAXED))
    core_bucket_start(&limiter->shared->bucket, core_now());
  int64_t now = wait_admission(limiter, launch, context);
  if (limiter_lock(limiter)) {
    int mode = mark_allow();
    if (limiter->pending) segment_reap(limiter, now, false);
    core_publish(limiter, now);
    segment_before(limiter, launch, context, now);
    mark_restore(mode);
    limiter_unlock(limiter);
  } else {
    launch->charged = predict_duration(launch->prediction);
  }
  core_charge(limiter, now, launch->charged);
}

static void kernel(struct launch *launch, CUfunction function, CUstream stream, bool per_thread, uint64_t blocks, uint64_t threads, uint64_t shared) {
  before(launch, stream, per_thread, predict_key((uintptr_t)function, blocks, threads, shared));
}

void core_graph(struct launch *launch, CUgraphExec exec, CUstream stream, bool per_thread) {
  launch->limiter = NULL;
  if (passes(true)) return;
  launch->graph = true;
  before(launch, stream, per_thread, predict_key((uintptr_t)exec, UINT64_MAX, 0, 0));
}

CUresult core_after(struct launch *launch, CUresult result) {
  struct limiter *limiter = launch->limiter;
  if (!limiter) return result;
  if (result != CUDA_SUCCESS) core_charge(limiter, core_now(), -launch->charged);
  if (launch->measures && limiter_lock(limiter)) {
    int mode = mark_allow();
    segment_after(limiter, launch, result == CUDA_SUCCESS);
    mark_restore(mode);
    limiter_unlock(limiter);
  }
  if (launch->on) launch->on->launching--;
  return result;
}

static struct limiter *measuring(CUcontext *context) {
  const struct region *region = __atomic_load_n(&limited_region, __ATOMIC_RELAXED);
  struct limiter *limiter = region && !driver_inside ? limiter_current(context) : NULL;
  return limiter && (limiter->pending || limiter->stream_high) ? limiter : NULL;
}

void core_synchronizes(void) {
  CUcontext context;
  struct limiter *limiter = measuring(&context);
  if (!limiter || !managed(limiter) || !limiter_lock(limiter)) return;
  int mode = mark_allow();
  segment_close_all(limiter, core_now());
  mark_restore(mode);
  limiter_unlock(limiter);
}

void core_synchronized(void) {
  CUcontext context;
  struct limiter *limiter = measuring(&context);
  if (!limiter || !limiter_lock(limiter)) return;
  int64_t now = core_now();
  if (limiter->pending) segment_reap(limiter, now, true);
  turn_synchronized(limiter, now);
  limiter_unlock(limiter);
}

void core_context_ended(CUcontext context) {
  limiter_forget_context(context);
  for (int card = 0; card < REGION_CARDS; card++) {
    struct limiter *limiter = limiter_known(card);
    if (!limiter) continue;
    while (!limiter_lock(limiter)) {}
    segment_forget_context(limiter, context);
    limiter_unlock(limiter);
  }
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        CUstream stream, void **parameters, void **extra) {
  if (passes(false)) return NEXT(cuLaunchKernel)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
  struct launch launch = {.limiter = NULL};
  kernel(&launch, function, stream, false, (uint64_t)gx * gy * gz, (uint64_t)bx * by * bz, shared);
  return core_after(&launch, NEXT(cuLaunchKernel)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra));
}

CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                             CUstream stream, void **parameters, void **extra) {
  if (passes(false)) return NEXT(cuLaunchKernel_ptsz)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
  struct launch launch = {.limiter = NULL};
  kernel(&launch, function, stream, true, (uint64_t)gx * gy * gz, (uint64_t)bx * by * bz, shared);
  return core_after(&launch, NEXT(cuLaunchKernel_ptsz)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra));
}

/* Programmatic dependent launch: the kernel may begin before the one before it ends, and a mark between them would keep it
   from that. */
static bool overlaps(const struct cu_launch_config *config) {
  for (unsigned i = 0; config->attributes && i < config->count; i++) {
    const struct cu_launch_attribute *attribute = &config->attributes[i];
    if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION && attribute->serialization_allowed) return true;
    if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) return true;
  }
  return false;
}

static void configured(struct launch *launch, const struct cu_launch_config *config, CUfunction function, bool per_thread) {
  if (!config) return;
  launch->overlaps = overlaps(config);
  kernel(launch, function, config->stream, per_thread, (uint64_t)config->grid[0] * config->grid[1] * config->grid[2],
         (uint64_t)config->block[0] * config->block[1] * config->block[2], config->shared);
}

CUresult cuLaunchKernelEx(const void *config, CUfunction function, void **parameters, void **extra) {
  if (passes(false)) return NEXT(cuLaunchKernelEx)(config, function, parameters, extra);
  struct launch launch = {.limiter = NULL};
  configured(&launch, config, function, false);
  return core_after(&launch, NEXT(cuLaunchKernelEx)(config, function, parameters, extra));
}

CUresult cuLaunchKernelEx_ptsz(const void *config, CUfunction function, void **parameters, void **extra) {
  if (passes(false)) return NEXT(cuLaunchKernelEx_ptsz)(config, function, parameters, extra);
  struct launch launch = {.limiter = NULL};
  configured(&launch, config, function, true);
  return core_after(&launch, NEXT(cuLaunchKernelEx_ptsz)(config, function, parameters, extra));
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                   CUstream stream, void **parameters) {
  if (passes(false)) return NEXT(cuLaunchCooperativeKernel)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters);
  struct launch launch = {.limiter = NULL};
  kernel(&launch, function, stream, false, (uint64_t)gx * gy * gz, (uint64_t)bx * by * bz, shared);
  return core_after(&launch, NEXT(cuLaunchCooperativeKernel)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters));
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                        unsigned shared, CUstream stream, void **parameters) {
  if (passes(false)) return NEXT(cuLaunchCooperativeKernel_ptsz)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters);
  struct launch launch = {.limiter = NULL};
  kernel(&launch, function, stream, true, (uint64_t)gx * gy * gz, (uint64_t)bx * by * bz, shared);
  return core_after(&launch, NEXT(cuLaunchCooperativeKernel_ptsz)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters));
}

/* Gone with CUDA 13. Its streams belong to several cards, so it is not held back. */
CUresult cuLaunchCooperativeKernelMultiDevice(void *list, unsigned devices, unsigned flags) {
  passes(false);
  return NEXT(cuLaunchCooperativeKernelMultiDevice)(list, devices, flags);
}

/* The launches of CUDA before 4: the block's shape was set before, in the function. */
CUresult cuLaunch(CUfunction function) {
  if (passes(false)) return NEXT(cuLaunch)(function);
  struct launch launch = {.limiter = NULL};
  kernel(&launch, function, NULL, false, 1, 0, 0);
  return core_after(&launch, NEXT(cuLaunch)(function));
}

CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  if (passes(false)) return NEXT(cuLaunchGrid)(function, width, height);
  struct launch launch = {.limiter = NULL};
  kernel(&launch, function, NULL, false, (uint64_t)width * (uint64_t)height, 0, 0);
  return core_after(&launch, NEXT(cuLaunchGrid)(function, width, height));
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  if (passes(false)) return NEXT(cuLaunchGridAsync)(function, width, height, stream);
  struct launch launch = {.limiter = NULL};
  kernel(&launch, function, stream, false, (uint64_t)width * (uint64_t)height, 0, 0);
  return core_after(&launch, NEXT(cuLaunchGridAsync)(function, width, height, stream));
}

void core_boundary(CUstream stream, bool per_thread) {
  CUcontext context;
  struct limiter *limiter = measuring(&context);
  if (!limiter || !managed(limiter) || capturing(stream, per_thread) || !limiter_lock(limiter)) return;
  struct stream *known = stream_find(limiter, context, stream, per_thread);
  if (known) {
    int mode = mark_allow();
    segment_close(limiter, known, core_now());
    mark_restore(mode);
    if (known->finish < limiter->horizon) known->finish = limiter->horizon;
  }
  limiter_unlock(limiter);
}

void core_stream_ending(CUstream stream) {
  for (int card = 0; card < REGION_CARDS && stream > (CUstream)2; card++) {
    struct limiter *limiter = limiter_known(card);
    if (!limiter || !limiter_lock(limiter)) continue;
    for (int i = 0; i < limiter->stream_high; i++)
      if (limiter->streams[i].used && limiter->streams[i].handle == stream) segment_forget_stream(limiter, &limiter->streams[i]);
    limiter_unlock(limiter);
  }
}

void core_copied(bool to_device, size_t bytes) {
  const struct region *region = __atomic_load_n(&limited_region, __ATOMIC_RELAXED);
  int card = region && !driver_inside ? card_current() : CARD_NONE;
  if (card == CARD_NONE) return;
  __atomic_fetch_add(to_device ? &region->cards[card].copied_to_device : &region->cards[card].copied_to_host, bytes, __ATOMIC_RELAXED);
}
