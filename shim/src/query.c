/* What the program is told of the card's memory, and the waits after which pools may have shrunk. */
#include "card.h"
#include "claim.h"
#include "core.h"
#include "driver.h"
#include "graph.h"
#include "measure.h"
#include "pool.h"
#include "process.h"
#include "settings.h"
#include "view.h"

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  CUresult result = NEXT(cuMemGetInfo_v2)(free, total);
  int card = result == CUDA_SUCCESS ? card_current() : CARD_NONE;
  struct view view;
  if (card != CARD_NONE) {
    pool_refresh(card);
    graph_refresh(card);
    measure_for_query(card);
  }
  if (!view_of(card, &view)) return result;
  if (total && *total > view.limit) *total = view.limit;
  if (free && *free > view.free) *free = view.free;
  return result;
}

static unsigned narrow(uint64_t bytes) { return bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes; }

CUresult cuMemGetInfo(unsigned *free, unsigned *total) {
  CUresult result = NEXT(cuMemGetInfo)(free, total);
  int card = result == CUDA_SUCCESS ? card_current() : CARD_NONE;
  struct view view;
  if (!view_of(card, &view)) return result;
  if (total && *total > narrow(view.limit)) *total = narrow(view.limit);
  if (free && *free > narrow(view.free)) *free = narrow(view.free);
  return result;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  CUresult result = NEXT(cuDeviceTotalMem_v2)(bytes, device);
  int card = result == CUDA_SUCCESS && settings_get()->active ? card_of_device(device) : CARD_NONE;
  uint64_t limit = card == CARD_NONE ? 0 : region_memory_limit(region_get(), card);
  if (limit && bytes && *bytes > limit) *bytes = limit;
  return result;
}

CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice device) {
  CUresult result = NEXT(cuDeviceTotalMem)(bytes, device);
  int card = result == CUDA_SUCCESS && settings_get()->active ? card_of_device(device) : CARD_NONE;
  uint64_t limit = card == CARD_NONE ? 0 : region_memory_limit(region_get(), card);
  if (limit && bytes && *bytes > narrow(limit)) *bytes = narrow(limit);
  return result;
}

static CUresult waited(CUresult result) {
  core_synchronized();
  pool_settled();
  return result;
}

CUresult cuCtxSynchronize(void) {
  core_synchronizes();
  return waited(NEXT(cuCtxSynchronize)());
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  core_synchronizes();
  return waited(NEXT(cuCtxSynchronize_v2)(context));
}

CUresult cuStreamSynchronize(CUstream stream) {
  core_synchronizes();
  return waited(NEXT(cuStreamSynchronize)(stream));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  core_synchronizes();
  return waited(NEXT(cuStreamSynchronize_ptsz)(stream));
}

CUresult cuEventSynchronize(CUevent event) { return waited(NEXT(cuEventSynchronize)(event)); }
