/* What NVML says of one device. */
#include "nvml.h"

#include "clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define WINDOW_NS 1000000000 /* utilisation is of the last second */

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t h, char *out, unsigned size) {
	nvmlReturn_t r = nvml_check(h, out);
	char name[96];
	if (r)
		return r;
	if (h->slice < 0)
		return nvml_text(out, size, nvml_card(h)->name);
	snprintf(name, sizeof name, "%s MIG %s", nvml_card(h)->name, nvml_card(h)->slice[h->slice].profile);
	return nvml_text(out, size, name);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t h, char *out, unsigned size) {
	nvmlReturn_t r = nvml_check(h, out);
	if (r)
		return r;
	return nvml_text(out, size, h->slice < 0 ? nvml_card(h)->uuid : nvml_card(h)->slice[h->slice].uuid);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t h, char *out, unsigned size) {
	nvmlReturn_t r = nvml_check(h, out);
	return r ? r : nvml_text(out, size, nvml_card(h)->serial);
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t h, char *out, unsigned size) {
	nvmlReturn_t r = nvml_check(h, out);
	return r ? r : nvml_text(out, size, "90.00.00.00.01");
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t h, unsigned *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (!r)
		*out = (unsigned)(h->slice < 0 ? h->card : h->slice);
	return r;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t h, unsigned *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (!r)
		*out = (unsigned)h->card;
	return r;
}

struct pci { char legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char id[32]; };
_Static_assert(sizeof(struct pci) == 68, "nvmlPciInfo_t");

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t h, struct pci *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (r)
		return r;
	const struct card *c = nvml_card(h);
	*out = (struct pci){.bus = (unsigned)c->pci_bus, .device_id = (unsigned)c->pci_device << 16 | 0x10de, .subsystem_id = 0x10de};
	snprintf(out->legacy, sizeof out->legacy, "0000:%02X:00.0", c->pci_bus);
	snprintf(out->id, sizeof out->id, "00000000:%02X:00.0", c->pci_bus);
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t h, struct pci *out) { return nvmlDeviceGetPciInfo_v3(h, out); }
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t h, struct pci *out) { return nvmlDeviceGetPciInfo_v3(h, out); }

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
_Static_assert(sizeof(struct memory_v2) == 40, "nvmlMemory_v2_t");
#define MEMORY_V2 0x02000028u

static uint64_t used_of(nvmlDevice_t h) {
	struct state *s = nvml_state();
	uint64_t sum = 0;
	state_lock(s);
	state_reap(s);
	for (int i = -1; (i = state_next(s, i)) >= 0;)
		sum += h->slice < 0 ? s->slot[i].card[h->card].bytes : s->slot[i].card[h->card].slice_bytes[h->slice];
	state_unlock(s);
	return sum;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t h, struct memory_v2 *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (r)
		return r;
	if (out->version != MEMORY_V2)
		return BAD_VERSION;
	const struct card *c = nvml_card(h);
	out->total = h->slice < 0 ? c->memory : c->slice[h->slice].memory;
	out->reserved = h->slice < 0 ? c->reserved : 0;
	out->used = used_of(h);
	out->free = out->total - out->reserved - out->used;
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t h, struct memory *out) {
	struct memory_v2 m = {.version = MEMORY_V2};
	nvmlReturn_t r = nvmlDeviceGetMemoryInfo_v2(h, out ? &m : NULL);
	if (!r)
		*out = (struct memory){m.total, m.free, m.used + m.reserved};
	return r;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t h, struct memory *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (!r)
		*out = (struct memory){256 * MIB, 254 * MIB, 2 * MIB};
	return r;
}

struct rates { unsigned gpu, memory; };

static unsigned busy_percent(nvmlDevice_t h) {
	return (unsigned)(timeline_busy(nvml_state(), h->card, -1, WINDOW_NS) / (WINDOW_NS / 100));
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t h, struct rates *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (r)
		return r;
	if (nvml_card(h)->slices)
		return NOT_SUPPORTED;
	out->gpu = busy_percent(h);
	out->memory = out->gpu / 2;
	return SUCCESS;
}

static nvmlReturn_t idle_engine(nvmlDevice_t h, unsigned *out, unsigned *period) {
	nvmlReturn_t r = nvml_check(h, out);
	if (r)
		return r;
	*out = 0;
	if (period)
		*period = 100000;
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t h, unsigned *out, unsigned *period) { return idle_engine(h, out, period); }
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t h, unsigned *out, unsigned *period) { return idle_engine(h, out, period); }

static nvmlReturn_t number(nvmlDevice_t h, unsigned *out, unsigned value) {
	nvmlReturn_t r = nvml_check(h, out);
	if (!r)
		*out = value;
	return r;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t h, int sensor, unsigned *out) {
	return sensor ? INVALID : number(h, out, out && !nvml_check(h, out) ? 35 + busy_percent(h) / 3 : 0);
}

