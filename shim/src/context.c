/* Contexts and modules: they take memory that no allocation shows, so their calls are followed by a measurement. */
#include "account.h"
#include "card.h"
#include "claim.h"
#include "core.h"
#include "driver.h"
#include "graph.h"
#include "measure.h"
#include "pool.h"
#include "process.h"
#include "settings.h"

enum { MAX_DEVICES = 64 };
static uint64_t primaries[MAX_DEVICES]; /* primary context of a device while it is active, else 0 */

CUresult cuInit(unsigned flags) {
  CUresult result = NEXT(cuInit)(flags);
  if (result == CUDA_SUCCESS && settings_get()->active) process_slot();
  return result;
}

/* What a context takes is known only when it is there. If it went over the limit, it is undone: the program sees what a
   full card would answer. */
static bool too_much(int card, const char *call) {
  measure_again(card);
  uint64_t limit = region_memory_limit(region_get(), card);
  if (!limit || claim_used(card) <= limit) return false;
  process_reap(true);
  pool_make_room(card);
  graph_make_room(card);
  uint64_t used = claim_used(card);
  if (used <= limit) return false;
  account_refused(card, used - limit, call);
  return true;
}

static CUresult created(CUresult result, CUcontext *context, CUdevice device) {
  int card = result == CUDA_SUCCESS && settings_get()->active ? card_of_device(device) : CARD_NONE;
  if (card == CARD_NONE || !too_much(card, "cuCtxCreate")) return result;
  NEXT(cuCtxDestroy_v2)(*context);
  measure_again(card);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static void give_back(const struct ledger_entry *entry) {
  if (entry->managed) measure_managed(-1);
  account_return(entry);
}

/* Ending a context frees all that was allocated in it, without any call that would say so. */
static CUresult ended(CUresult result, CUcontext context) {
  if (result != CUDA_SUCCESS || !settings_get()->active) return result;
  ledger_drop((uint64_t)(uintptr_t)context, give_back);
  core_context_ended(context);
  const struct region *region = region_get();
  for (int card = 0; region && card < region_cards(region); card++)
    if (card_device(card) >= 0) measure_again(card);
  return result;
}

static void check_primary(CUdevice device) {
  unsigned flags;
  int active = 1;
  if (device < 0 || device >= MAX_DEVICES || !primaries[device]) return;
  if (NEXT(cuDevicePrimaryCtxGetState)(device, &flags, &active) != CUDA_SUCCESS || active) return;
  uint64_t context = __atomic_exchange_n(&primaries[device], 0, __ATOMIC_RELAXED);
  int card = card_of_device(device);
  if (card == CARD_NONE) return;
  ledger_drop(context, give_back);
  core_context_ended((CUcontext)(uintptr_t)context);
  pool_forget(card);
  graph_forget(card);
  measure_again(card);
}

static CUresult released(CUresult result, CUdevice device) {
  if (result == CUDA_SUCCESS && settings_get()->active) check_primary(device);
  return result;
}

CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device) { return created(NEXT(cuCtxCreate)(context, flags, device), context, device); }

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) { return created(NEXT(cuCtxCreate_v2)(context, flags, device), context, device); }

CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int count, unsigned flags, CUdevice device) {
  return created(NEXT(cuCtxCreate_v3)(context, affinity, count, flags, device), context, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags, CUdevice device) {
  return created(NEXT(cuCtxCreate_v4)(context, parameters, flags, device), context, device);
}

CUresult cuGLCtxCreate(CUcontext *context, unsigned flags, CUdevice device) { return created(NEXT(cuGLCtxCreate)(context, flags, device), context, device); }

CUresult cuGLCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) { return created(NEXT(cuGLCtxCreate_v2)(context, flags, device), context, device); }

CUresult cuVDPAUCtxCreate(CUcontext *context, unsigned flags, CUdevice device, unsigned vdp, void *get) {
  return created(NEXT(cuVDPAUCtxCreate)(context, flags, device, vdp, get), context, device);
}

CUresult cuVDPAUCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device, unsigned vdp, void *get) {
  return created(NEXT(cuVDPAUCtxCreate_v2)(context, flags, device, vdp, get), context, device);
}

CUresult cuGreenCtxCreate(CUgreenCtx *context, void *resources, CUdevice device, unsigned flags) {
  CUresult result = NEXT(cuGreenCtxCreate)(context, resources, device, flags);
  int card = result == CUDA_SUCCESS && settings_get()->active ? card_of_device(device) : CARD_NONE;
  if (card != CARD_NONE) measure_again(card);
  return result;
}

CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  CUresult result = NEXT(cuGreenCtxDestroy)(context);
  if (result != CUDA_SUCCESS) return result;
  for (CUdevice device = 0; device < MAX_DEVICES; device++) check_primary(device);
  measure_soon(CARD_NONE);
  return result;
}

CUresult cuCtxDestroy(CUcontext context) { return ended(NEXT(cuCtxDestroy)(context), context); }

CUresult cuCtxDestroy_v2(CUcontext context) { return ended(NEXT(cuCtxDestroy_v2)(context), context); }

/* Whether this was the last reference is not to be known; if it was not, measuring finds what the ledger drops. */
CUresult cuCtxDetach(CUcontext context) { return ended(NEXT(cuCtxDetach)(context), context); }

/* Programs retain the primary context again and again: only the first time it takes memory. */
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  CUresult result = NEXT(cuDevicePrimaryCtxRetain)(context, device);
  if (result != CUDA_SUCCESS || device < 0 || device >= MAX_DEVICES || !settings_get()->active) return result;
  uint64_t now = (uint64_t)(uintptr_t)*context;
  if (__atomic_exchange_n(&primaries[device], now, __ATOMIC_RELAXED) == now) return result;
  int card = card_of_device(device);
  if (card == CARD_NONE || !too_much(card, "cuDevicePrimaryCtxRetain")) return result;
  __atomic_store_n(&primaries[device], 0, __ATOMIC_RELAXED);
  HAVE(cuDevicePrimaryCtxRelease_v2) ? NEXT(cuDevicePrimaryCtxRelease_v2)(device) : NEXT(cuDevicePrimaryCtxRelease)(device);
  measure_again(card);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return released(NEXT(cuDevicePrimaryCtxRelease)(device), device); }

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return released(NEXT(cuDevicePrimaryCtxRelease_v2)(device), device); }

/* A reset ends the context even where references to it are left. */
static CUresult reset(CUresult result, CUdevice device) {
  if (result != CUDA_SUCCESS || !settings_get()->active || device < 0 || device >= MAX_DEVICES) return result;
  int card = card_of_device(device);
  uint64_t context = __atomic_exchange_n(&primaries[device], 0, __ATOMIC_RELAXED);
  if (card == CARD_NONE) return result;
  if (context) ledger_drop(context, give_back);
  if (context) core_context_ended((CUcontext)(uintptr_t)context);
  pool_forget(card);
  graph_forget(card);
  measure_again(card);
  return result;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) { return reset(NEXT(cuDevicePrimaryCtxReset)(device), device); }

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return reset(NEXT(cuDevicePrimaryCtxReset_v2)(device), device); }

CUresult cuCtxSetLimit(int limit, size_t value) {
  bool takes_memory = limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE;
  int card = takes_memory ? card_current() : CARD_NONE;
  if (card != CARD_NONE) {
    uint64_t most = region_memory_limit(region_get(), card), used = claim_used(card);
    if (most && value > (most > used ? most - used : 0)) {
      account_refused(card, value, "cuCtxSetLimit");
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  CUresult result = NEXT(cuCtxSetLimit)(limit, value);
  measure_soon(CARD_NONE);
  return result;
}

static CUresult loaded(CUresult result) {
  measure_soon(CARD_NONE);
  return result;
}

CUresult cuModuleLoad(CUmodule *module, const char *path) { return loaded(NEXT(cuModuleLoad)(module, path)); }

CUresult cuModuleLoadData(CUmodule *module, const void *image) { return loaded(NEXT(cuModuleLoadData)(module, image)); }

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options, void **values) {
  return loaded(NEXT(cuModuleLoadDataEx)(module, image, count, options, values));
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) { return loaded(NEXT(cuModuleLoadFatBinary)(module, image)); }

CUresult cuModuleUnload(CUmodule module) { return loaded(NEXT(cuModuleUnload)(module)); }

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *jit, void **jit_values, unsigned jit_count, int *options, void **values, unsigned count) {
  return loaded(NEXT(cuLibraryLoadData)(library, code, jit, jit_values, jit_count, options, values, count));
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *jit, void **jit_values, unsigned jit_count, int *options, void **values,
                               unsigned count) {
  return loaded(NEXT(cuLibraryLoadFromFile)(library, path, jit, jit_values, jit_count, options, values, count));
}

CUresult cuLibraryUnload(CUlibrary library) { return loaded(NEXT(cuLibraryUnload)(library)); }
