/* What streams that record allow, with the driver's codes: ends with 0 when all hold, else says which do not. Runs on a real card too. */
#define _GNU_SOURCE
#include "api.h"

#include <pthread.h>
#include <stdio.h>

enum { UNSUPPORTED = 900, INVALIDATED = 901, MERGE = 902, UNMATCHED = 903, UNJOINED = 904, ISOLATION = 905, IMPLICIT = 906, CAPTURED = 907,
       WRONG_THREAD = 908 };

static int failures;
static void *function, *a, *b, *event, *outside;

static void expect(const char *what, int got, int wanted) {
	if (got != wanted) {
		printf("%s: %d, expected %d\n", what, got, wanted);
		failures++;
	}
}

static int launch(void *stream) {
	uint64_t ns = 1000;
	void *params[] = {&ns};
	return cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static void begin(void *stream, int mode) {
	expect("begin", cu.cuStreamBeginCapture_v2(stream, mode), 0);
}

static void end(const char *what, void *stream, int wanted, int nodes) {
	void *graph = NULL;
	size_t count = 0;
	expect(what, cu.cuStreamEndCapture(stream, &graph), wanted);
	if (wanted == 0) {
		cu.cuGraphGetNodes(graph, NULL, &count);
		expect("number of nodes", (int)count, nodes);
		cu.cuGraphDestroy(graph);
	}
}

static void *end_elsewhere(void *unused) {
	(void)unused;
	void *graph;
	return (void *)(intptr_t)cu.cuStreamEndCapture(a, &graph);
}

static int in_thread(void *(*run)(void *)) {
	pthread_t t;
	void *result;
	pthread_create(&t, NULL, run, NULL);
	pthread_join(t, &result);
	return (int)(intptr_t)result;
}

static void *allocate_elsewhere(void *unused) {
	(void)unused;
	CUptr p;
	void *context;
	cu.cuDevicePrimaryCtxRetain(&context, 0);
	cu.cuCtxSetCurrent(context);
	int r = cu.cuMemAlloc_v2(&p, 4096);
	if (!r)
		cu.cuMemFree_v2(p);
	cu.cuDevicePrimaryCtxRelease_v2(0);
	return (void *)(intptr_t)r;
}

int main(void) {
	void *context, *module, *exec, *graph;
	CUptr p;
	int status = -1;
	if (api_load("getproc") || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context)
	    || cu.cuModuleLoadData(&module, spin_ptx) || cu.cuModuleGetFunction(&function, module, "spin_ns") || cu.cuStreamCreate(&a, 1)
	    || cu.cuStreamCreate(&b, 1) || cu.cuEventCreate(&event, 0) || cu.cuEventCreate(&outside, 0))
		return 3;
	expect("the function is loaded", launch(a), 0);
	expect("synchronise", cu.cuCtxSynchronize(), 0);

	begin(a, 0);
	expect("is capturing", cu.cuStreamIsCapturing(a, &status) ? -1 : status, 1);
	expect("launch", launch(a), 0);
	expect("launch", launch(a), 0);
	end("end", a, 0, 2);

	expect("legacy stream", cu.cuStreamBeginCapture_v2(NULL, 0), UNSUPPORTED);
	begin(a, 0);
	expect("begin twice", cu.cuStreamBeginCapture_v2(a, 0), 401);
	end("end", a, 0, 0);
	expect("end without begin", cu.cuStreamEndCapture(a, &graph), 401);

	begin(a, 0);
	expect("synchronise a capturing stream", cu.cuStreamSynchronize(a), UNSUPPORTED);
	end("broken by it", a, INVALIDATED, 0);
	begin(a, 0);
	expect("allocate in global mode", cu.cuMemAlloc_v2(&p, 4096), UNSUPPORTED);
	end("broken by it", a, INVALIDATED, 0);
	begin(a, 0);
	expect("allocate elsewhere in global mode", in_thread(allocate_elsewhere), UNSUPPORTED);
	end("broken by it", a, INVALIDATED, 0);
	begin(a, 1);
	expect("allocate elsewhere in thread mode", in_thread(allocate_elsewhere), 0);
	end("end", a, 0, 0);
	begin(a, 2);
	expect("allocate in relaxed mode", cu.cuMemAlloc_v2(&p, 4096), 0);
	end("end", a, 0, 0);
	cu.cuMemFree_v2(p);
	begin(a, 0);
	int mode = 2;
	cu.cuThreadExchangeStreamCaptureMode(&mode);
	expect("allocate as a relaxed thread", cu.cuMemAlloc_v2(&p, 4096), 0);
	cu.cuThreadExchangeStreamCaptureMode(&mode);
	expect("the mode was relaxed", mode, 2);
	end("end", a, 0, 0);
	cu.cuMemFree_v2(p);

	begin(a, 0);
	launch(a);
	expect("record", cu.cuEventRecord(event, a), 0);
	expect("fork", cu.cuStreamWaitEvent(b, event, 0), 0);
	launch(b);
	cu.cuThreadExchangeStreamCaptureMode(&(int){2});
	expect("a captured event has no state", cu.cuEventQuery(event), CAPTURED);
	cu.cuThreadExchangeStreamCaptureMode(&(int){0});
	expect("end of the wrong stream", cu.cuStreamEndCapture(b, &graph), UNMATCHED);
	expect("after it", cu.cuStreamEndCapture(a, &graph) != 0, 1);

	begin(a, 0);
	launch(a);
	cu.cuEventRecord(event, a);
	cu.cuStreamWaitEvent(b, event, 0);
	launch(b);
	end("a branch left open", a, UNJOINED, 0);
	begin(a, 0);
	launch(a);
	cu.cuEventRecord(event, a);
	cu.cuStreamWaitEvent(b, event, 0);
	launch(b);
	cu.cuEventRecord(event, b);
	expect("join", cu.cuStreamWaitEvent(a, event, 0), 0);
	launch(a);
	end("end", a, 0, 3);

	cu.cuEventRecord(outside, b);
	begin(a, 0);
	launch(a);
	expect("wait for an event from outside", cu.cuStreamWaitEvent(a, outside, 0), ISOLATION);
	end("broken by it", a, INVALIDATED, 0);
	begin(a, 0);
	begin(b, 0);
	launch(a);
	launch(b);
	cu.cuEventRecord(event, b);
	expect("two captures", cu.cuStreamWaitEvent(a, event, 0), MERGE);
	end("broken by it", a, INVALIDATED, 0);
	end("broken by it", b, INVALIDATED, 0);
	begin(a, 0);
	expect("end in another thread", in_thread(end_elsewhere), WRONG_THREAD);
	end("end", a, 0, 0);

	void *blocking;
	cu.cuStreamCreate(&blocking, 0);
	begin(blocking, 0);
	expect("legacy stream beside a blocking one", launch(NULL), IMPLICIT);
	cu.cuStreamEndCapture(blocking, &graph);

	if (cu.cuMemAllocAsync) {
		begin(a, 0);
		expect("allocate in the graph", cu.cuMemAllocAsync(&p, 1 << 20, a), 0);
		launch(a);
		expect("free in the graph", cu.cuMemFreeAsync(p, a), 0);
		expect("end", cu.cuStreamEndCapture(a, &graph), 0);
		expect("instantiate", cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
		cu.cuGraphDestroy(graph);
		expect("launch the graph", cu.cuGraphLaunch(exec, a), 0);
		expect("launch it again", cu.cuGraphLaunch(exec, a), 0);
		expect("synchronise", cu.cuStreamSynchronize(a), 0);
		expect("destroy", cu.cuGraphExecDestroy(exec), 0);
	}
	return failures ? 1 : 0;
}
