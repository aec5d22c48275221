/* The part of NVML's binary interface that this library touches. */
#ifndef VGPU_NVML_ABI_H
#define VGPU_NVML_ABI_H

#include <stdint.h>

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

enum {
  NVML_SUCCESS = 0,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
};
#define NVML_VALUE_NOT_AVAILABLE UINT64_MAX
enum { NVML_UUID_SIZE = 96 };

struct nvml_memory {
  uint64_t total, free, used;
};

struct nvml_memory_v2 {
  uint32_t version;
  uint64_t total, reserved, free, used;
};

struct nvml_process_v1 {
  uint32_t pid;
  uint64_t used;
};

struct nvml_process {
  uint32_t pid;
  uint64_t used;
  uint32_t gpu_instance, compute_instance;
};

struct nvml_detail {
  uint32_t pid;
  uint64_t used;
  uint32_t gpu_instance, compute_instance;
  uint64_t protected_used;
};

struct nvml_detail_list {
  uint32_t version, mode, count;
  struct nvml_detail *list;
};

struct nvml_utilization {
  uint32_t gpu, memory;
};

enum { NVML_GPU_UTILIZATION_SAMPLES = 1 };

struct nvml_sample {
  uint64_t time;
  union {
    double real;
    uint32_t number;
    uint64_t bits;
  } value;
};

struct nvml_utilization_sample {
  uint32_t pid;
  uint64_t time; /* microseconds */
  uint32_t sm, memory, encoder, decoder;
};

struct nvml_utilization_info {
  uint64_t time;
  uint32_t pid, sm, memory, encoder, decoder, jpeg, flow;
};

struct nvml_utilization_list {
  uint32_t version, count;
  uint64_t since;
  struct nvml_utilization_info *list;
};

struct nvml_attributes {
  uint32_t multiprocessors, copy_engines, decoders, encoders, jpeg, flow, gpu_slices, compute_slices;
  uint64_t memory_mib;
};

struct nvml_accounting_v2 {
  uint32_t pid;
  uint8_t rest[60];
};

_Static_assert(sizeof(struct nvml_memory_v2) == 40, "nvmlMemory_v2_t");
_Static_assert(sizeof(struct nvml_process_v1) == 16, "nvmlProcessInfo_v1_t");
_Static_assert(sizeof(struct nvml_process) == 24, "nvmlProcessInfo_t");
_Static_assert(sizeof(struct nvml_detail) == 32, "nvmlProcessDetail_v1_t");
_Static_assert(sizeof(struct nvml_utilization_sample) == 32, "nvmlProcessUtilizationSample_t");
_Static_assert(sizeof(struct nvml_utilization_info) == 40, "nvmlProcessUtilizationInfo_v1_t");
_Static_assert(sizeof(struct nvml_attributes) == 40, "nvmlDeviceAttributes_t");

#endif
