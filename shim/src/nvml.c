/* NVML as the container sees it: its limits, its own processes. The real function always answers first. */
#include "busy.h"
#include "card.h"
#include "driver.h"
#include "process.h"
#include "settings.h"
#include "smi.h"
#include "view.h"

#include <string.h>

enum { MAX_RECORDS = 1024 };

static bool limited(nvmlReturn_t result, nvmlDevice_t device, struct view *view) {
  if (result != NVML_SUCCESS || driver_inside || !settings_get()->active) return false;
  return view_of(card_of_nvml(device), view);
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static nvmlReturn_t memory(nvmlReturn_t result, nvmlDevice_t device, struct nvml_memory *memory) {
  struct view view;
  if (!limited(result, device, &view)) return result;
  memory->total = least(memory->total, view.limit);
  memory->free = least(memory->free, view.free);
  memory->used = least(view.used, memory->total);
  return result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct nvml_memory *out) {
  return memory(NEXT(nvmlDeviceGetMemoryInfo)(device, out), device, out);
}

nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device, struct nvml_memory *out) {
  return memory(NEXT(nvmlDeviceGetConfComputeProtectedMemoryUsage)(device, out), device, out);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct nvml_memory_v2 *out) {
  nvmlReturn_t result = NEXT(nvmlDeviceGetMemoryInfo_v2)(device, out);
  struct view view;
  if (!limited(result, device, &view)) return result;
  out->total = least(out->total, view.limit);
  out->free = least(out->free, view.free);
  out->used = least(view.used, out->total);
  out->reserved = out->total - out->used > out->free ? out->total - out->used - out->free : 0;
  return result;
}

static nvmlReturn_t attributes(nvmlReturn_t result, nvmlDevice_t device, struct nvml_attributes *out) {
  struct view view;
  if (limited(result, device, &view)) out->memory_mib = least(out->memory_mib, view.limit >> 20);
  return result;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, struct nvml_attributes *out) {
  return attributes(NEXT(nvmlDeviceGetAttributes)(device, out), device, out);
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, struct nvml_attributes *out) {
  return attributes(NEXT(nvmlDeviceGetAttributes_v2)(device, out), device, out);
}

/* Lists of records that carry a process id: keeps the container's own. `used` is where a record's memory figure lies, 0
   if it has none. Returns how many are left. */
static unsigned keep_own(char *records, unsigned count, size_t size, size_t pid_at, size_t used_at, int card) {
  const struct region *region = region_get();
  unsigned kept = 0;
  for (unsigned i = 0; i < count; i++) {
    char *record = records + i * size;
    uint32_t pid;
    memcpy(&pid, record + pid_at, sizeof pid);
    if (!busy_own(pid)) continue;
    int slot = used_at && region && card != CARD_NONE ? process_slot_of(region, (pid_t)pid) : -1;
    uint64_t claimed = slot < 0 ? 0 : __atomic_load_n(&region->processes[slot].claims[card].claimed, __ATOMIC_RELAXED);
    if (claimed) memcpy(record + used_at, &claimed, sizeof claimed);
    memmove(records + kept++ * size, record, size);
  }
  return kept;
}

/* NVML's protocol for lists: the caller's room in, the number of records out, too little room is an error that says how
   much is needed. */
static nvmlReturn_t hand_over(const char *records, unsigned kept, size_t size, unsigned *count, void *list) {
  bool fits = kept <= *count && (list || !kept);
  *count = kept;
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (kept) memcpy(list, records, kept * size);
  return NVML_SUCCESS;
}

typedef nvmlReturn_t (*list_function)(nvmlDevice_t, unsigned *, void *);

static nvmlReturn_t processes(list_function real, size_t size, nvmlDevice_t device, unsigned *count, void *list) {
  char records[MAX_RECORDS * sizeof(struct nvml_process)];
  unsigned found = MAX_RECORDS;
  if (!count || driver_inside || !settings_get()->active) return real(device, count, list);
  nvmlReturn_t result = real(device, &found, records);
  if (result != NVML_SUCCESS) return real(device, count, list);
  process_reap(false);
  unsigned kept = keep_own(records, found, size, offsetof(struct nvml_process, pid), offsetof(struct nvml_process, used), card_of_nvml(device));
  return hand_over(records, kept, size, count, list);
}

#define PROCESSES(name, record)                                                                   \
  nvmlReturn_t name(nvmlDevice_t device, unsigned *count, struct record *list) {                  \
    return processes((list_function)NEXT(name), sizeof(struct record), device, count, list);      \
  }
