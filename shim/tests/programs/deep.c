/* Loads deepbind.so (argument) with RTLD_DEEPBIND and allocates argument 2 MiB through it; prints the code. */
#define _GNU_SOURCE
#include "api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
	void *context, *deep = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
	CUptr p;
	if (!deep || api_load("getproc") || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context))
		return 3;
	int (*alloc)(CUptr *, size_t) = (int (*)(CUptr *, size_t))dlsym(deep, "deep_alloc");
	printf("%d\n", alloc(&p, strtoul(argv[2], NULL, 10) << 20));
	return 0;
}
