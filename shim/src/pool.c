#include "pool.h"

#include "account.h"
#include "card.h"
#include "claim.h"
#include "driver.h"
#include "graph.h"
#include "measure.h"
#include "process.h"
#include "settings.h"

#include <sched.h>

enum { MAX_POOLS = 256, MAX_DEVICES = 64 };
static const uint64_t first_grain = 32 << 20;   /* as drivers up to 13 do; corrected by what is seen */

struct pool {
  CUmemoryPool handle;
  int card;         /* CARD_NONE: not device memory, or not ours */
  uint64_t charged; /* its part of this process's claim */
  uint64_t grain;   /* the driver reserves in multiples of it */
  uint64_t most;    /* what of it can be in use at most, bytes; in the bits below UNIT, how many requests are under way */
};

/* The driver's answer costs half of an allocation's account. What is in use is asked for only when the last answer and
   all requests since, freed or not, would not fit; each counts rounded up by at least as much as the driver does. */
enum { UNIT = 1 << 16, LARGE = 1 << 20, LARGE_UNIT = 2 << 20 };
static const uint64_t unlikely = 1ull << 48; /* larger requests count as this, so that no sum overflows */

static struct pool pools[MAX_POOLS];
static int count, locked, freed;
static CUmemoryPool current[MAX_DEVICES]; /* pool that cuMemAllocAsync uses; NULL not asked yet */

