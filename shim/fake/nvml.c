/* The library's start and end, what it says of the system, and how a device is named. */
#define _GNU_SOURCE
#include "nvml.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic int references;
static struct handle handles[MAX_CARDS][MAX_SLICES + 1];

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
	(void)flags;
	if (!cards_get()->count)
		return NOT_LOADED;
	if (!state_get())
		return UNKNOWN;
	for (int c = 0; c < MAX_CARDS; c++)
		for (int s = 0; s <= MAX_SLICES; s++)
			handles[c][s] = (struct handle){c, s - 1};
	references++;
	return SUCCESS;
}

nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

nvmlReturn_t nvmlShutdown(void) {
	if (references <= 0)
		return UNINITIALIZED;
	references--;
	return SUCCESS;
}

nvmlReturn_t nvml_ready(void) {
	return references > 0 ? SUCCESS : UNINITIALIZED;
}

nvmlDevice_t nvml_handle(int card, int slice) {
	return &handles[card][slice + 1];
}

nvmlReturn_t nvml_check(nvmlDevice_t handle, const void *out) {
	if (nvml_ready())
		return UNINITIALIZED;
	uintptr_t at = (uintptr_t)handle - (uintptr_t)handles;
	if (!out || at >= sizeof handles || at % sizeof **handles || handle->card >= cards_get()->count
	    || handle->slice >= nvml_card(handle)->slices)
		return INVALID;
	return SUCCESS;
}

const struct card *nvml_card(nvmlDevice_t handle) {
	return &cards_get()->card[handle->card];
}

struct state *nvml_state(void) {
	return state_get();
}

nvmlReturn_t nvml_text(char *out, unsigned size, const char *text) {
	if (!out)
		return INVALID;
	if (size <= strlen(text))
		return TOO_SMALL;
	strcpy(out, text);
	return SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t code) {
	static const struct { int code; const char *text; } texts[] = {
		{SUCCESS, "Success"}, {UNINITIALIZED, "Uninitialized"}, {INVALID, "Invalid Argument"}, {NOT_SUPPORTED, "Not Supported"},
		{NO_PERMISSION, "Insufficient Permissions"}, {NOT_FOUND, "Not Found"}, {TOO_SMALL, "Insufficient Size"},
		{NOT_LOADED, "Driver Not Loaded"}, {NO_FUNCTION, "Function Not Found"}, {BAD_VERSION, "Argument Version Mismatch"},
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].code == code)
			return texts[i].text;
	return "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned size) {
	return nvml_ready() ? UNINITIALIZED : nvml_text(out, size, driver_get()->version);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *out, unsigned size) {
	char text[32];
	snprintf(text, sizeof text, "%d.%s", driver_get()->cuda / 1000, driver_get()->version);
	return nvml_text(out, size, text);
}

nvmlReturn_t nvmlSystemGetDriverBranch(void *info, unsigned length) {
	struct { unsigned version; char branch[80]; } *out = info;
	if (!out || length < sizeof out->branch)
		return INVALID;
	snprintf(out->branch, sizeof out->branch, "r%.3s_00", driver_get()->version);
	return SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *out) {
	if (!out)
		return INVALID;
	*out = driver_get()->cuda;
	return SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *out) { return nvmlSystemGetCudaDriverVersion(out); }

nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length) {
	char path[64], target[PATH_MAX];
	if (nvml_ready())
		return UNINITIALIZED;
	if (!name || !length)
		return INVALID;
	snprintf(path, sizeof path, "/proc/%u/exe", pid);
	ssize_t n = readlink(path, target, sizeof target - 1);
	if (n < 0)
		return NOT_FOUND;
	target[n] = 0;
	snprintf(name, length, "%s", target);
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *out) {
	if (nvml_ready() || !out)
		return out ? UNINITIALIZED : INVALID;
	*out = (unsigned)cards_get()->count;
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned *out) { return nvmlDeviceGetCount_v2(out); }

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *out) {
	if (nvml_ready())
		return UNINITIALIZED;
	if (!out || index >= (unsigned)cards_get()->count)
		return INVALID;
	*out = nvml_handle((int)index, -1);
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out) {
	const struct cards *c = cards_get();
	if (nvml_ready())
		return UNINITIALIZED;
	if (!uuid || !out)
		return INVALID;
	for (int i = 0; i < c->count; i++) {
		if (!strcmp(c->card[i].uuid, uuid)) {
			*out = nvml_handle(i, -1);
			return SUCCESS;
		}
		for (int j = 0; j < c->card[i].slices; j++)
			if (!strcmp(c->card[i].slice[j].uuid, uuid)) {
				*out = nvml_handle(i, j);
				return SUCCESS;
			}
	}
	return NOT_FOUND;
}

struct uuid_v1 { unsigned version, type; char text[41]; };

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const struct uuid_v1 *u, nvmlDevice_t *out) {
	if (!u || u->type != 1)
		return u ? NOT_SUPPORTED : INVALID;
	return nvmlDeviceGetHandleByUUID(u->text, out);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *out) {
	if (nvml_ready())
		return UNINITIALIZED;
	for (int i = 0; serial && out && i < cards_get()->count; i++)
		if (!strcmp(cards_get()->card[i].serial, serial)) {
			*out = nvml_handle(i, -1);
			return SUCCESS;
		}
	return serial && out ? NOT_FOUND : INVALID;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *out) {
	unsigned domain, bus, device;
	if (nvml_ready())
		return UNINITIALIZED;
	if (!id || !out || (sscanf(id, "%x:%x:%x", &domain, &bus, &device) != 3))
		return INVALID;
	for (int i = 0; i < cards_get()->count; i++)
		if ((unsigned)cards_get()->card[i].pci_bus == bus && domain == 0) {
			*out = nvml_handle(i, -1);
			return SUCCESS;
		}
	return NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *out) { return nvmlDeviceGetHandleByPciBusId_v2(id, out); }
