#include "busy.h"

#include "driver.h"
#include "process.h"

#include <time.h>

enum { MAX_SAMPLES = 1024 };

/* Processes of other containers are seen only from the host's PID namespace; there the region tells whose they are. */
int busy_own(uint32_t pid) {
  static int host = -1;
  if (host < 0) host = process_sees_host();
  const struct region *region = region_get();
  return !host || !region || process_slot_of(region, (pid_t)pid) >= 0;
}

int busy_percent(int card, nvmlDevice_t device) {
  const struct region *region = region_get();
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  uint64_t time = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000; /* microseconds */
  if (region && card >= 0) {
    uint64_t written = __atomic_load_n(&region->cards[card].share_time, __ATOMIC_RELAXED) / 1000;
    if (written && written <= time && time - written < 2000000) {
      uint64_t share = __atomic_load_n(&region->cards[card].share_1s, __ATOMIC_RELAXED) / 10000;
      return share > 100 ? 100 : (int)share;
    }
  }
  struct nvml_utilization_sample samples[MAX_SAMPLES];
  unsigned count = MAX_SAMPLES;
  driver_inside++;
  nvmlReturn_t result = NEXT(nvmlDeviceGetProcessUtilization)(device, samples, &count, time - 1000000);
  driver_inside--;
  if (result == NVML_ERROR_NOT_FOUND) return 0;
  if (result != NVML_SUCCESS) return -1;
  unsigned sum = 0;
  for (unsigned i = 0; i < count && i < MAX_SAMPLES; i++)
    if (samples[i].sm <= 100 && busy_own(samples[i].pid)) sum += samples[i].sm;
  return sum > 100 ? 100 : (int)sum;
}
