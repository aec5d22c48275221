/* What the bench programs share: the driver's functions by dlopen and dlsym, as most programs reach them, and a kernel as
   PTX text. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t address_t;

static void *library;

static inline void *driver(const char *name) {
  if (!library) library = dlopen("libcuda.so.1", RTLD_NOW);
  void *function = library ? dlsym(library, name) : NULL;
  if (!function) {
    fprintf(stderr, "the driver has no %s: %s\n", name, dlerror());
    exit(3);
  }
  return function;
}

#define CU(result, name, ...) ((int (*)(__VA_ARGS__))driver(#name))

static inline void check(int result, const char *what) {
  if (!result) return;
  fprintf(stderr, "%s: CUDA error %d\n", what, result);
  exit(4);
}

static inline uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void start_device(int device) {
  void *context;
  check(CU(int, cuInit, unsigned)(0), "cuInit");
  check(CU(int, cuDevicePrimaryCtxRetain, void **, int)(&context, device), "cuDevicePrimaryCtxRetain");
  check(CU(int, cuCtxSetCurrent, void *)(context), "cuCtxSetCurrent");
}

/* Does nothing. */
static const char empty_kernel[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry empty()\n{\n ret;\n}\n";

#endif
