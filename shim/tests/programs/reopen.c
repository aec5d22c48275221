/* Opens the driver's library, uses it, closes it, again and again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

typedef int (*init)(unsigned);
typedef int (*retain)(void **, int);
typedef int (*set)(void *);
typedef int (*alloc)(unsigned long long *, size_t);
typedef int (*info)(size_t *, size_t *);

int main(void) {
	for (int i = 0; i < 10; i++) {
		void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
		unsigned long long p;
		size_t f, t;
		if (!library)
			return 3;
		int r[5] = {((init)dlsym(library, "cuInit"))(0), ((retain)dlsym(library, "cuDevicePrimaryCtxRetain"))(&context, 0),
		            ((set)dlsym(library, "cuCtxSetCurrent"))(context), ((alloc)dlsym(library, "cuMemAlloc_v2"))(&p, 1 << 20),
		            ((info)dlsym(library, "cuMemGetInfo_v2"))(&f, &t)};
		if (r[0] || r[1] || r[2] || r[3] || r[4] || f > t) {
			printf("round %d: %d %d %d %d %d\n", i, r[0], r[1], r[2], r[3], r[4]);
			return 1;
		}
		dlclose(library);
	}
	return 0;
}
