/* MIG: each MIG device here is one compute instance that fills its GPU instance. */
#include "nvml.h"

static bool is_capable(nvmlDevice_t h) {
	return nvml_card(h)->max_slices > 0;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t h, unsigned *now, unsigned *pending) {
	nvmlReturn_t r = nvml_check(h, now && pending ? now : NULL);
	if (r)
		return r;
	if (!is_capable(h))
		return NOT_SUPPORTED;
	*now = *pending = nvml_card(h)->slices > 0;
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t h, unsigned *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (!r)
		*out = (unsigned)nvml_card(h)->max_slices;
	return r;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t h, unsigned index, nvmlDevice_t *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (r)
		return r;
	if (!is_capable(h))
		return NOT_SUPPORTED;
	if (h->slice >= 0 || index >= (unsigned)nvml_card(h)->max_slices)
		return INVALID;
	if (index >= (unsigned)nvml_card(h)->slices)
		return NOT_FOUND;
	*out = nvml_handle(h->card, (int)index);
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t h, unsigned *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (!r)
		*out = h->slice >= 0;
	return r;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t h, nvmlDevice_t *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (r)
		return r;
	if (h->slice < 0)
		return INVALID;
	*out = nvml_handle(h->card, -1);
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t h, unsigned *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (r)
		return r;
	if (h->slice < 0)
		return NOT_SUPPORTED;
	*out = (unsigned)nvml_card(h)->slice[h->slice].gpu_instance;
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t h, unsigned *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (r)
		return r;
	if (h->slice < 0)
		return NOT_SUPPORTED;
	*out = 0;
	return SUCCESS;
}

struct attributes { unsigned sms, copy, decoder, encoder, jpeg, ofa, gpu_slices, compute_slices; unsigned long long memory_mib; };
_Static_assert(sizeof(struct attributes) == 40, "nvmlDeviceAttributes_t");

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t h, struct attributes *out) {
	nvmlReturn_t r = nvml_check(h, out);
	if (r)
		return r;
	if (h->slice < 0)
		return NOT_SUPPORTED;
	const struct slice *s = &nvml_card(h)->slice[h->slice];
	unsigned parts = (unsigned)(s->profile[0] - '0');
	*out = (struct attributes){.sms = (unsigned)s->sms, .copy = parts, .gpu_slices = parts, .compute_slices = parts, .memory_mib = s->memory / MIB};
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t h, struct attributes *out) { return nvmlDeviceGetAttributes_v2(h, out); }
