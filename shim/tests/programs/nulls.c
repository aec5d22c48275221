/* Calls with outputs missing and arguments wrong; prints each result code. The codes must not depend on who stands between. */
#include "api.h"

#include <stdio.h>

static void say(const char *what, CUresult r) {
	printf("%s %d\n", what, r);
}

int main(void) {
	void *context, *object;
	CUptr p;
	size_t n;
	unsigned long long h;
	if (api_load("dlsym"))
		return 3;
	say("alloc before init", cu.cuMemAlloc_v2(&p, 4096));
	say("info before init", cu.cuMemGetInfo_v2(&n, &n));
	say("total before init", cu.cuDeviceTotalMem_v2(&n, 0));
	say("retain before init", cu.cuDevicePrimaryCtxRetain(&context, 0));
	say("free before init", cu.cuMemFree_v2(4096));
	say("init flags", cu.cuInit(7));
	say("init", cu.cuInit(0));
	say("alloc without context", cu.cuMemAlloc_v2(&p, 4096));
	say("info without context", cu.cuMemGetInfo_v2(&n, &n));
	say("info without context, null", cu.cuMemGetInfo_v2(NULL, NULL));
	say("pitch without context", cu.cuMemAllocPitch_v2(&p, &n, 64, 64, 4));
	say("total of no device", cu.cuDeviceTotalMem_v2(&n, 99));
	say("total of a negative device", cu.cuDeviceTotalMem_v2(&n, -1));
	say("total null", cu.cuDeviceTotalMem_v2(NULL, 0));
	say("retain null", cu.cuDevicePrimaryCtxRetain(NULL, 0));
	say("retain no device", cu.cuDevicePrimaryCtxRetain(&context, 99));
	say("create null", cu.cuCtxCreate_v2(NULL, 0, 0));
	say("release too often", cu.cuDevicePrimaryCtxRelease_v2(0));
	say("reset no device", cu.cuDevicePrimaryCtxReset_v2(99));
	say("retain", cu.cuDevicePrimaryCtxRetain(&context, 0));
	say("current", cu.cuCtxSetCurrent(context));
	say("alloc null", cu.cuMemAlloc_v2(NULL, 4096));
	say("alloc nothing", cu.cuMemAlloc_v2(&p, 0));
	say("alloc null, too much", cu.cuMemAlloc_v2(NULL, (size_t)1 << 50));
	say("alloc the address space", cu.cuMemAlloc_v2(&p, ~(size_t)0));
	say("pitch null", cu.cuMemAllocPitch_v2(NULL, &n, 64, 64, 4));
	say("pitch null pitch", cu.cuMemAllocPitch_v2(&p, NULL, 64, 64, 4));
	say("pitch element", cu.cuMemAllocPitch_v2(&p, &n, 64, 64, 3));
	say("pitch overflow", cu.cuMemAllocPitch_v2(&p, &n, ~(size_t)0 / 2, 1024, 4));
	say("managed null", cu.cuMemAllocManaged(NULL, 4096, 1));
	say("managed flags", cu.cuMemAllocManaged(&p, 4096, 9));
	say("free null", cu.cuMemFree_v2(0));
	say("array null", cu.cuArrayCreate_v2(NULL, NULL));
	say("array no descriptor", cu.cuArrayCreate_v2(&object, NULL));
	say("array of nothing", cu.cuArrayCreate_v2(&object, &(struct array2d){0, 0, 0x20, 1}));
	say("array of what", cu.cuArrayCreate_v2(&object, &(struct array2d){16, 16, 0x77, 1}));
	say("array3d no descriptor", cu.cuArray3DCreate_v2(&object, NULL));
	say("mipmap null", cu.cuMipmappedArrayCreate(NULL, NULL, 3));
	say("create null", cu.cuMemCreate(NULL, 2 << 20, &(struct physical_prop){.type = 1, .place = {1, 0}}, 0));
	say("create no properties", cu.cuMemCreate(&h, 2 << 20, NULL, 0));
	say("create size", cu.cuMemCreate(&h, 12345, &(struct physical_prop){.type = 1, .place = {1, 0}}, 0));
	say("create no device", cu.cuMemCreate(&h, 2 << 20, &(struct physical_prop){.type = 1, .place = {1, 77}}, 0));
	say("create nowhere", cu.cuMemCreate(&h, 2 << 20, &(struct physical_prop){.type = 1, .place = {99, 0}}, 0));
	say("create type", cu.cuMemCreate(&h, 2 << 20, &(struct physical_prop){.type = 9, .place = {1, 0}}, 0));
	say("release nothing", cu.cuMemRelease(0));
	say("unmap nothing", cu.cuMemUnmap(2 << 20, 2 << 20));
	say("launch nothing", cu.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	say("synchronise no stream", cu.cuStreamSynchronize((void *)context));
	say("close what is no import", cu.cuIpcCloseMemHandle(2 << 20));
	say("export nothing", cu.cuIpcGetMemHandle(NULL, 0));
	if (cu.cuMemAllocAsync) {
		say("async null", cu.cuMemAllocAsync(NULL, 4096, NULL));
		say("async nothing", cu.cuMemAllocAsync(&p, 0, NULL));
		say("async no stream", cu.cuMemAllocAsync(&p, 4096, (void *)context));
		say("free async null", cu.cuMemFreeAsync(0, NULL));
		say("pool null", cu.cuMemPoolCreate(NULL, NULL));
		say("pool no properties", cu.cuMemPoolCreate(&object, NULL));
		say("from no pool", cu.cuMemAllocFromPoolAsync(&p, 4096, NULL, NULL));
		say("destroy no pool", cu.cuMemPoolDestroy(NULL));
		say("attribute of no pool", cu.cuMemPoolSetAttribute(NULL, 4, &(uint64_t){0}));
	}
	if (cu.cuGraphAddMemAllocNode) {
		say("node without graph", cu.cuGraphAddMemAllocNode(&object, NULL, NULL, 0, NULL));
		say("launch no graph", cu.cuGraphLaunch(NULL, NULL));
		say("destroy no graph", cu.cuGraphDestroy(NULL));
		say("trim no device", cu.cuDeviceGraphMemTrim(77));
	}
	if (cu.cuGetProcAddress_v2) {
		int status = -1;
		say("getproc null", cu.cuGetProcAddress_v2(NULL, &object, 12000, 0, &status));
		say("getproc no output", cu.cuGetProcAddress_v2("cuInit", NULL, 12000, 0, &status));
		say("getproc empty", cu.cuGetProcAddress_v2("", &object, 0, 0, NULL));
		say("getproc suffix", cu.cuGetProcAddress_v2("cuMemAlloc_v2", &object, 12000, 0, &status));
		say("its status", status);
		say("getproc flags", cu.cuGetProcAddress_v2("cuInit", &object, 12000, 64, &status));
		say("getproc too new", cu.cuGetProcAddress_v2("cuMemAllocAsync", &object, 5000, 0, &status));
		say("its status", status);
	}
	return 0;
}
