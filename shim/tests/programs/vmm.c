/* Physical memory by handle: it is the card's until the last handle and the last mapping are gone, in whatever order. */
#define _GNU_SOURCE
#include "api.h"

#include <stdio.h>

#define SIZE ((size_t)256 << 20)

static int failures;

static void expect(const char *what, long long got, long long wanted) {
	if (got != wanted) {
		printf("%s: %lld, expected %lld\n", what, got, wanted);
		failures++;
	}
}

static long long used(void) {
	static size_t first;
	size_t f, t;
	cu.cuMemGetInfo_v2(&f, &t);
	if (!first)
		first = f;
	return (long long)first - (long long)f;
}

int main(void) {
	void *context;
	unsigned long long handle, again, imported;
	CUptr a, b;
	int file = -1;
	struct physical_prop p = {.type = 1, .handle_types = 1, .place = {1, 0}};
	struct access rw = {{1, 0}, 3};
	if (api_load("getproc") || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context))
		return 3;
	used();
	expect("reserve", cu.cuMemAddressReserve(&a, 2 * SIZE, 0, 0, 0), 0);
	expect("reserve", cu.cuMemAddressReserve(&b, SIZE, 0, 0, 0), 0);
	expect("addresses cost nothing", used(), 0);

	expect("create", cu.cuMemCreate(&handle, SIZE, &p, 0), 0);
	expect("charged when created", used(), SIZE);
	expect("map", cu.cuMemMap(a, SIZE, 0, handle, 0), 0);
	expect("access", cu.cuMemSetAccess(a, SIZE, &rw, 1), 0);
	expect("a mapping costs nothing", used(), SIZE);
	expect("release", cu.cuMemRelease(handle), 0);
	expect("the mapping keeps it", used(), SIZE);
	expect("unmap", cu.cuMemUnmap(a, SIZE), 0);
	expect("gone with the mapping", used(), 0);

	expect("create", cu.cuMemCreate(&handle, SIZE, &p, 0), 0);
	expect("map", cu.cuMemMap(a, SIZE, 0, handle, 0), 0);
	expect("map twice", cu.cuMemMap(b, SIZE, 0, handle, 0), 0);
	expect("one more handle", cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)a), 0);
	expect("release", cu.cuMemRelease(handle), 0);
	expect("unmap", cu.cuMemUnmap(a, SIZE), 0);
	expect("unmap", cu.cuMemUnmap(b, SIZE), 0);
	expect("the second reference keeps it", used(), SIZE);
	expect("release", cu.cuMemRelease(again), 0);
	expect("gone with the reference", used(), 0);

	unsigned long long half[2];
	for (int i = 0; i < 2; i++) {
		expect("create", cu.cuMemCreate(&half[i], SIZE, &p, 0), 0);
		expect("map", cu.cuMemMap(a + i * SIZE, SIZE, 0, half[i], 0), 0);
		expect("release", cu.cuMemRelease(half[i]), 0);
	}
	expect("both", used(), 2 * SIZE);
	expect("one call unmaps both", cu.cuMemUnmap(a, 2 * SIZE), 0);
	expect("both gone", used(), 0);

	expect("create", cu.cuMemCreate(&handle, SIZE, &p, 0), 0);
	expect("export", cu.cuMemExportToShareableHandle(&file, handle, 1, 0), 0);
	expect("import", cu.cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)file, 1), 0);
	expect("an import costs nothing", used(), SIZE);
	expect("map it", cu.cuMemMap(b, SIZE, 0, imported, 0), 0);
	expect("unmap it", cu.cuMemUnmap(b, SIZE), 0);
	expect("release the import", cu.cuMemRelease(imported), 0);
	expect("the owner still has it", used(), SIZE);
	expect("release", cu.cuMemRelease(handle), 0);
	expect("gone", used(), 0);
	expect("release again", cu.cuMemRelease(handle), 1);
	expect("free the addresses", cu.cuMemAddressFree(a, 2 * SIZE), 0);
	expect("free the addresses", cu.cuMemAddressFree(b, SIZE), 0);
	return failures ? 1 : 0;
}
