/* Memory imported from another interface, mapped, freed by cuMemFree. The descriptor's file stands for what Vulkan would export. */
#define _GNU_SOURCE
#include "api.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct external { int type; union { int fd; void *win32[2]; } handle; unsigned long long size; unsigned flags, reserved[16]; };
struct buffer { unsigned long long offset, size; unsigned flags, reserved[16]; };

int main(void) {
	void *context, *memory;
	CUptr p;
	if (api_load("getproc") || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context))
		return 3;
	for (int i = 0; i < 50; i++) {
		struct external e = {.type = 1, .handle.fd = memfd_create("external", 0), .size = 64 << 20};
		struct buffer b = {.size = 64 << 20};
		int r[4] = {cu.cuImportExternalMemory(&memory, &e), 0, 0, 0};
		if (!r[0]) {
			r[1] = cu.cuExternalMemoryGetMappedBuffer(&p, memory, &b);
			r[2] = cu.cuMemFree_v2(p);
			r[3] = cu.cuDestroyExternalMemory(memory);
		}
		if (r[0] || r[1] || r[2] || r[3]) {
			printf("round %d: import %d, map %d, free %d, destroy %d\n", i, r[0], r[1], r[2], r[3]);
			return 1;
		}
	}
	return 0;
}
