/* Stands for nvidia-smi (installed under that name): asks NVML and prints a few lines, with whatever arguments. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

struct memory { unsigned long long total, free, used; };

int main(void) {
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *h;
	struct memory m = {0};
	if (!library)
		return 9;
	int (*init)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
	int (*handle)(unsigned, void **) = (int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	int (*memory)(void *, struct memory *) = (int (*)(void *, struct memory *))dlsym(library, "nvmlDeviceGetMemoryInfo");
	int (*shutdown)(void) = (int (*)(void))dlsym(library, "nvmlShutdown");
	if (init() || handle(0, &h) || memory(h, &m))
		return 8;
	printf("%llu MiB / %llu MiB\n", m.used >> 20, m.total >> 20);
	return shutdown();
}
