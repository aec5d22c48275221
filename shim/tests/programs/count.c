/* NVML's way of giving lists, with too little room, no room and enough: the same as without anybody between. Needs one process on
 * the card, which is this one. */
#define _GNU_SOURCE
#include "api.h"

#include <dlfcn.h>
#include <stdio.h>

struct process { unsigned pid; unsigned long long bytes; unsigned gpu, compute; };

static int failures;

static void expect(const char *what, long long got, long long wanted) {
	if (got != wanted) {
		printf("%s: %lld, expected %lld\n", what, got, wanted);
		failures++;
	}
}

int main(void) {
	void *context, *h, *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	struct process list[8] = {0};
	unsigned n;
	if (!library || api_load("getproc") || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0))
		return 3;
	int (*init)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
	int (*handle)(unsigned, void **) = (int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	int (*get)(void *, unsigned *, struct process *) =
		(int (*)(void *, unsigned *, struct process *))dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
	int (*memory)(void *, void *) = (int (*)(void *, void *))dlsym(library, "nvmlDeviceGetMemoryInfo");
	int (*shutdown)(void) = (int (*)(void))dlsym(library, "nvmlShutdown");
	if (init() || handle(0, &h))
		return 3;
	n = 0;
	expect("no room", get(h, &n, NULL), 7);
	expect("the need", n, 1);
	n = 0;
	expect("no room, with an array", get(h, &n, list), 7);
	expect("untouched", list[0].pid, 0);
	n = 8;
	expect("room", get(h, &n, list), 0);
	expect("how many", n, 1);
	expect("bytes", list[0].bytes > 1 << 20, 1);
	expect("nothing behind it", list[1].pid, 0);
	expect("no count", get(h, NULL, list), 2);
	expect("no handle", get(NULL, &n, list), 2);
	expect("memory without output", memory(h, NULL), 2);
	expect("shutdown", shutdown(), 0);
	return failures ? 1 : 0;
}