static void lock(void) {
  while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(void) { __atomic_store_n(&locked, 0, __ATOMIC_RELEASE); }

static uint64_t charged_of(const struct pool *pool) { return __atomic_load_n(&pool->charged, __ATOMIC_RELAXED); }

static uint64_t attribute(CUmemoryPool pool, int which) {
  uint64_t value = 0;
  return NEXT(cuMemPoolGetAttribute)(pool, which, &value) == CUDA_SUCCESS ? value : 0;
}

static struct pool *find(CUmemoryPool handle) {
  int known = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
  for (int i = 0; i < known; i++)
    if (__atomic_load_n(&pools[i].handle, __ATOMIC_RELAXED) == handle) return &pools[i];
  return NULL;
}

static struct pool *learn(CUmemoryPool handle, int card) {
  lock();
  struct pool *pool = find(handle);
  if (!pool) {
    int place = 0;
    while (place < count && pools[place].handle) place++;
    if (place < MAX_POOLS) {
      pool = &pools[place];
      *pool = (struct pool){.handle = handle, .card = card, .grain = first_grain};
      if (place == count) __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
    }
  }
  unlock();
  return pool;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) { return b ? common_divisor(b, a % b) : a; }

/* Moves the claim to what the pool has reserved now. `claimed` bytes of it were claimed in advance. */
static void follow(struct pool *pool, uint64_t claimed) {
  uint64_t reserved = attribute(pool->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  if (!claimed && reserved == charged_of(pool)) return;
  lock();
  uint64_t before = pool->charged;
  __atomic_store_n(&pool->charged, reserved, __ATOMIC_RELAXED);
  if (reserved > before) __atomic_store_n(&pool->grain, common_divisor(pool->grain, reserved - before), __ATOMIC_RELAXED);
  unlock();
  if (pool->card == CARD_NONE) return;
  if (reserved > before + claimed)
    claim_add(pool->card, reserved - before - claimed);
  else
    claim_return(pool->card, before + claimed - reserved);
}

void pool_refresh(int card) {
  int known = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
  for (int i = 0; i < known; i++)
    if (pools[i].handle && pools[i].card != CARD_NONE && (card < 0 || pools[i].card == card)) follow(&pools[i], 0);
}

void pool_make_room(int card) {
  int known = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
  if (!known) return;
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  NEXT(cuThreadExchangeStreamCaptureMode)(&mode);
  for (int i = 0; i < known; i++)
    if (pools[i].handle && pools[i].card == card) NEXT(cuMemPoolTrimTo)(pools[i].handle, 0);
  NEXT(cuThreadExchangeStreamCaptureMode)(&mode);
  pool_refresh(card);
}

void pool_freed(void) { __atomic_store_n(&freed, 1, __ATOMIC_RELAXED); }

void pool_settled(void) {
  if (__builtin_expect(!__atomic_load_n(&freed, __ATOMIC_RELAXED), 1)) return;
  __atomic_store_n(&freed, 0, __ATOMIC_RELAXED);
  pool_refresh(-1);
}

void pool_forget(int card) {
  int known = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
  for (int i = 0; i < known; i++) {
    lock();
    uint64_t charged = pools[i].handle && pools[i].card == card ? pools[i].charged : 0;
    if (pools[i].handle && pools[i].card == card) pools[i].handle = NULL;
    unlock();
    if (charged) claim_return(card, charged);
  }
  CUdevice device = card_device(card);
  if (device >= 0 && device < MAX_DEVICES) __atomic_store_n(&current[device], NULL, __ATOMIC_RELAXED);
}

static int card_of_location(const struct cu_location *location) {
  if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) return card_of_device(location->id);
  if (location->type == CU_MEM_LOCATION_TYPE_LOCALITY_DOMAIN) return card_of_device(location->localized.device);
  return CARD_NONE;
}

static struct pool *known_pool(CUmemoryPool handle) {
  struct pool *pool = find(handle);
  if (pool) return pool;
  struct cu_location location = {0};
  int type = 0, id = 0;
  if (NEXT(cuMemPoolGetAttribute)(handle, CU_MEMPOOL_ATTR_LOCATION_TYPE, &type) == CUDA_SUCCESS &&
      NEXT(cuMemPoolGetAttribute)(handle, CU_MEMPOOL_ATTR_LOCATION_ID, &id) == CUDA_SUCCESS) {
    location.type = type;
    location.id = id;
    return learn(handle, card_of_location(&location));
  }
  /* Drivers before 13 do not say: a pool that this library did not see made is some device's default pool. */
  int devices = 0;
  if (NEXT(cuDeviceGetCount)(&devices) != CUDA_SUCCESS) return NULL;
  for (int i = 0; i < devices; i++) {
    CUmemoryPool pool_of_device = NULL;
    if (NEXT(cuDeviceGetDefaultMemPool)(&pool_of_device, i) == CUDA_SUCCESS && pool_of_device == handle) return learn(handle, card_of_device(i));
  }
  return learn(handle, CARD_NONE);
}

/* A stream's own device may differ from the current one where a process has several. */
static CUdevice device_of(CUstream stream) {
  static int devices;
  CUdevice device = -1;
  if (!devices && NEXT(cuDeviceGetCount)(&devices) != CUDA_SUCCESS) devices = 1;
  if (devices == 1) return 0;
  if ((uintptr_t)stream > 2) {
    CUcontext context = NULL, before = NULL;
    if (HAVE(cuStreamGetCtx) && NEXT(cuStreamGetCtx)(stream, &context) == CUDA_SUCCESS && NEXT(cuCtxGetCurrent)(&before) == CUDA_SUCCESS &&
        context != before && NEXT(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS) {
      if (NEXT(cuCtxGetDevice)(&device) != CUDA_SUCCESS) device = -1;
      NEXT(cuCtxPopCurrent_v2)(&context);
      return device;
    }
  }
  return NEXT(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? device : -1;
}

static struct pool *pool_of_stream(CUstream stream) {
  CUdevice device = device_of(stream);
  if (device < 0 || device >= MAX_DEVICES) return NULL;
  CUmemoryPool handle = __atomic_load_n(&current[device], __ATOMIC_RELAXED);
  if (!handle) {
    if (NEXT(cuDeviceGetMemPool)(&handle, device) != CUDA_SUCCESS) return NULL;
    if (!find(handle)) learn(handle, card_of_device(device));
    __atomic_store_n(&current[device], handle, __ATOMIC_RELAXED);
  }
  return known_pool(handle);
}

/* What the pool will reserve in addition for this request, as far as its steps are known. */
static uint64_t growth(const struct pool *pool, uint64_t bytes) {
  uint64_t grain = __atomic_load_n(&pool->grain, __ATOMIC_RELAXED);
  return (bytes + grain - 1) / grain * grain;
}

struct request {
  struct pool *pool;
  uint64_t claimed;
  CUgraph graph;
  bool recorded;
};

static uint64_t rounded(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

/* What is added to `most` while a request is under way; afterwards 1 of it goes. */
static uint64_t at_most(uint64_t bytes) { return (bytes > unlikely ? unlikely : rounded(bytes, bytes > LARGE ? LARGE_UNIT : UNIT)) + 1; }

/* What is in use now. It begins a new sum, unless the sum holds other requests that the driver may not have seen yet. */
static uint64_t in_use(struct pool *pool, uint64_t bytes, uint64_t most) {
  uint64_t used = attribute(pool->handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  if (most % UNIT == 1) __atomic_compare_exchange_n(&pool->most, &most, rounded(used, UNIT) + at_most(bytes), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return used;
}

/* Claims what the pool may have to reserve. False: refused. */
static bool begin(struct request *request, struct pool *pool, uint64_t bytes, CUstream stream, bool per_thread, const char *call) {
  *request = (struct request){.pool = pool};
  if (!pool || pool->card == CARD_NONE) return true;
  request->recorded = graph_capturing(stream, per_thread, &request->graph);
  if (request->recorded) return true;
  uint64_t most = __atomic_add_fetch(&pool->most, at_most(bytes), __ATOMIC_SEQ_CST), reserved = charged_of(pool);
  if (most - most % UNIT <= reserved) return true;
  uint64_t used = in_use(pool, bytes, most);
  uint64_t claimed = used + bytes <= reserved ? 0 : growth(pool, used + bytes - reserved);
  if (claimed) process_reap(false);
  if (claimed) claim_departs(pool->card, claimed);
  if (claimed && !claim_try(pool->card, claimed)) {
    claim_landed(pool->card, claimed);
    pool_make_room(pool->card);
    reserved = charged_of(pool);
    used = attribute(pool->handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    claimed = used + bytes <= reserved ? 0 : growth(pool, used + bytes - reserved);
    if (claimed && !account_reserve(pool->card, claimed, false, call)) {
      __atomic_fetch_sub(&pool->most, at_most(bytes), __ATOMIC_SEQ_CST);
      return false;
    }
  }
  request->claimed = claimed;
  return true;
}

/* A pool that grew past the limit all the same takes the allocation back: the caller gets what a full card would give. */
static CUresult end(const struct request *request, CUresult result, CUdeviceptr *address, uint64_t bytes, CUstream stream, bool per_thread, const char *call) {
  struct pool *pool = request->pool;
  if (!pool || pool->card == CARD_NONE) return result;
  if (request->recorded) {
    if (result == CUDA_SUCCESS) graph_recorded(request->graph, pool->card, bytes);
    return result;
  }
  __atomic_fetch_sub(&pool->most, 1, __ATOMIC_SEQ_CST);
  uint64_t before = charged_of(pool);
  if (request->claimed) claim_landed(pool->card, request->claimed);
  follow(pool, request->claimed);
  if (charged_of(pool) != before) measure_if_due(pool->card);
  if (result != CUDA_SUCCESS || charged_of(pool) <= before + request->claimed) return result;
  uint64_t limit = region_memory_limit(region_get(), pool->card);
  if (!limit || claim_used(pool->card) <= limit) return result;
  CUresult undone = per_thread ? NEXT(cuMemFreeAsync_ptsz)(*address, stream) : NEXT(cuMemFreeAsync)(*address, stream);
  if (undone != CUDA_SUCCESS) return result;
  pool_freed();
  account_refused(pool->card, bytes, call);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult allocate(CUdeviceptr *address, size_t bytes, CUstream stream, bool per_thread) {
  struct request request;
  CUdeviceptr made = 0, *out = address ? &made : NULL;
  struct pool *pool = settings_get()->active ? pool_of_stream(stream) : NULL;
  if (!begin(&request, pool, bytes, stream, per_thread, "cuMemAllocAsync")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = per_thread ? NEXT(cuMemAllocAsync_ptsz)(out, bytes, stream) : NEXT(cuMemAllocAsync)(out, bytes, stream);
  result = end(&request, result, &made, bytes, stream, per_thread, "cuMemAllocAsync");
  if (result == CUDA_SUCCESS && address) *address = made;
  return result;
}

static CUresult allocate_from(CUdeviceptr *address, size_t bytes, CUmemoryPool handle, CUstream stream, bool per_thread) {
  struct request request;
  CUdeviceptr made = 0, *out = address ? &made : NULL;
  struct pool *pool = settings_get()->active && handle ? known_pool(handle) : NULL;
  if (!begin(&request, pool, bytes, stream, per_thread, "cuMemAllocFromPoolAsync")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = per_thread ? NEXT(cuMemAllocFromPoolAsync_ptsz)(out, bytes, handle, stream) : NEXT(cuMemAllocFromPoolAsync)(out, bytes, handle, stream);
  result = end(&request, result, &made, bytes, stream, per_thread, "cuMemAllocFromPoolAsync");
  if (result == CUDA_SUCCESS && address) *address = made;
  return result;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) { return allocate(address, bytes, stream, false); }

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream) { return allocate(address, bytes, stream, true); }

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return allocate_from(address, bytes, pool, stream, false);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return allocate_from(address, bytes, pool, stream, true);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  struct ledger_entry entry;
  bool known = account_take(LEDGER_POINTER, address, &entry); /* memory of cuMemAlloc may be freed here too */
  CUresult result = account_freed(NEXT(cuMemFreeAsync)(address, stream), known, entry);
  pool_freed();
  return result;
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  struct ledger_entry entry;
  bool known = account_take(LEDGER_POINTER, address, &entry);
  CUresult result = account_freed(NEXT(cuMemFreeAsync_ptsz)(address, stream), known, entry);
  pool_freed();
  return result;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const struct cu_pool_properties *properties) {
  CUresult result = NEXT(cuMemPoolCreate)(pool, properties);
  if (result == CUDA_SUCCESS && settings_get()->active) learn(*pool, card_of_location(&properties->location));
  return result;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  CUresult result = NEXT(cuMemPoolDestroy)(handle);
  struct pool *pool = result == CUDA_SUCCESS ? find(handle) : NULL;
  if (!pool) return result;
  lock();
  uint64_t charged = pool->charged;
  int card = pool->card;
  pool->handle = NULL;
  unlock();
  if (card != CARD_NONE) claim_return(card, charged);
  for (int i = 0; i < MAX_DEVICES; i++)
    if (current[i] == handle) __atomic_store_n(&current[i], NULL, __ATOMIC_RELAXED);
  measure_soon(card); /* what still lives in it is freed later, unseen */
  return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  CUresult result = NEXT(cuMemPoolTrimTo)(handle, keep);
  struct pool *pool = find(handle);
  if (pool) follow(pool, 0);
  return result;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, void *data) {
  CUresult result = NEXT(cuMemPoolImportPointer)(address, pool, data);
  if (result == CUDA_SUCCESS) measure_imports(1);
  return result;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  CUresult result = NEXT(cuDeviceSetMemPool)(device, pool);
  if (result == CUDA_SUCCESS && device >= 0 && device < MAX_DEVICES) __atomic_store_n(&current[device], NULL, __ATOMIC_RELAXED);
  return result;
}

CUresult cuMemSetMemPool(struct cu_location *location, int type, CUmemoryPool pool) {
  CUresult result = NEXT(cuMemSetMemPool)(location, type, pool);
  if (result == CUDA_SUCCESS)
    for (int i = 0; i < MAX_DEVICES; i++) __atomic_store_n(&current[i], NULL, __ATOMIC_RELAXED);
  return result;
}
