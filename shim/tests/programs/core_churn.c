/* Threads that launch into their own default streams, shared ones and short-lived ones, and contexts that come and go, all
 * under a core limit. Ends with 0. */
#define _GNU_SOURCE
#include "api.h"

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 6, ROUNDS = 40 };

static void *primary, *function, *shared;
static int failures;

static int launch(void *f, void *stream, uint64_t ns) {
	void *params[] = {&ns};
	return cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static void expect(const char *what, int got) {
	if (got)
		printf("%s: %d\n", what, got), failures++;
}

static void *work(void *arg) {
	intptr_t number = (intptr_t)arg;
	cu.cuCtxSetCurrent(primary);
	for (int round = 0; round < ROUNDS; round++) {
		void *stream, *context, *module, *own;
		expect("create", cu.cuStreamCreate(&stream, round % 2));
		for (int i = 0; i < 10; i++) {
			expect("own", launch(function, stream, 20000));
			expect("per thread", launch(function, (void *)2, 10000));
			expect("legacy", launch(function, NULL, 10000));
			expect("shared", launch(function, shared, 5000));
		}
		if (number % 2)
			expect("synchronize", cu.cuStreamSynchronize(stream));
		expect("destroy", cu.cuStreamDestroy_v2(stream));
		if (round % 10 || number % 3)
			continue;
		expect("context", cu.cuCtxCreate_v2(&context, 0, 0));
		expect("module", cu.cuModuleLoadData(&module, spin_ptx));
		expect("function", cu.cuModuleGetFunction(&own, module, "spin_ns"));
		for (int i = 0; i < 50; i++)
			expect("in a context of its own", launch(own, NULL, 20000));
		expect("end", cu.cuCtxDestroy_v2(context));
		cu.cuCtxSetCurrent(primary);
	}
	return NULL;
}

int main(int argc, char **argv) {
	void *module;
	pthread_t threads[THREADS];
	if (api_load(argc > 1 ? argv[1] : "getproc") || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&primary, 0) || cu.cuCtxSetCurrent(primary))
		return 2;
	cu.cuModuleLoadData(&module, spin_ptx);
	cu.cuModuleGetFunction(&function, module, "spin_ns");
	cu.cuStreamCreate(&shared, 1);
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	expect("all", cu.cuCtxSynchronize());
	return failures ? 1 : 0;
}
