#ifndef VGPU_CORE_BOUNDARY_H
#define VGPU_CORE_BOUNDARY_H

#include "cuda_abi.h"

#include <stdbool.h>
#include <stddef.h>

/* Something else than a kernel is put into the stream. */
void core_boundary(CUstream stream, bool per_thread);

/* The stream is about to be destroyed. */
void core_stream_ending(CUstream stream);

/* Counts bytes copied between host and card. */
void core_copied(bool to_device, size_t bytes);

#endif
