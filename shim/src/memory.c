/* Linear memory: cuMemAlloc and its kin, imports of other processes' memory, external memory. */
#include "account.h"
#include "card.h"
#include "claim.h"
#include "driver.h"
#include "measure.h"
#include "pool.h"

/* One allocation of a kind whose size is known before the call. The driver sees the program's own pointers, so that it
   judges NULL and nonsense itself; a zero size is an error that it reports. */
static CUresult allocated(CUresult result, int card, uint64_t claimed, uint64_t bytes, uint64_t address, bool managed) {
  if (card == CARD_NONE) return result;
  if (managed && result == CUDA_SUCCESS) measure_managed(1); /* before the settlement, which may measure */
  result = account_settle(result, claimed, (struct ledger_entry){.key = address, .kind = LEDGER_POINTER, .bytes = bytes, .card = (int8_t)card, .link = account_context(), .cut = !managed, .managed = managed});
  return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  int card = address && bytes ? card_current() : CARD_NONE;
  uint64_t charge = account_size(bytes);
  if (card != CARD_NONE && !account_reserve(card, charge, true, "cuMemAlloc")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = NEXT(cuMemAlloc_v2)(address, bytes);
  return allocated(result, card, charge, charge, result == CUDA_SUCCESS && address ? *address : 0, false);
}

CUresult cuMemAlloc(CUdeviceptr_v1 *address, unsigned bytes) {
  int card = address && bytes ? card_current() : CARD_NONE;
  uint64_t charge = account_size(bytes);
  if (card != CARD_NONE && !account_reserve(card, charge, true, "cuMemAlloc")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = NEXT(cuMemAlloc)(address, bytes);
  return allocated(result, card, charge, charge, result == CUDA_SUCCESS && address ? *address : 0, false);
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags) {
  int card = address && bytes ? card_current() : CARD_NONE;
  if (card != CARD_NONE && !account_reserve(card, bytes, false, "cuMemAllocManaged")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = NEXT(cuMemAllocManaged)(address, bytes, flags);
  return allocated(result, card, bytes, bytes, result == CUDA_SUCCESS && address ? *address : 0, true);
}

/* The pitch is known only after the call; 512 is the least that cards align rows to. */
static uint64_t pitched(uint64_t width, uint64_t height) {
  uint64_t pitch = (width + 511) / 512 * 512;
  return account_size(height && pitch > UINT64_MAX / height ? UINT64_MAX / 2 : pitch * height);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element) {
  int card = address && pitch && width && height ? card_current() : CARD_NONE;
  uint64_t claimed = pitched(width, height);
  if (card != CARD_NONE && !account_reserve(card, claimed, true, "cuMemAllocPitch")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = NEXT(cuMemAllocPitch_v2)(address, pitch, width, height, element);
  uint64_t bytes = result == CUDA_SUCCESS && pitch ? account_size(*pitch * height) : 0;
  return allocated(result, card, claimed, bytes, result == CUDA_SUCCESS && address ? *address : 0, false);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned *pitch, unsigned width, unsigned height, unsigned element) {
  int card = address && pitch && width && height ? card_current() : CARD_NONE;
  uint64_t claimed = pitched(width, height);
  if (card != CARD_NONE && !account_reserve(card, claimed, true, "cuMemAllocPitch")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = NEXT(cuMemAllocPitch)(address, pitch, width, height, element);
  uint64_t bytes = result == CUDA_SUCCESS && pitch ? account_size((uint64_t)*pitch * height) : 0;
  return allocated(result, card, claimed, bytes, result == CUDA_SUCCESS && address ? *address : 0, false);
}

/* A pointer that is not in the ledger (imported, mapped, from a pool, from before) is the driver's business. */
static CUresult freed(CUresult result, bool known, struct ledger_entry entry) {
  if (known && entry.managed && result == CUDA_SUCCESS) measure_managed(-1);
  return account_freed(result, known, entry);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  struct ledger_entry entry;
  bool known = account_take(LEDGER_POINTER, address, &entry);
  CUresult result = freed(NEXT(cuMemFree_v2)(address), known, entry);
  if (!known) pool_freed();
  pool_settled();
  if (!known) pool_freed(); /* the pool keeps it until work is waited for again */
  return result;
}

CUresult cuMemFree(CUdeviceptr_v1 address) {
  struct ledger_entry entry;
  bool known = account_take(LEDGER_POINTER, address, &entry);
  CUresult result = freed(NEXT(cuMemFree)(address), known, entry);
  if (!known) pool_freed();
  return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *address, struct cu_ipc_handle handle, unsigned flags) {
  CUresult result = NEXT(cuIpcOpenMemHandle)(address, handle, flags);
  if (result == CUDA_SUCCESS) measure_imports(1);
  return result;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, struct cu_ipc_handle handle, unsigned flags) {
  CUresult result = NEXT(cuIpcOpenMemHandle_v2)(address, handle, flags);
  if (result == CUDA_SUCCESS) measure_imports(1);
  return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  CUresult result = NEXT(cuIpcCloseMemHandle)(address);
  if (result == CUDA_SUCCESS) measure_imports(-1);
  return result;
}

CUresult cuImportExternalMemory(CUexternalMemory *memory, const struct cu_external_memory_descriptor *descriptor) {
  int card = memory && descriptor ? card_current() : CARD_NONE;
  uint64_t bytes = card != CARD_NONE ? descriptor->size : 0;
  if (card != CARD_NONE && !account_reserve(card, bytes, false, "cuImportExternalMemory")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = NEXT(cuImportExternalMemory)(memory, descriptor);
  if (card == CARD_NONE) return result;
  uint64_t key = result == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*memory : 0;
  return account_settle(result, bytes, (struct ledger_entry){.key = key, .kind = LEDGER_EXTERNAL, .bytes = bytes, .card = (int8_t)card});
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  struct ledger_entry entry;
  bool known = account_take(LEDGER_EXTERNAL, (uint64_t)(uintptr_t)memory, &entry);
  return account_freed(NEXT(cuDestroyExternalMemory)(memory), known, entry);
}
