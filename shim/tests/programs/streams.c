/* A thousand streams and events, launches on all of them, waits between them, host functions: all as without anybody between. */
#define _GNU_SOURCE
#include "api.h"

#include <stdio.h>

#define N 1000

int main(void) {
	static void *streams[N], *events[N];
	void *context, *module, *function, *exec = NULL, *graph;
	uint64_t ns = 1000;
	void *params[] = {&ns};
	if (api_load("getproc") || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context)
	    || cu.cuModuleLoadData(&module, spin_ptx) || cu.cuModuleGetFunction(&function, module, "spin_ns"))
		return 3;
	int bad = 0;
	for (int i = 0; i < N; i++)
		bad += !!cu.cuStreamCreate(&streams[i], 1) + !!cu.cuEventCreate(&events[i], 0);
	for (int i = 0; i < N; i++) {
		bad += !!cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, streams[i], params, NULL);
		bad += !!cu.cuEventRecord(events[i], streams[i]);
		bad += !!cu.cuStreamWaitEvent(streams[(i + 1) % N], events[i], 0);
	}
	bad += !!cu.cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, streams[0], params);
	if (cu.cuLaunchKernelEx) {
		struct launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .stream = streams[0]};
		bad += !!cu.cuLaunchKernelEx(&l, function, params, NULL);
	}
	if (cu.cuGraphInstantiateWithFlags) {
		bad += !!cu.cuStreamBeginCapture_v2(streams[0], 0);
		bad += !!cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, streams[0], params, NULL);
		bad += !!cu.cuStreamEndCapture(streams[0], &graph);
		bad += !!cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
		bad += !!cu.cuGraphDestroy(graph);
		for (int i = 0; i < N; i++)
			bad += !!cu.cuGraphLaunch(exec, streams[i]);
		bad += !!cu.cuGraphExecDestroy(exec);
	}
	bad += !!cu.cuCtxSynchronize();
	float ms = -1;
	bad += !!cu.cuEventElapsedTime(&ms, events[0], events[N - 1]);
	for (int i = 0; i < N; i++)
		bad += !!cu.cuEventDestroy_v2(events[i]) + !!cu.cuStreamDestroy_v2(streams[i]);
	bad += !!cu.cuModuleUnload(module);
	printf("%d calls failed, %.3f ms\n", bad, (double)ms);
	return bad || ms < 0;
}
