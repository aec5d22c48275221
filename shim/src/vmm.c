/* Physical memory of cuMemCreate: charged to the device named in its properties, until the last handle and the last
   mapping are gone. A thread needs no context for it. */
#include "account.h"
#include "card.h"
#include "claim.h"
#include "driver.h"
#include "measure.h"
#include "settings.h"

enum { STEP = 2 << 20 }; /* mappings begin at multiples of it */

static int card_of(const struct cu_allocation_properties *properties) {
  if (!settings_get()->active) return CARD_NONE;
  const struct cu_location *location = &properties->location;
  if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) return card_of_device(location->id);
  if (location->type == CU_MEM_LOCATION_TYPE_LOCALITY_DOMAIN) return card_of_device(location->localized.device);
  return CARD_NONE;
}

CUresult cuMemCreate(CUmemHandle *handle, size_t bytes, const struct cu_allocation_properties *properties, unsigned long long flags) {
  int card = handle && bytes && properties ? card_of(properties) : CARD_NONE;
  if (card != CARD_NONE && !account_reserve(card, bytes, false, "cuMemCreate")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = NEXT(cuMemCreate)(handle, bytes, properties, flags);
  if (card == CARD_NONE) return result;
  return account_settle(result, bytes, (struct ledger_entry){.key = result == CUDA_SUCCESS ? *handle : 0, .kind = LEDGER_HANDLE, .bytes = bytes, .card = (int8_t)card});
}

static void drop_use(CUmemHandle handle) {
  struct ledger_entry entry;
  if (ledger_use(LEDGER_HANDLE, handle, -1, &entry) && !entry.uses) claim_return(entry.card, entry.bytes);
}

CUresult cuMemRelease(CUmemHandle handle) {
  struct ledger_entry entry;
  /* Taken down before the call: right after it another thread may get the same handle for new memory. */
  bool known = ledger_use(LEDGER_HANDLE, handle, -1, &entry);
  CUresult result = NEXT(cuMemRelease)(handle);
  if (!known) return result;
  if (result == CUDA_SUCCESS) {
    if (!entry.uses) claim_return(entry.card, entry.bytes);
  } else if (entry.uses) {
    ledger_use(LEDGER_HANDLE, handle, 1, &entry);
  } else {
    entry.uses = 1;
    ledger_put(entry);
  }
  return result;
}

CUresult cuMemRetainAllocationHandle(CUmemHandle *handle, void *address) {
  struct ledger_entry entry;
  CUresult result = NEXT(cuMemRetainAllocationHandle)(handle, address);
  if (result == CUDA_SUCCESS) ledger_use(LEDGER_HANDLE, *handle, 1, &entry);
  return result;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemHandle handle, unsigned long long flags) {
  struct ledger_entry entry;
  CUresult result = NEXT(cuMemMap)(address, bytes, offset, handle, flags);
  if (result == CUDA_SUCCESS && ledger_use(LEDGER_HANDLE, handle, 1, &entry))
    ledger_put((struct ledger_entry){.key = address, .kind = LEDGER_MAPPING, .bytes = bytes, .link = handle});
  return result;
}

/* One call may cover several mappings side by side. */
static void unmapped(CUdeviceptr address, size_t bytes) {
  CUdeviceptr end = address + bytes;
  while (address < end) {
    struct ledger_entry mapping;
    if (!ledger_take(LEDGER_MAPPING, address, &mapping)) {
      address += STEP;
      continue;
    }
    drop_use(mapping.link);
    address += mapping.bytes ? mapping.bytes : STEP;
  }
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  CUresult result = NEXT(cuMemUnmap)(address, bytes);
  if (result == CUDA_SUCCESS && settings_get()->active) unmapped(address, bytes);
  return result;
}

CUresult cuMemImportFromShareableHandle(CUmemHandle *handle, void *os_handle, int type) {
  CUresult result = NEXT(cuMemImportFromShareableHandle)(handle, os_handle, type);
  if (result == CUDA_SUCCESS) measure_imports(1);
  return result;
}
