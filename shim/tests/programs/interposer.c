/* Another preloaded library in the manner of profilers: its cuMemAlloc_v2 counts and calls the next one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static int calls;

int cuMemAlloc_v2(unsigned long long *out, size_t size);
int cuMemAlloc_v2(unsigned long long *out, size_t size) {
	static int (*next)(unsigned long long *, size_t);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	if (!next || next == cuMemAlloc_v2) {
		fprintf(stderr, "interposer: %s\n", next ? "found itself" : "found nothing");
		return 999;
	}
	calls++;
	return next(out, size);
}

__attribute__((destructor)) static void report(void) {
	if (calls)
		fprintf(stderr, "interposer: %d calls\n", calls);
}
