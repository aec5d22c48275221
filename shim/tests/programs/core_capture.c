/* Captures while the core limit works in other threads and streams: ends with 0 when every capture comes out whole, with
 * just the nodes that were launched into it. An event of the library's own in a capturing stream would add a node, a question
 * about one would break the capture. */
#define _GNU_SOURCE
#include "api.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ROUNDS = 24, NODES = 5, THREADS = 2 };

static void *context, *function;
static atomic_int stop;

static int launch(void *stream, uint64_t ns) {
	void *params[] = {&ns};
	return cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static void *load(void *arg) {
	void *stream;
	cu.cuCtxSetCurrent(context);
	cu.cuStreamCreate(&stream, 1);
	for (uint64_t i = 0; !stop; i++)
		launch(stream, arg ? 30000 : 300000 + i % 7 * 1000);
	return NULL;
}

int main(int argc, char **argv) {
	void *module, *a, *b, *event, *graph, *exec;
	pthread_t threads[THREADS];
	int failures = 0;
	if (api_load(argc > 1 ? argv[1] : "getproc") || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context))
		return 2;
	cu.cuModuleLoadData(&module, spin_ptx);
	cu.cuModuleGetFunction(&function, module, "spin_ns");
	cu.cuStreamCreate(&a, 1);
	cu.cuStreamCreate(&b, 1);
	cu.cuEventCreate(&event, 0);
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, load, (void *)i);
	for (int round = 0; round < ROUNDS; round++) {
		size_t count = 0;
		for (int i = 0; i < 20; i++) /* leaves a segment open */
			launch(a, 20000), launch(b, 20000);
		int r = cu.cuStreamBeginCapture_v2(a, round % 3);
		for (int i = 0; !r && i < NODES - 1; i++)
			r = launch(a, 5000);
		r = r ? r : cu.cuEventRecord(event, a);
		r = r ? r : cu.cuStreamWaitEvent(b, event, 0); /* b captures from here on */
		r = r ? r : launch(b, 5000);
		r = r ? r : cu.cuEventRecord(event, b);
		r = r ? r : cu.cuStreamWaitEvent(a, event, 0);
		r = r ? r : cu.cuStreamEndCapture(a, &graph);
		if (!r)
			cu.cuGraphGetNodes(graph, NULL, &count);
		if (r || count != NODES) {
			printf("round %d: code %d, %zu nodes\n", round, r, count);
			failures++;
			continue;
		}
		r = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
		for (int i = 0; !r && i < 3; i++)
			r = cu.cuGraphLaunch(exec, a);
		r = r ? r : cu.cuStreamSynchronize(a);
		if (r)
			printf("round %d: launch %d\n", round, r), failures++;
		cu.cuGraphExecDestroy(exec);
		cu.cuGraphDestroy(graph);
	}
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return failures ? 1 : 0;
}
