/* The part of the CUDA driver's binary interface that this library touches. Offsets and sizes are facts of the ABI,
   the same on x86_64 and aarch64. */
#ifndef VGPU_CUDA_ABI_H
#define VGPU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint32_t CUdeviceptr_v1;
typedef uint64_t CUmemHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUfunc_st *CUfunction;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUmemPool_st *CUmemoryPool;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUextMemory_st *CUexternalMemory;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_NOT_SUPPORTED = 801,
};

enum { CU_STREAM_CAPTURE_STATUS_ACTIVE = 1, CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum { CU_LIMIT_PRINTF_FIFO_SIZE = 1, CU_LIMIT_MALLOC_HEAP_SIZE = 2 };
enum { CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5, CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7, CU_MEMPOOL_ATTR_LOCATION_ID = 11, CU_MEMPOOL_ATTR_LOCATION_TYPE = 12 };
enum { CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2 };
enum { CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10 };
enum { CU_MEM_LOCATION_TYPE_DEVICE = 1, CU_MEM_LOCATION_TYPE_LOCALITY_DOMAIN = 6 };
enum { CU_MEM_ALLOCATION_TYPE_MANAGED = 2 };
enum { CUDA_ARRAY3D_LAYERED = 0x01, CUDA_ARRAY3D_SPARSE = 0x40, CUDA_ARRAY3D_DEFERRED_MAPPING = 0x80 };

typedef struct {
  char bytes[16];
} CUuuid;

struct cu_ipc_handle {
  char bytes[64];
};

struct cu_array_descriptor_v1 {
  uint32_t width, height, format, channels;
};

struct cu_array_descriptor {
  size_t width, height;
  uint32_t format, channels;
};

struct cu_array3d_descriptor_v1 {
  uint32_t width, height, depth, format, channels, flags;
};

struct cu_array3d_descriptor {
  size_t width, height, depth;
  uint32_t format, channels, flags;
};

struct cu_location {
  int type;
  union {
    int id;
    struct {
      uint8_t device, domain;
    } localized; /* type 6 */
  };
};

struct cu_allocation_properties {
  int type, handle_types;
  struct cu_location location;
  void *handle_metadata;
  uint8_t flags[8];
};

struct cu_pool_properties {
  int type, handle_types;
  struct cu_location location;
  uint8_t rest[72];
};

struct cu_alloc_node_parameters {
  struct cu_pool_properties pool;
  const void *access;
  size_t access_count, bytes;
  CUdeviceptr address;
};

/* CUgraphNodeParams: the kind at 0, the kind's own parameters at 16. */
struct cu_graph_node_parameters {
  int kind, reserved[3];
  struct cu_alloc_node_parameters alloc;
};

enum { CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7 };

struct cu_launch_attribute {
  int id, pad;
  union {
    int serialization_allowed;
    uint64_t rest[8];
  };
};

struct cu_launch_config {
  unsigned grid[3], block[3], shared;
  CUstream stream;
  const struct cu_launch_attribute *attributes;
  unsigned count;
};

struct cu_external_memory_descriptor {
  int type;
  uint64_t handle[2];
  uint64_t size;
};

_Static_assert(sizeof(struct cu_array_descriptor) == 24, "CUDA_ARRAY_DESCRIPTOR");
_Static_assert(sizeof(struct cu_array3d_descriptor) == 40, "CUDA_ARRAY3D_DESCRIPTOR");
_Static_assert(sizeof(struct cu_allocation_properties) == 32, "CUmemAllocationProp");
_Static_assert(sizeof(struct cu_pool_properties) == 88, "CUmemPoolProps");
_Static_assert(sizeof(struct cu_alloc_node_parameters) == 120, "CUDA_MEM_ALLOC_NODE_PARAMS");
_Static_assert(sizeof(struct cu_launch_attribute) == 72, "CUlaunchAttribute");
_Static_assert(sizeof(struct cu_launch_config) == 56 && offsetof(struct cu_launch_config, attributes) == 40, "CUlaunchConfig");
_Static_assert(offsetof(struct cu_external_memory_descriptor, size) == 24, "CUDA_EXTERNAL_MEMORY_HANDLE_DESC");

#endif
