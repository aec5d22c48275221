#include "core.h"

#include "driver.h"
#include "region.h"
#include "settings.h"

#include <time.h>

void core_launched(void) {
  static time_t last;
  static const struct region *region;
  if (!settings_get()->active) return;
  time_t now = time(NULL);
  if (__builtin_expect(__atomic_load_n(&last, __ATOMIC_RELAXED) == now, 1)) return;
  __atomic_store_n(&last, now, __ATOMIC_RELAXED);
  if (!region) region = region_get();
  if (!region) return;
  __atomic_store_n(&region->file->last_kernel_time, (uint64_t)now, __ATOMIC_RELAXED);
  __atomic_store_n(&region->file->recent_kernel, 2, __ATOMIC_RELAXED);
  for (int card = 0; card < region_cards(region); card++) region_core_limit(region, card);
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        CUstream stream, void **parameters, void **extra) {
  core_launched();
  return NEXT(cuLaunchKernel)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                             CUstream stream, void **parameters, void **extra) {
  core_launched();
  return NEXT(cuLaunchKernel_ptsz)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}

CUresult cuLaunchKernelEx(const void *config, CUfunction function, void **parameters, void **extra) {
  core_launched();
  return NEXT(cuLaunchKernelEx)(config, function, parameters, extra);
}

CUresult cuLaunchKernelEx_ptsz(const void *config, CUfunction function, void **parameters, void **extra) {
  core_launched();
  return NEXT(cuLaunchKernelEx_ptsz)(config, function, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                   CUstream stream, void **parameters) {
  core_launched();
  return NEXT(cuLaunchCooperativeKernel)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                        unsigned shared, CUstream stream, void **parameters) {
  core_launched();
  return NEXT(cuLaunchCooperativeKernel_ptsz)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters);
}

CUresult cuLaunchCooperativeKernelMultiDevice(void *list, unsigned devices, unsigned flags) {
  core_launched();
  return NEXT(cuLaunchCooperativeKernelMultiDevice)(list, devices, flags);
}

CUresult cuLaunch(CUfunction function) {
  core_launched();
  return NEXT(cuLaunch)(function);
}

CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  core_launched();
  return NEXT(cuLaunchGrid)(function, width, height);
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  core_launched();
  return NEXT(cuLaunchGridAsync)(function, width, height, stream);
}
