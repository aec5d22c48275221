/* The processes on a device. */
#include "nvml.h"

#include <string.h>
#include <time.h>

#define WINDOW_NS 1000000000
#define MAX_LISTED MAX_SLOTS

struct listed { int pid, slot; unsigned long long bytes; unsigned gpu_instance, compute_instance; };

/* The visible processes with a context on the device. */
static unsigned collect(nvmlDevice_t h, struct listed *out) {
	struct state *s = nvml_state();
	unsigned n = 0;
	state_lock(s);
	state_reap(s);
	for (int i = -1; (i = state_next(s, i)) >= 0;) {
		const struct usage *u = &s->slot[i].card[h->card];
		if (!u->contexts || (h->slice >= 0 && !u->slice_bytes[h->slice]))
			continue;
		int pid = state_pid(s, i), slice = -1;
		for (int j = 0; j < nvml_card(h)->slices; j++)
			if (u->slice_bytes[j])
				slice = j;
		if (pid > 0)
			out[n++] = (struct listed){pid, i, h->slice < 0 ? u->bytes : u->slice_bytes[h->slice],
			                           slice < 0 ? 0xffffffff : (unsigned)slice + 1, slice < 0 ? 0xffffffff : 0};
	}
	state_unlock(s);
	return n;
}

/* NVML's way of giving lists: *count is the room there is, and then what there was; too little is an error that tells the need. */
static nvmlReturn_t list(nvmlDevice_t h, unsigned *count, void *infos, size_t size) {
	static _Thread_local struct listed all[MAX_LISTED];
	nvmlReturn_t r = nvml_check(h, count);
	if (r)
		return r;
	unsigned n = collect(h, all), room = *count;
	*count = n;
	if (n == 0)
		return SUCCESS;
	if (room < n || !infos)
		return room < n ? TOO_SMALL : INVALID;
	for (unsigned i = 0; i < n; i++) {
		struct { unsigned pid; unsigned long long bytes; unsigned gpu, compute; } one = {
			(unsigned)all[i].pid, all[i].bytes, all[i].gpu_instance, all[i].compute_instance};
		memcpy((char *)infos + i * size, &one, size);
	}
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t h, unsigned *count, void *out) { return list(h, count, out, 16); }
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t h, unsigned *count, void *out) { return list(h, count, out, 24); }
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t h, unsigned *count, void *out) { return list(h, count, out, 24); }

static nvmlReturn_t none(nvmlDevice_t h, unsigned *count) {
	nvmlReturn_t r = nvml_check(h, count);
	if (!r)
		*count = 0;
	return r;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t h, unsigned *count, void *out) { return (void)out, none(h, count); }
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t h, unsigned *count, void *out) { return (void)out, none(h, count); }
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t h, unsigned *count, void *out) { return (void)out, none(h, count); }
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t h, unsigned *count, void *out) { return (void)out, none(h, count); }
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t h, unsigned *count, void *out) { return (void)out, none(h, count); }
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t h, unsigned *count, void *out) { return (void)out, none(h, count); }

struct detail { unsigned pid; unsigned long long bytes; unsigned gpu, compute; unsigned long long protected_bytes; };
struct detail_list { unsigned version, mode, count; struct detail *entries; };
_Static_assert(sizeof(struct detail) == 32 && sizeof(struct detail_list) == 24, "nvmlProcessDetailList_v1_t");

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t h, struct detail_list *l) {
	static _Thread_local struct listed all[MAX_LISTED];
	nvmlReturn_t r = nvml_check(h, l);
	if (r)
		return r;
	if (l->version != 0x01000018)
		return BAD_VERSION;
	unsigned n = l->mode == 0 ? collect(h, all) : 0, room = l->count;
	l->count = n;
	if (room < n)
		return TOO_SMALL;
	for (unsigned i = 0; i < n && l->entries; i++)
		l->entries[i] = (struct detail){(unsigned)all[i].pid, all[i].bytes, all[i].gpu_instance, all[i].compute_instance, 0};
	return SUCCESS;
}

static unsigned long long wall_us(void) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000;
}

static unsigned share(nvmlDevice_t h, int slot) {
	return (unsigned)(timeline_busy(nvml_state(), h->card, slot, WINDOW_NS) / (WINDOW_NS / 100));
}

struct sample { unsigned pid; unsigned long long at; unsigned sm, memory, encoder, decoder; };
_Static_assert(sizeof(struct sample) == 32, "nvmlProcessUtilizationSample_t");

/* One sample per busy process, made now. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t h, struct sample *out, unsigned *count, unsigned long long since) {
	static _Thread_local struct listed all[MAX_LISTED];
	nvmlReturn_t r = nvml_check(h, count);
	if (r)
		return r;
	if (nvml_card(h)->slices)
		return NOT_SUPPORTED;
	unsigned n = collect(h, all), room = *count, busy = 0;
	unsigned long long now = wall_us();
	if (now <= since)
		return NOT_FOUND;
	for (unsigned i = 0; i < n; i++) {
		unsigned sm = share(h, all[i].slot);
		if (!sm)
			continue;
		if (out && busy < room)
			out[busy] = (struct sample){(unsigned)all[i].pid, now, sm, sm / 2, 0, 0};
		busy++;
	}
	*count = busy;
	if (!busy)
		return NOT_FOUND;
	return room < busy || !out ? TOO_SMALL : SUCCESS;
}

struct info { unsigned long long at; unsigned pid, sm, memory, encoder, decoder, jpeg, ofa; };
struct infos { unsigned version, count; unsigned long long since; struct info *entries; };
_Static_assert(sizeof(struct info) == 40 && sizeof(struct infos) == 24, "nvmlProcessesUtilizationInfo_v1_t");

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t h, struct infos *l) {
	static _Thread_local struct sample samples[MAX_LISTED];
	if (!l)
		return INVALID;
	if (l->version != 0x01000018)
		return BAD_VERSION;
	unsigned n = MAX_LISTED, room = l->count;
	nvmlReturn_t r = nvmlDeviceGetProcessUtilization(h, samples, &n, l->since);
	if (r)
		return r;
	l->count = n;
	if (room < n || !l->entries)
		return TOO_SMALL;
	for (unsigned i = 0; i < n; i++)
		l->entries[i] = (struct info){samples[i].at, samples[i].pid, samples[i].sm, samples[i].memory, 0, 0, 0, 0};
	return SUCCESS;
}

/* Samples of one kind: here the present value of the two utilisations. */
struct value { unsigned long long at; union { unsigned number; unsigned long long bits; } value; };

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t h, int kind, unsigned long long since, int *type, unsigned *count, struct value *out) {
	nvmlReturn_t r = nvml_check(h, type && count ? count : NULL);
	if (r)
		return r;
	if (kind != 1 && kind != 2)
		return NOT_SUPPORTED;
	*type = 1;
	if (!out) {
		*count = 1;
		return SUCCESS;
	}
	if (!*count || wall_us() <= since)
		return *count ? NOT_FOUND : TOO_SMALL;
	out[0] = (struct value){.at = wall_us(), .value.bits = share(h, -1) / (unsigned)kind};
	*count = 1;
	return SUCCESS;
}
