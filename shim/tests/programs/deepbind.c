/* A library that imports the driver at link time; loaded with RTLD_DEEPBIND it looks in its own dependencies first. */
#include <stddef.h>

int cuMemAlloc_v2(unsigned long long *out, size_t size);
int deep_alloc(unsigned long long *out, size_t size);
int deep_alloc(unsigned long long *out, size_t size) {
	return cuMemAlloc_v2(out, size);
}