struct temperature { unsigned version; int sensor, celsius; };

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t h, struct temperature *out) {
	if (out && out->version != 0x0100000c)
		return BAD_VERSION;
	return nvmlDeviceGetTemperature(h, out ? out->sensor : 0, out ? (unsigned *)&out->celsius : NULL);
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t h, int which, unsigned *out) {
	static const unsigned celsius[] = {95, 92};
	return which < 0 || which > 1 ? NOT_SUPPORTED : number(h, out, celsius[which]);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t h, unsigned *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (!r)
		*out = (unsigned)nvml_card(h)->watts * (100 + 8 * busy_percent(h));
	return r;
}

static unsigned milliwatts(nvmlDevice_t h) {
	return nvml_check(h, h) ? 0 : (unsigned)nvml_card(h)->watts * 1000;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t h, unsigned *out) { return number(h, out, milliwatts(h)); }
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t h, unsigned *out) { return number(h, out, milliwatts(h)); }
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t h, unsigned *out) { return number(h, out, milliwatts(h)); }

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t h, unsigned *low, unsigned *high) {
	nvmlReturn_t r = number(h, low, milliwatts(h) / 3);
	return r ? r : number(h, high, milliwatts(h));
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t h, int which, unsigned *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (r)
		return r;
	if (which < 0 || which > 3)
		return INVALID;
	*out = (unsigned)(which == 2 ? nvml_card(h)->memory_mhz : nvml_card(h)->mhz);
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t h, int which, unsigned *out) { return nvmlDeviceGetClockInfo(h, which, out); }
nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t h, int which, int id, unsigned *out) {
	(void)id;
	return nvmlDeviceGetClockInfo(h, which, out);
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t h, int which, unsigned *out) { return nvmlDeviceGetClockInfo(h, which, out); }
nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t h, int which, unsigned *out) { return nvmlDeviceGetClockInfo(h, which, out); }

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t h, unsigned *out) { return number(h, out, 0); }
nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t h, unsigned *out) { return number(h, out, 0); }
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t h, unsigned *out) { return number(h, out, 1); }
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t h, unsigned *out) { return number(h, out, 0); }
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t h, unsigned *out) { return number(h, out, 0); }
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t h, unsigned *out) { return number(h, out, 0); }
nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t h, unsigned *out) { return number(h, out, 0); }
nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t h, unsigned *out) { return number(h, out, 0); }
nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t h, unsigned *out) { return number(h, out, 256); }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t h, unsigned *out) { return number(h, out, 4); }
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t h, unsigned *out) { return number(h, out, 4); }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t h, unsigned *out) { return number(h, out, 16); }
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t h, unsigned *out) { return number(h, out, 16); }
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t h, unsigned *out) { return number(h, out, 0); }
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t h, int counter, unsigned *out) { return (void)counter, number(h, out, 0); }
nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t h, unsigned *out) {
	return number(h, out, nvml_check(h, h) ? 0 : (unsigned)nvml_card(h)->bus_bits);
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t h, unsigned *out) {
	return number(h, out, nvml_check(h, h) ? 0 : (unsigned)nvml_card(h)->sms * 64);
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t h, unsigned *out) { return number(h, out, 0); }

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t h, unsigned *out) {
	static const struct { int compute; unsigned architecture; } known[] = {{100, 10}, {90, 9}, {89, 8}, {80, 7}, {75, 6}, {70, 5}, {60, 4}, {50, 3}, {30, 2}};
	nvmlReturn_t r = nvml_check(h, out);
	for (size_t i = 0; !r && i < sizeof known / sizeof *known; i++)
		if (nvml_card(h)->compute >= known[i].compute) {
			*out = known[i].architecture;
			break;
		}
	return r;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t h, int *major, int *minor) {
	nvmlReturn_t r = nvml_check(h, major && minor ? major : NULL);
	if (!r) {
		*major = nvml_card(h)->compute / 10;
		*minor = nvml_card(h)->compute % 10;
	}
	return r;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t h, unsigned *now, unsigned *pending) {
	nvmlReturn_t r = number(h, now, 1);
	return r ? r : number(h, pending, 1);
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t h, int type, int counter, unsigned long long *out) {
	(void)type, (void)counter;
	nvmlReturn_t r = nvml_check(h, out);
	if (!r)
		*out = 0;
	return r;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t h, unsigned long long *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (!r)
		*out = (unsigned long long)(clock_now() / 1000000000) * (unsigned)nvml_card(h)->watts * 100;
	return r;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t h, unsigned long long *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (!r)
		*out = 0;
	return r;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t h, unsigned long long *out) {
	return nvmlDeviceGetCurrentClocksThrottleReasons(h, out);
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, int *out) {
	nvmlReturn_t r = nvml_check(a, out);
	if (!r)
		r = nvml_check(b, out);
	if (!r)
		*out = a == b ? 0 : 30; /* host bridge */
	return r;
}
