/* An NVML of two cards that goes wrong in the way that BROKEN names: hang, crash, mismatch, absent, lost, unified. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, UNSUPPORTED = 3, NOT_LOADED = 9, LOST = 15, MISMATCH = 18 };

typedef struct { unsigned long long total, free, used; } memory;

static int is(const char *word)
{
	const char *mode = getenv("BROKEN");
	return mode && strcmp(mode, word) == 0;
}

static int hold(void)
{
	for (;;)
		pause();
	return SUCCESS;
}

static int start(void)
{
	if (is("hang-init"))
		return hold();
	if (is("crash"))
		abort();
	return is("mismatch") ? MISMATCH : is("absent") ? NOT_LOADED : SUCCESS;
}

int nvmlInit_v2(void) { return start(); }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return start(); }
int nvmlShutdown(void) { return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return SUCCESS; }

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
	snprintf(text, size, "580.159.04");
	return SUCCESS;
}

const char *nvmlErrorString(int code)
{
	return code == LOST ? "GPU is lost" : code == MISMATCH ? "Driver/library version mismatch"
	     : code == NOT_LOADED ? "Driver Not Loaded" : "Not Supported";
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
	*handle = (void *)(size_t)(index + 1);
	return is("lost") && index == 1 ? LOST : SUCCESS;
}

int nvmlDeviceGetUUID(void *handle, char *text, unsigned size)
{
	snprintf(text, size, "GPU-00000000-0000-4000-8000-00000000000%zu", (size_t)handle);
	return SUCCESS;
}

int nvmlDeviceGetName(void *handle, char *text, unsigned size)
{
	(void)handle;
	snprintf(text, size, "NVIDIA \xff\xfe A30");
	return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *handle, memory *out)
{
	if (is("hang-card"))
		return hold();
	*out = (memory){ 24ull << 30, 23ull << 30, 1ull << 30 };
	return is("unified") && (size_t)handle == 2 ? UNSUPPORTED : SUCCESS;
}
