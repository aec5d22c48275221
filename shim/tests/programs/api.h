/* The driver's functions as a program without the toolkit sees them: declared here, found at run time the way the caller chooses. */
#ifndef TEST_API_H
#define TEST_API_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef unsigned long long CUptr;
typedef struct { char bytes[64]; } CUipc;

struct place { int type, id; };
struct physical_prop { int type, handle_types; struct place place; void *win32; unsigned char flags[8]; };
struct access { struct place place; int flags; };
struct pool_props { int type, handle_types; struct place place; void *win32; size_t max_size; char reserved[56]; };
struct array2d { size_t width, height; int format; unsigned channels; };
struct array3d { size_t width, height, depth; int format; unsigned channels, flags; };
struct alloc_node { struct pool_props pool; void *access; size_t access_count, size; CUptr pointer; };
struct kernel_node { void *function; unsigned grid[3], block[3], shared; void **params, **extra; void *kernel, *context; };
struct launch { unsigned grid[3], block[3], shared; void *stream, *attributes; unsigned count; };

#define API(X) \
	X(cuInit, (unsigned)) \
	X(cuDriverGetVersion, (int *)) \
	X(cuDeviceGetCount, (int *)) \
	X(cuDeviceGet, (int *, int)) \
	X(cuDeviceGetName, (char *, int, int)) \
	X(cuDeviceGetUuid, (char *, int)) \
	X(cuDeviceTotalMem_v2, (size_t *, int)) \
	X(cuDeviceGetPCIBusId, (char *, int, int)) \
	X(cuDevicePrimaryCtxRetain, (void **, int)) \
	X(cuDevicePrimaryCtxRelease_v2, (int)) \
	X(cuDevicePrimaryCtxReset_v2, (int)) \
	X(cuCtxCreate_v2, (void **, unsigned, int)) \
	X(cuCtxDestroy_v2, (void *)) \
	X(cuCtxSetCurrent, (void *)) \
	X(cuCtxGetCurrent, (void **)) \
	X(cuCtxGetDevice, (int *)) \
	X(cuCtxPushCurrent_v2, (void *)) \
	X(cuCtxPopCurrent_v2, (void **)) \
	X(cuCtxSynchronize, (void)) \
	X(cuCtxSetLimit, (int, size_t)) \
	X(cuMemGetInfo_v2, (size_t *, size_t *)) \
	X(cuMemAlloc_v2, (CUptr *, size_t)) \
	X(cuMemAllocPitch_v2, (CUptr *, size_t *, size_t, size_t, unsigned)) \
	X(cuMemAllocManaged, (CUptr *, size_t, unsigned)) \
	X(cuMemFree_v2, (CUptr)) \
	X(cuMemHostAlloc, (void **, size_t, unsigned)) \
	X(cuMemFreeHost, (void *)) \
	X(cuMemHostRegister_v2, (void *, size_t, unsigned)) \
	X(cuMemHostUnregister, (void *)) \
	X(cuMemGetAddressRange_v2, (CUptr *, size_t *, CUptr)) \
	X(cuMemcpyHtoD_v2, (CUptr, const void *, size_t)) \
	X(cuMemcpyDtoH_v2, (void *, CUptr, size_t)) \
	X(cuMemsetD8_v2, (CUptr, unsigned char, size_t)) \
	X(cuMemsetD32Async, (CUptr, unsigned, size_t, void *)) \
	X(cuArrayCreate_v2, (void **, const struct array2d *)) \
	X(cuArray3DCreate_v2, (void **, const struct array3d *)) \
	X(cuArrayDestroy, (void *)) \
	X(cuMipmappedArrayCreate, (void **, const struct array3d *, unsigned)) \
	X(cuMipmappedArrayDestroy, (void *)) \
	X(cuMipmappedArrayGetLevel, (void **, void *, unsigned)) \
	X(cuMemGetAllocationGranularity, (size_t *, const struct physical_prop *, int)) \
	X(cuMemCreate, (unsigned long long *, size_t, const struct physical_prop *, unsigned long long)) \
	X(cuMemRelease, (unsigned long long)) \
	X(cuMemAddressReserve, (CUptr *, size_t, size_t, CUptr, unsigned long long)) \
	X(cuMemAddressFree, (CUptr, size_t)) \
	X(cuMemMap, (CUptr, size_t, size_t, unsigned long long, unsigned long long)) \
	X(cuMemUnmap, (CUptr, size_t)) \
	X(cuMemSetAccess, (CUptr, size_t, const struct access *, size_t)) \
	X(cuMemRetainAllocationHandle, (unsigned long long *, void *)) \
	X(cuMemExportToShareableHandle, (void *, unsigned long long, int, unsigned long long)) \
	X(cuMemImportFromShareableHandle, (unsigned long long *, void *, int)) \
	X(cuMemAllocAsync, (CUptr *, size_t, void *)) \
	X(cuMemAllocFromPoolAsync, (CUptr *, size_t, void *, void *)) \
	X(cuMemFreeAsync, (CUptr, void *)) \
	X(cuMemPoolCreate, (void **, const struct pool_props *)) \
	X(cuMemPoolDestroy, (void *)) \
	X(cuMemPoolSetAttribute, (void *, int, void *)) \
	X(cuMemPoolGetAttribute, (void *, int, void *)) \
	X(cuMemPoolTrimTo, (void *, size_t)) \
	X(cuDeviceGetDefaultMemPool, (void **, int)) \
	X(cuDeviceSetMemPool, (int, void *)) \
	X(cuDeviceGraphMemTrim, (int)) \
	X(cuIpcGetMemHandle, (CUipc *, CUptr)) \
	X(cuIpcOpenMemHandle_v2, (CUptr *, CUipc, unsigned)) \
	X(cuIpcCloseMemHandle, (CUptr)) \
	X(cuImportExternalMemory, (void **, const void *)) \
	X(cuExternalMemoryGetMappedBuffer, (CUptr *, void *, const void *)) \
	X(cuDestroyExternalMemory, (void *)) \
	X(cuModuleLoadData, (void **, const void *)) \
	X(cuModuleGetFunction, (void **, void *, const char *)) \
	X(cuModuleUnload, (void *)) \
	X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **)) \
	X(cuLaunchKernelEx, (const struct launch *, void *, void **, void **)) \
	X(cuLaunchCooperativeKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **)) \
	X(cuStreamCreate, (void **, unsigned)) \
	X(cuStreamDestroy_v2, (void *)) \
	X(cuStreamSynchronize, (void *)) \
	X(cuStreamQuery, (void *)) \
	X(cuStreamWaitEvent, (void *, void *, unsigned)) \
	X(cuStreamBeginCapture_v2, (void *, int)) \
	X(cuStreamEndCapture, (void *, void **)) \
	X(cuStreamIsCapturing, (void *, int *)) \
	X(cuThreadExchangeStreamCaptureMode, (int *)) \
	X(cuEventCreate, (void **, unsigned)) \
	X(cuEventDestroy_v2, (void *)) \
	X(cuEventRecord, (void *, void *)) \
	X(cuEventQuery, (void *)) \
	X(cuEventSynchronize, (void *)) \
	X(cuEventElapsedTime, (float *, void *, void *)) \
	X(cuGraphCreate, (void **, unsigned)) \
	X(cuGraphDestroy, (void *)) \
	X(cuGraphAddMemAllocNode, (void **, void *, void *const *, size_t, struct alloc_node *)) \
	X(cuGraphAddMemFreeNode, (void **, void *, void *const *, size_t, CUptr)) \
	X(cuGraphAddKernelNode, (void **, void *, void *const *, size_t, const struct kernel_node *)) \
	X(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long)) \
	X(cuGraphExecDestroy, (void *)) \
	X(cuGraphLaunch, (void *, void *)) \
	X(cuGraphGetNodes, (void *, void **, size_t *)) \
	X(cuPointerGetAttribute, (void *, int, CUptr)) \
	X(cuGetProcAddress, (const char *, void **, int, uint64_t)) \
	X(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *)) \
	X(cuGetErrorName, (CUresult, const char **))

#define MEMBER(name, args) CUresult (*name) args;
struct api { API(MEMBER) };
#undef MEMBER
extern struct api cu; /* NULL where this driver has no such function */

/* Finds every function: how is "dlsym", "next" (RTLD_NEXT), "default" (RTLD_DEFAULT), "dlvsym" or "getproc" (as the runtime
 * library does). 0, or -1 with the reason on standard error. */
int api_load(const char *how);

extern const char spin_ptx[]; /* kernel spin_ns(u64 nanoseconds), for any card since sm_50 */

#endif
