/* Cards are known by their UUIDs. A card's number is its place in the region. */
#ifndef VGPU_CARD_H
#define VGPU_CARD_H

#include "cuda_abi.h"
#include "nvml_abi.h"
#include "region.h"

enum { CARD_NONE = -1 };

/* UUIDs in the order that gives limits their numbers: NVIDIA_VISIBLE_DEVICES if it lists UUIDs, else NVML's order, else
   CUDA's. Returns how many. */
int card_list(char uuids[REGION_CARDS][NVML_UUID_SIZE]);

/* The card of a CUDA device, of the current context, of an NVML handle; CARD_NONE if unknown or nothing is limited. */
int card_of_device(CUdevice device);
int card_current(void);
int card_of_nvml(nvmlDevice_t device);

/* The CUDA device of a card, -1 if this process has none. */
CUdevice card_device(int card);

#endif
