/* The part of the CUDA driver's ABI that the simulated driver speaks: sizes and offsets as in the public headers 11.7 to 13.5. */
#ifndef FAKE_ABI_H
#define FAKE_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct context *CUcontext;
typedef struct stream *CUstream;
typedef struct event *CUevent;
typedef struct module *CUmodule;
typedef struct function *CUfunction;
typedef struct library *CUlibrary;
typedef struct kernel *CUkernel;
typedef struct pool *CUmemoryPool;
typedef struct array *CUarray;
typedef struct mipmap *CUmipmappedArray;
typedef struct graph *CUgraph;
typedef struct node *CUgraphNode;
typedef struct exec *CUgraphExec;
typedef struct external *CUexternalMemory;
typedef unsigned long long CUmemHandle;
typedef void (*CUhostFn)(void *);
typedef void (*CUstreamCallback)(CUstream, CUresult, void *);

enum {
	OK = 0,
	ERR_VALUE = 1,
	ERR_MEMORY = 2,
	ERR_INIT = 3,
	ERR_NO_DEVICE = 100,
	ERR_DEVICE = 101,
	ERR_IMAGE = 200,
	ERR_CONTEXT = 201,
	ERR_PEER_ON = 704,
	ERR_PEER_OFF = 705,
	ERR_FILE = 301,
	ERR_OS = 304,
	ERR_HANDLE = 400,
	ERR_STATE = 401,
	ERR_NOT_FOUND = 500,
	ERR_NOT_READY = 600,
	ERR_PRIMARY_ACTIVE = 708,
	ERR_DESTROYED = 709,
	ERR_COOPERATIVE = 720,
	ERR_PERMITTED = 800,
	ERR_SUPPORTED = 801,
	ERR_CAPTURE_UNSUPPORTED = 900,
	ERR_CAPTURE_INVALIDATED = 901,
	ERR_CAPTURE_MERGE = 902,
	ERR_CAPTURE_UNMATCHED = 903,
	ERR_CAPTURE_UNJOINED = 904,
	ERR_CAPTURE_ISOLATION = 905,
	ERR_CAPTURE_IMPLICIT = 906,
	ERR_CAPTURED_EVENT = 907,
	ERR_CAPTURE_THREAD = 908,
	ERR_UPDATE = 910,
	ERR_UNKNOWN = 999,
};

#define STREAM_LEGACY ((CUstream)1)
#define STREAM_PER_THREAD ((CUstream)2)

typedef struct { char bytes[16]; } CUuuid;
typedef struct { char reserved[64]; } CUipcHandle;

struct location { int type, id; };
enum { LOCATION_DEVICE = 1, LOCATION_HOST = 2, LOCATION_NUMA = 3, LOCATION_NUMA_CURRENT = 4, LOCATION_DOMAIN = 6 };

struct alloc_prop {
	int type, handle_types;
	struct location location;
	void *win32;
	unsigned char compression, rdma;
	unsigned short usage;
	unsigned char reserved[4];
};
_Static_assert(sizeof(struct alloc_prop) == 32, "CUmemAllocationProp");

struct access_desc { struct location location; int flags; };
_Static_assert(sizeof(struct access_desc) == 12, "CUmemAccessDesc");

struct pool_props {
	int alloc_type, handle_types;
	struct location location;
	void *win32;
	size_t max_size;
	unsigned char reserved[56];
};
_Static_assert(sizeof(struct pool_props) == 88, "CUmemPoolProps");

struct array_desc { size_t width, height; int format; unsigned channels; };
struct array3d_desc { size_t width, height, depth; int format; unsigned channels, flags; };
_Static_assert(sizeof(struct array3d_desc) == 40, "CUDA_ARRAY3D_DESCRIPTOR");

struct copy2d {
	size_t src_x, src_y;
	int src_type;
	const void *src_host;
	CUdeviceptr src_device;
	CUarray src_array;
	size_t src_pitch, dst_x, dst_y;
	int dst_type;
	void *dst_host;
	CUdeviceptr dst_device;
	CUarray dst_array;
	size_t dst_pitch, width, height;
};
_Static_assert(sizeof(struct copy2d) == 128, "CUDA_MEMCPY2D");

struct copy3d {
	size_t src_x, src_y, src_z, src_lod;
	int src_type;
	const void *src_host;
	CUdeviceptr src_device;
	CUarray src_array;
	void *reserved0;
	size_t src_pitch, src_height, dst_x, dst_y, dst_z, dst_lod;
	int dst_type;
	void *dst_host;
	CUdeviceptr dst_device;
	CUarray dst_array;
	void *reserved1;
	size_t dst_pitch, dst_height, width, height, depth;
};
_Static_assert(sizeof(struct copy3d) == 200, "CUDA_MEMCPY3D");

struct launch_config {
	unsigned grid[3], block[3], shared;
	CUstream stream;
	void *attrs;
	unsigned num_attrs;
};
_Static_assert(sizeof(struct launch_config) == 56, "CUlaunchConfig");

struct launch_attr { int id, pad, value[16]; };
_Static_assert(sizeof(struct launch_attr) == 72, "CUlaunchAttribute");

struct launch_params {
	CUfunction function;
	unsigned grid[3], block[3], shared;
	CUstream stream;
	void **params;
};
_Static_assert(sizeof(struct launch_params) == 56, "CUDA_LAUNCH_PARAMS");

struct kernel_params {
	CUfunction function;
	unsigned grid[3], block[3], shared;
	void **params, **extra;
	CUkernel kernel;
	CUcontext context;
};
_Static_assert(sizeof(struct kernel_params) == 72 && offsetof(struct kernel_params, kernel) == 56, "CUDA_KERNEL_NODE_PARAMS");

struct alloc_node_params {
	struct pool_props props;
	const struct access_desc *access;
	size_t access_count, size;
	CUdeviceptr pointer;
};
_Static_assert(sizeof(struct alloc_node_params) == 120, "CUDA_MEM_ALLOC_NODE_PARAMS");

struct external_desc {
	int type;
	union { int fd; void *win32[2]; } handle;
	unsigned long long size;
	unsigned flags, reserved[16];
};
_Static_assert(sizeof(struct external_desc) == 104, "CUDA_EXTERNAL_MEMORY_HANDLE_DESC");

#endif
