/* What the driver itself says, seen from outside a container: NVML's memory and processes. One line of answer per line read:
 * "USED:PID=BYTES,PID=BYTES" for each card, separated by blanks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct memory { unsigned long long total, free, used; };
struct process { unsigned pid; unsigned long long bytes; };

static int (*init)(void), (*count)(unsigned *), (*handle)(unsigned, void **), (*memory)(void *, struct memory *),
	(*processes)(void *, unsigned *, struct process *);

static void *find(void *library, const char *name) {
	void *p = dlsym(library, name);
	if (!p) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
	return p;
}

int main(void) {
	static struct process list[4096];
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 3;
	}
	*(void **)&init = find(library, "nvmlInit_v2");
	*(void **)&count = find(library, "nvmlDeviceGetCount_v2");
	*(void **)&handle = find(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&memory = find(library, "nvmlDeviceGetMemoryInfo");
	*(void **)&processes = find(library, "nvmlDeviceGetComputeRunningProcesses");
	unsigned cards = 0;
	if (init() || count(&cards))
		return 3;
	for (int c; (c = getchar()) != EOF;) {
		if (c != '\n')
			continue;
		for (unsigned i = 0; i < cards; i++) {
			void *h;
			struct memory m = {0};
			unsigned n = 4096;
			if (handle(i, &h) || memory(h, &m) || processes(h, &n, list))
				return 4;
			printf("%s%llu:", i ? " " : "", m.used);
			for (unsigned j = 0; j < n; j++)
				printf("%s%u=%llu", j ? "," : "", list[j].pid, list[j].bytes);
		}
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
