/* Questions about devices. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

static CUresult check(CUdevice device, const void *out) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out)
		return leave(ERR_VALUE);
	return device >= 0 && device < process.devices ? OK : leave(ERR_DEVICE);
}

CUresult cuDeviceGetCount(int *out) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out)
		return leave(ERR_VALUE);
	*out = process.devices;
	return leave(OK);
}

CUresult cuDeviceGet(CUdevice *out, int ordinal) {
	CUresult r = check(ordinal, out);
	if (r)
		return r;
	*out = ordinal;
	return leave(OK);
}

CUresult cuDeviceGetName(char *out, int size, CUdevice device) {
	CUresult r = check(device, out);
	if (r)
		return r;
	const struct card *c = card_of(device);
	int slice = process.device[device].slice;
	if (size <= 0)
		return leave(ERR_VALUE);
	if (slice < 0)
		snprintf(out, (size_t)size, "%s", c->name);
	else
		snprintf(out, (size_t)size, "%s MIG %s", c->name, c->slice[slice].profile);
	return leave(OK);
}

static void uuid_bytes(const char *text, char out[16]) {
	int n = 0;
	for (const char *p = strchr(text, '-') + 1; *p && n < 16; p++) {
		unsigned byte;
		if (*p != '-' && sscanf(p, "%2x", &byte) == 1) {
			out[n++] = (char)byte;
			p++;
		}
	}
}

CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device) {
	CUresult r = check(device, out);
	if (r)
		return r;
	uuid_bytes(card_of(device)->uuid, out->bytes);
	return leave(OK);
}

/* As cuDeviceGetUuid, but for a MIG device its own UUID. */
CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device) {
	CUresult r = check(device, out);
	if (r)
		return r;
	int slice = process.device[device].slice;
	uuid_bytes(slice < 0 ? card_of(device)->uuid : card_of(device)->slice[slice].uuid, out->bytes);
	return leave(OK);
}

CUresult cuDeviceGetLuid(char *luid, unsigned *mask, CUdevice device) {
	(void)luid, (void)mask, (void)device;
	return ERR_SUPPORTED; /* Windows only */
}

CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice device) {
	CUresult r = check(device, out);
	if (r)
		return r;
	uint64_t free_bytes, total;
	memory_figures(device, &free_bytes, &total);
	*out = total;
	return leave(OK);
}

CUresult cuDeviceGetPCIBusId(char *out, int size, CUdevice device) {
	CUresult r = check(device, out);
	if (r)
		return r;
	if (size < 13)
		return leave(ERR_VALUE);
	snprintf(out, (size_t)size, "0000:%02X:00.0", card_of(device)->pci_bus);
	return leave(OK);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *text) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	unsigned domain, bus, slot, function = 0;
	if (!out || !text || (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3))
		return leave(ERR_VALUE);
	for (int i = 0; i < process.devices; i++)
		if ((unsigned)card_of(i)->pci_bus == bus && domain == 0) {
			*out = i;
			return leave(OK);
		}
	return leave(ERR_DEVICE);
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
	CUresult r = check(device, major && minor ? major : NULL);
	if (r)
		return r;
	*major = card_of(device)->compute / 10;
	*minor = card_of(device)->compute % 10;
	return leave(OK);
}

static CUresult peers(CUdevice a, CUdevice b, const void *out) {
	CUresult r = check(a, out);
	if (r)
		return r;
	return b >= 0 && b < process.devices ? OK : leave(ERR_DEVICE);
}

CUresult cuDeviceCanAccessPeer(int *out, CUdevice a, CUdevice b) {
	CUresult r = peers(a, b, out);
	if (r)
		return r;
	*out = a != b && process.device[a].slice < 0 && process.device[b].slice < 0;
	return leave(OK);
}

CUresult cuDeviceGetP2PAttribute(int *out, int attribute, CUdevice a, CUdevice b) {
	CUresult r = peers(a, b, out);
	if (r)
		return r;
	*out = attribute != 1 && a != b;
	return leave(OK);
}

CUresult cuDeviceGetExecAffinitySupport(int *out, int type, CUdevice device) {
	CUresult r = check(device, out);
	if (r)
		return r;
	(void)type;
	*out = 0;
	return leave(OK);
}

struct value { int attribute, value; };

/* Attributes that are the same for all cards; the rest of 1..150 are 0. */
static const struct value fixed[] = {
	{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152}, {9, 65536}, {10, 32},
	{11, 2147483647}, {12, 65536}, {14, 512}, {15, 1}, {19, 1}, {31, 1}, {32, 1}, {35, 1}, {40, 3}, {41, 1}, {78, 1}, {79, 1}, {80, 1},
	{81, 102400}, {82, 65536}, {83, 1}, {89, 1}, {95, 1}, {97, 101376}, {99, 1}, {101, 1}, {102, 1}, {103, 1}, {106, 32},
};

enum { A_CLOCK = 13, A_SMS = 16, A_INTEGRATED = 18, A_COMPUTE_MODE = 20, A_PCI_BUS = 33, A_MEM_CLOCK = 36, A_BUS_WIDTH = 37, A_L2 = 38,
       A_THREADS = 39, A_MAJOR = 75, A_MINOR = 76, A_MEM_POOLS = 115, A_VMM = 102, A_POOL_HANDLES = 119 };

CUresult cuDeviceGetAttribute(int *out, int attribute, CUdevice device) {
	CUresult r = check(device, out);
	if (r)
		return r;
	const struct card *c = card_of(device);
	int slice = process.device[device].slice, cuda = driver_get()->cuda;
	if (attribute < 1 || attribute > 150)
		return leave(ERR_VALUE);
	*out = 0;
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (fixed[i].attribute == attribute)
			*out = fixed[i].value;
	switch (attribute) {
	case A_CLOCK: *out = c->mhz * 1000; break;
	case A_SMS: *out = slice < 0 ? c->sms : c->slice[slice].sms; break;
	case A_PCI_BUS: *out = c->pci_bus; break;
	case A_MEM_CLOCK: *out = c->memory_mhz * 1000; break;
	case A_BUS_WIDTH: *out = c->bus_bits; break;
	case A_L2: *out = 4194304; break;
	case A_THREADS: *out = c->compute == 75 ? 1024 : 2048; break;
	case A_MAJOR: *out = c->compute / 10; break;
	case A_MINOR: *out = c->compute % 10; break;
	case A_VMM: *out = c->compute >= 60; break;
	case A_MEM_POOLS: *out = cuda >= 11020 && c->compute >= 60; break;
	case A_POOL_HANDLES: *out = cuda >= 11020 && c->compute >= 60 ? 1 : 0; break;
	default: break;
	}
	return leave(OK);
}

CUresult cuDeviceGetProperties(int *out, CUdevice device) {
	CUresult r = check(device, out);
	if (r)
		return r;
	const int values[14] = {1024, 1024, 1024, 64, 2147483647, 65535, 65535, 49152, 65536, 32, 2147483647, 65536,
	                        card_of(device)->mhz * 1000, 512};
	memcpy(out, values, sizeof values);
	return leave(OK);
}
