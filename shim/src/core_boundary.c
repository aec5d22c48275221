/* What orders a stream without running kernels: waits, host functions, copies to and from the host. A measured segment
   must not span it, and what comes after it begins no earlier than all that was launched so far. */
#include "core_boundary.h"

#include "driver.h"

CUresult cuLaunchHostFunc(CUstream stream, void *call, void *data) {
  core_boundary(stream, false);
  return NEXT(cuLaunchHostFunc)(stream, call, data);
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, void *call, void *data) {
  core_boundary(stream, true);
  return NEXT(cuLaunchHostFunc_ptsz)(stream, call, data);
}

CUresult cuLaunchHostFunc_v2(CUstream stream, void *call, void *data, unsigned mode) {
  core_boundary(stream, false);
  return NEXT(cuLaunchHostFunc_v2)(stream, call, data, mode);
}

CUresult cuLaunchHostFunc_v2_ptsz(CUstream stream, void *call, void *data, unsigned mode) {
  core_boundary(stream, true);
  return NEXT(cuLaunchHostFunc_v2_ptsz)(stream, call, data, mode);
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr_v1 from, unsigned bytes) {
  core_copied(false, bytes);
  return NEXT(cuMemcpyDtoH)(to, from, bytes);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr_v1 from, unsigned bytes, CUstream stream) {
  core_copied(false, bytes);
  core_boundary(stream, false);
  return NEXT(cuMemcpyDtoHAsync)(to, from, bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  core_copied(false, bytes);
  core_boundary(stream, false);
  return NEXT(cuMemcpyDtoHAsync_v2)(to, from, bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  core_copied(false, bytes);
  core_boundary(stream, true);
  return NEXT(cuMemcpyDtoHAsync_v2_ptsz)(to, from, bytes, stream);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  core_copied(false, bytes);
  return NEXT(cuMemcpyDtoH_v2)(to, from, bytes);
}

CUresult cuMemcpyDtoH_v2_ptds(void *to, CUdeviceptr from, size_t bytes) {
  core_copied(false, bytes);
  return NEXT(cuMemcpyDtoH_v2_ptds)(to, from, bytes);
}

CUresult cuMemcpyHtoD(CUdeviceptr_v1 to, const void *from, unsigned bytes) {
  core_copied(true, bytes);
  return NEXT(cuMemcpyHtoD)(to, from, bytes);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr_v1 to, const void *from, unsigned bytes, CUstream stream) {
  core_copied(true, bytes);
  core_boundary(stream, false);
  return NEXT(cuMemcpyHtoDAsync)(to, from, bytes, stream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  core_copied(true, bytes);
  core_boundary(stream, false);
  return NEXT(cuMemcpyHtoDAsync_v2)(to, from, bytes, stream);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  core_copied(true, bytes);
  core_boundary(stream, true);
  return NEXT(cuMemcpyHtoDAsync_v2_ptsz)(to, from, bytes, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  core_copied(true, bytes);
  return NEXT(cuMemcpyHtoD_v2)(to, from, bytes);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t bytes) {
  core_copied(true, bytes);
  return NEXT(cuMemcpyHtoD_v2_ptds)(to, from, bytes);
}

CUresult cuStreamAddCallback(CUstream stream, void *call, void *data, unsigned flags) {
  core_boundary(stream, false);
  return NEXT(cuStreamAddCallback)(stream, call, data, flags);
}

CUresult cuStreamAddCallback_ptsz(CUstream stream, void *call, void *data, unsigned flags) {
  core_boundary(stream, true);
  return NEXT(cuStreamAddCallback_ptsz)(stream, call, data, flags);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, void *operations, unsigned flags) {
  core_boundary(stream, false);
  return NEXT(cuStreamBatchMemOp)(stream, count, operations, flags);
}

CUresult cuStreamBatchMemOp_ptsz(CUstream stream, unsigned count, void *operations, unsigned flags) {
  core_boundary(stream, true);
  return NEXT(cuStreamBatchMemOp_ptsz)(stream, count, operations, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count, void *operations, unsigned flags) {
  core_boundary(stream, false);
  return NEXT(cuStreamBatchMemOp_v2)(stream, count, operations, flags);
}

CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned count, void *operations, unsigned flags) {
  core_boundary(stream, true);
  return NEXT(cuStreamBatchMemOp_v2_ptsz)(stream, count, operations, flags);
}

CUresult cuStreamDestroy(CUstream stream) {
  core_stream_ending(stream);
  return NEXT(cuStreamDestroy)(stream);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  core_stream_ending(stream);
  return NEXT(cuStreamDestroy_v2)(stream);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  core_boundary(stream, false);
  return NEXT(cuStreamWaitEvent)(stream, event, flags);
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags) {
  core_boundary(stream, true);
  return NEXT(cuStreamWaitEvent_ptsz)(stream, event, flags);
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags) {
  core_boundary(stream, false);
  return NEXT(cuStreamWaitValue32)(stream, address, value, flags);
}

CUresult cuStreamWaitValue32_ptsz(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags) {
  core_boundary(stream, true);
  return NEXT(cuStreamWaitValue32_ptsz)(stream, address, value, flags);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags) {
  core_boundary(stream, false);
  return NEXT(cuStreamWaitValue32_v2)(stream, address, value, flags);
}

CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags) {
  core_boundary(stream, true);
  return NEXT(cuStreamWaitValue32_v2_ptsz)(stream, address, value, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags) {
  core_boundary(stream, false);
  return NEXT(cuStreamWaitValue64)(stream, address, value, flags);
}

CUresult cuStreamWaitValue64_ptsz(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags) {
  core_boundary(stream, true);
  return NEXT(cuStreamWaitValue64_ptsz)(stream, address, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags) {
  core_boundary(stream, false);
  return NEXT(cuStreamWaitValue64_v2)(stream, address, value, flags);
}

CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags) {
  core_boundary(stream, true);
  return NEXT(cuStreamWaitValue64_v2_ptsz)(stream, address, value, flags);
}