PROCESSES(nvmlDeviceGetComputeRunningProcesses, nvml_process_v1)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, nvml_process)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, nvml_process)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvml_process_v1)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvml_process)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvml_process)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, nvml_process_v1)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvml_process)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvml_process)

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, struct nvml_detail_list *list) {
  struct nvml_detail records[MAX_RECORDS];
  if (!list || driver_inside || !settings_get()->active) return NEXT(nvmlDeviceGetRunningProcessDetailList)(device, list);
  struct nvml_detail_list all = {.version = list->version, .mode = list->mode, .count = MAX_RECORDS, .list = records};
  nvmlReturn_t result = NEXT(nvmlDeviceGetRunningProcessDetailList)(device, &all);
  if (result != NVML_SUCCESS) return NEXT(nvmlDeviceGetRunningProcessDetailList)(device, list);
  unsigned kept = keep_own((char *)records, all.count, sizeof records[0], offsetof(struct nvml_detail, pid), offsetof(struct nvml_detail, used),
                           card_of_nvml(device));
  return hand_over((const char *)records, kept, sizeof records[0], &list->count, list->list);
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, struct nvml_utilization_sample *list, unsigned *count, unsigned long long since) {
  struct nvml_utilization_sample records[MAX_RECORDS];
  unsigned found = MAX_RECORDS;
  if (!count || driver_inside || !settings_get()->active) return NEXT(nvmlDeviceGetProcessUtilization)(device, list, count, since);
  nvmlReturn_t result = NEXT(nvmlDeviceGetProcessUtilization)(device, records, &found, since);
  if (result != NVML_SUCCESS) return NEXT(nvmlDeviceGetProcessUtilization)(device, list, count, since);
  unsigned kept = keep_own((char *)records, found, sizeof records[0], 0, 0, CARD_NONE);
  return kept ? hand_over((const char *)records, kept, sizeof records[0], count, list) : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, struct nvml_utilization_list *list) {
  struct nvml_utilization_info records[MAX_RECORDS];
  if (!list || driver_inside || !settings_get()->active) return NEXT(nvmlDeviceGetProcessesUtilizationInfo)(device, list);
  struct nvml_utilization_list all = {.version = list->version, .count = MAX_RECORDS, .since = list->since, .list = records};
  nvmlReturn_t result = NEXT(nvmlDeviceGetProcessesUtilizationInfo)(device, &all);
  if (result != NVML_SUCCESS) return NEXT(nvmlDeviceGetProcessesUtilizationInfo)(device, list);
  unsigned kept = keep_own((char *)records, all.count, sizeof records[0], offsetof(struct nvml_utilization_info, pid), 0, CARD_NONE);
  list->since = all.since;
  return kept ? hand_over((const char *)records, kept, sizeof records[0], &list->count, list->list) : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned *count, unsigned *pids) {
  unsigned records[4 * MAX_RECORDS], found = 4 * MAX_RECORDS;
  if (!count || driver_inside || !settings_get()->active) return NEXT(nvmlDeviceGetAccountingPids)(device, count, pids);
  nvmlReturn_t result = NEXT(nvmlDeviceGetAccountingPids)(device, &found, records);
  if (result != NVML_SUCCESS) return NEXT(nvmlDeviceGetAccountingPids)(device, count, pids);
  return hand_over((const char *)records, keep_own((char *)records, found, sizeof records[0], 0, 0, CARD_NONE), sizeof records[0], count, pids);
}

static bool foreign(uint32_t pid) { return !driver_inside && settings_get()->active && !busy_own(pid); }

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid, void *stats) {
  return foreign(pid) ? NVML_ERROR_NOT_FOUND : NEXT(nvmlDeviceGetAccountingStats)(device, pid, stats);
}

nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, struct nvml_accounting_v2 *stats) {
  return stats && foreign(stats->pid) ? NVML_ERROR_NOT_FOUND : NEXT(nvmlDeviceGetAccountingStats_v2)(device, stats);
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct nvml_utilization *rates) {
  nvmlReturn_t result = NEXT(nvmlDeviceGetUtilizationRates)(device, rates);
  if (result != NVML_SUCCESS || driver_inside || !settings_get()->active) return result;
  int card = card_of_nvml(device), percent = card == CARD_NONE ? -1 : busy_percent(card, device);
  if (percent >= 0) rates->gpu = (uint32_t)percent;
  return result;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, int type, unsigned long long since, int *value_type, unsigned *count,
                                  struct nvml_sample *samples) {
  nvmlReturn_t result = NEXT(nvmlDeviceGetSamples)(device, type, since, value_type, count, samples);
  if (result != NVML_SUCCESS || type != NVML_GPU_UTILIZATION_SAMPLES || !samples || driver_inside || !settings_get()->active) return result;
  int card = card_of_nvml(device), percent = card == CARD_NONE ? -1 : busy_percent(card, device);
  for (unsigned i = 0; percent >= 0 && i < *count; i++) samples[i].value.bits = (uint64_t)percent;
  return result;
}

static nvmlReturn_t started(nvmlReturn_t result) {
  if (result == NVML_SUCCESS && !driver_inside && settings_get()->active) smi_prepare();
  return result;
}

nvmlReturn_t nvmlInit(void) { return started(NEXT(nvmlInit)()); }

nvmlReturn_t nvmlInit_v2(void) { return started(NEXT(nvmlInit_v2)()); }

nvmlReturn_t nvmlInitWithFlags(unsigned flags) { return started(NEXT(nvmlInitWithFlags)(flags)); }
