/* Arrays and mipmapped arrays. Sparse ones and those with deferred mapping take memory through cuMemCreate, not here. */
#include "account.h"
#include "card.h"
#include "driver.h"

/* Bytes of an element's channel. Formats of 0x90 and up are given by the element: compressed blocks of 4x4 texels count 8
   or 16 bytes a block, so a texel counts half a byte or one. */
static uint64_t image_bytes(uint64_t width, uint64_t height, uint64_t depth, uint32_t format, uint32_t channels) {
  uint64_t texels = width * (height ? height : 1) * (depth ? depth : 1);
  switch (format) {
    case 0x01: case 0x08: case 0xc0: case 0xc1: case 0xc2: case 0xc3: case 0xc4: case 0xc5: /* 8 bit integers, normalized */
      return texels * channels;
    case 0x02: case 0x09: case 0x10: case 0xc6: case 0xc7: case 0xc8: case 0xc9: case 0xca: case 0xcb: /* 16 bit */
      return texels * channels * 2;
    case 0x03: case 0x0a: case 0x20: /* 32 bit */
      return texels * channels * 4;
    case 0xb0: /* NV12: a plane of luma and a quarter of it twice */
      return texels * 3 / 2;
    case 0x91: case 0x92: case 0x97: case 0x98: /* BC1, BC4: 8 bytes a block */
      return ((width + 3) / 4) * ((height ? height + 3 : 4) / 4) * (depth ? depth : 1) * 8;
    default:
      if (format >= 0x91 && format <= 0x9e) /* other BC formats: 16 bytes a block */
        return ((width + 3) / 4) * ((height ? height + 3 : 4) / 4) * (depth ? depth : 1) * 16;
      return texels * (channels ? channels : 1) * 4; /* unknown: what is missing or too much is found by measurement */
  }
}

static CUresult made(CUresult result, int card, uint64_t bytes, enum ledger_kind kind, uint64_t key) {
  if (card == CARD_NONE) return result;
  return account_settle(result, bytes, (struct ledger_entry){.key = key, .kind = (uint8_t)kind, .bytes = bytes, .card = (int8_t)card, .link = account_context(), .cut = true});
}

CUresult cuArrayCreate_v2(CUarray *array, const struct cu_array_descriptor *d) {
  int card = array && d ? card_current() : CARD_NONE;
  uint64_t bytes = card != CARD_NONE ? account_size(image_bytes(d->width, d->height, 0, d->format, d->channels)) : 0;
  if (card != CARD_NONE && !account_reserve(card, bytes, true, "cuArrayCreate")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = NEXT(cuArrayCreate_v2)(array, d);
  return made(result, card, bytes, LEDGER_ARRAY, result == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*array : 0);
}

CUresult cuArrayCreate(CUarray *array, const struct cu_array_descriptor_v1 *d) {
  int card = array && d ? card_current() : CARD_NONE;
  uint64_t bytes = card != CARD_NONE ? account_size(image_bytes(d->width, d->height, 0, d->format, d->channels)) : 0;
  if (card != CARD_NONE && !account_reserve(card, bytes, true, "cuArrayCreate")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = NEXT(cuArrayCreate)(array, d);
  return made(result, card, bytes, LEDGER_ARRAY, result == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*array : 0);
}

static bool backed(uint32_t flags) { return !(flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)); }

CUresult cuArray3DCreate_v2(CUarray *array, const struct cu_array3d_descriptor *d) {
  int card = array && d && backed(d->flags) ? card_current() : CARD_NONE;
  uint64_t bytes = card != CARD_NONE ? account_size(image_bytes(d->width, d->height, d->depth, d->format, d->channels)) : 0;
  if (card != CARD_NONE && !account_reserve(card, bytes, true, "cuArray3DCreate")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = NEXT(cuArray3DCreate_v2)(array, d);
  return made(result, card, bytes, LEDGER_ARRAY, result == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*array : 0);
}

CUresult cuArray3DCreate(CUarray *array, const struct cu_array3d_descriptor_v1 *d) {
  int card = array && d && backed(d->flags) ? card_current() : CARD_NONE;
  uint64_t bytes = card != CARD_NONE ? account_size(image_bytes(d->width, d->height, d->depth, d->format, d->channels)) : 0;
  if (card != CARD_NONE && !account_reserve(card, bytes, true, "cuArray3DCreate")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = NEXT(cuArray3DCreate)(array, d);
  return made(result, card, bytes, LEDGER_ARRAY, result == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*array : 0);
}

CUresult cuArrayDestroy(CUarray array) {
  struct ledger_entry entry;
  bool known = account_take(LEDGER_ARRAY, (uint64_t)(uintptr_t)array, &entry);
  return account_freed(NEXT(cuArrayDestroy)(array), known, entry);
}

static uint64_t halved(uint64_t size, unsigned level) { return size >> level ? size >> level : size ? 1 : 0; }

static uint64_t mipmap_bytes(const struct cu_array3d_descriptor *d, unsigned levels) {
  uint64_t bytes = 0;
  for (unsigned i = 0; i < levels && i < 32; i++) {
    uint64_t depth = d->flags & CUDA_ARRAY3D_LAYERED ? d->depth : halved(d->depth, i);
    bytes += image_bytes(halved(d->width, i), halved(d->height, i), depth, d->format, d->channels);
    if (!(d->width >> (i + 1)) && !(d->height >> (i + 1)) && (d->flags & CUDA_ARRAY3D_LAYERED || !(d->depth >> (i + 1)))) break;
  }
  return account_size(bytes);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const struct cu_array3d_descriptor *d, unsigned levels) {
  int card = array && d && backed(d->flags) ? card_current() : CARD_NONE;
  uint64_t bytes = card != CARD_NONE ? mipmap_bytes(d, levels) : 0;
  if (card != CARD_NONE && !account_reserve(card, bytes, true, "cuMipmappedArrayCreate")) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = NEXT(cuMipmappedArrayCreate)(array, d, levels);
  return made(result, card, bytes, LEDGER_MIPMAP, result == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*array : 0);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  struct ledger_entry entry;
  bool known = account_take(LEDGER_MIPMAP, (uint64_t)(uintptr_t)array, &entry);
  return account_freed(NEXT(cuMipmappedArrayDestroy)(array), known, entry);
}
