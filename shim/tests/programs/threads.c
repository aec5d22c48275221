/* Eight threads take and give memory in eight ways at once, below the limit or (argument 1) across it; the usage ends where it began. */
#define _GNU_SOURCE
#include "api.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 8
#define ROUNDS 300

static void *context;
static size_t unit;
static int wrong[THREADS];

static CUresult one(int way, size_t n) {
	CUptr p;
	void *o;
	size_t pitch;
	unsigned long long h;
	struct array2d a = {1024, n / 4096, 0x20, 1};
	struct physical_prop prop = {.type = 1, .place = {1, 0}};
	CUresult r = 0;
	switch (way % 6) {
	case 0: r = cu.cuMemAlloc_v2(&p, n); return r ? r : cu.cuMemFree_v2(p);
	case 1: r = cu.cuMemAllocPitch_v2(&p, &pitch, 4096, n / 4096, 4); return r ? r : cu.cuMemFree_v2(p);
	case 2: r = cu.cuArrayCreate_v2(&o, &a); return r ? r : cu.cuArrayDestroy(o);
	case 3: r = cu.cuMemCreate(&h, n, &prop, 0); return r ? r : cu.cuMemRelease(h);
	case 4: r = cu.cuMemAllocManaged(&p, n, 1); return r ? r : cu.cuMemFree_v2(p);
	default:
		if (!cu.cuMemAllocAsync)
			return 0;
		r = cu.cuMemAllocAsync(&p, n, NULL);
		return r ? r : cu.cuMemFreeAsync(p, NULL);
	}
}

static void *run(void *arg) {
	int me = (int)(intptr_t)arg;
	unsigned seed = (unsigned)me;
	cu.cuCtxSetCurrent(context);
	for (int i = 0; i < ROUNDS; i++) {
		CUresult r = one(me, unit * (1 + (size_t)rand_r(&seed) % 8));
		if (r && r != 2)
			wrong[me] = r;
		size_t f, t;
		if (cu.cuMemGetInfo_v2(&f, &t) || f > t)
			wrong[me] = -1;
	}
	return NULL;
}

int main(int argc, char **argv) {
	pthread_t threads[THREADS];
	size_t before = 0, after = 0, total;
	int bad = 0;
	unit = (size_t)(argc > 1 && atoi(argv[1]) ? 64 : 2) << 20;
	if (api_load("getproc") || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context))
		return 3;
	cu.cuMemGetInfo_v2(&before, &total);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int tries = 0; tries < 100 && after != before; tries++) {
		cu.cuCtxSynchronize();
		nanosleep(&(struct timespec){0, 20000000}, NULL);
		cu.cuMemGetInfo_v2(&after, &total);
	}
	for (int i = 0; i < THREADS; i++)
		if (wrong[i])
			printf("thread %d: %d\n", i, wrong[i]), bad = 1;
	if (after != before)
		printf("free: %zu before, %zu after\n", before, after), bad = 1;
	return bad;
}
