/* A program linked to libcuda: takes memory in steps of the first argument's MiB until refused; prints code, steps, free and total. */
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemGetInfo_v2(size_t *, size_t *);

int main(int argc, char **argv) {
	size_t step = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) << 20, free_bytes = 0, total = 0;
	unsigned long long p;
	void *context;
	int code, steps = 0;
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 3;
	while (!(code = cuMemAlloc_v2(&p, step)))
		steps++;
	cuMemGetInfo_v2(&free_bytes, &total);
	printf("%d %d %zu %zu\n", code, steps, free_bytes, total);
	return 0;
}
