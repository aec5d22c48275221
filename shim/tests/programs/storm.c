/* Takes and gives memory at random for as many milliseconds as told; ends with the number of refusals, or by SIGKILL from outside. */
#define _GNU_SOURCE
#include "api.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long now_ms(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

int main(int argc, char **argv) {
	long long end = now_ms() + (argc > 1 ? atoll(argv[1]) : 1000);
	unsigned seed = (unsigned)getpid();
	CUptr held[64] = {0};
	int refused = 0, count = 0;
	void *context;
	if (api_load("getproc"))
		return 3;
	int r = cu.cuInit(0);
	if (!r)
		r = cu.cuDevicePrimaryCtxRetain(&context, 0);
	if (r == 2) { /* no room for a context */
		printf("0 1\n");
		return 0;
	}
	if (r || (r = cu.cuCtxSetCurrent(context))) {
		fprintf(stderr, "start: %d\n", r);
		return 4;
	}
	while (now_ms() < end) {
		int i = rand_r(&seed) % 64;
		if (held[i]) {
			if ((r = cu.cuMemFree_v2(held[i]))) {
				fprintf(stderr, "free: %d\n", r);
				return 5;
			}
			held[i] = 0;
		} else {
			r = cu.cuMemAlloc_v2(&held[i], (size_t)(1 + rand_r(&seed) % 32) << 20);
			if (r == 2)
				refused++, held[i] = 0;
			else if (r) {
				fprintf(stderr, "alloc: %d\n", r);
				return 6;
			}
			count++;
		}
	}
	printf("%d %d\n", count, refused);
	return 0;
}
