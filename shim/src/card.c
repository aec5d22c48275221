#include "card.h"

#include "driver.h"
#include "log.h"
#include "settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <unistd.h>

enum { MAX_DEVICES = 64, MAX_HANDLES = 64 };

static signed char cards_of_devices[MAX_DEVICES]; /* card + 2; 0 not asked yet, 1 none */
static signed char devices_of_cards[REGION_CARDS]; /* device + 1; 0 none */

static struct {
  nvmlDevice_t handle;
  int card;
} handles[MAX_HANDLES];

/* CUDA gives 16 bytes without saying whether they name a card or a MIG instance. */
static const char *digits(const char *uuid) {
  if (strncasecmp(uuid, "GPU-", 4) == 0 || strncasecmp(uuid, "MIG-", 4) == 0) return uuid + 4;
  return uuid;
}

static int listed_by_environment(char uuids[REGION_CARDS][NVML_UUID_SIZE]) {
  const char *text = getenv("NVIDIA_VISIBLE_DEVICES");
  int count = 0;
  while (text && *text && count < REGION_CARDS) {
    size_t length = strcspn(text, ",");
    bool uuid = length > 4 && length < NVML_UUID_SIZE && (strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0);
    if (!uuid) return 0;
    memset(uuids[count], 0, NVML_UUID_SIZE);
    memcpy(uuids[count++], text, length);
    text += length + (text[length] == ',');
  }
  return count;
}

static void add_uuid(char uuids[REGION_CARDS][NVML_UUID_SIZE], int *count, nvmlDevice_t device) {
  if (*count == REGION_CARDS) return;
  memset(uuids[*count], 0, NVML_UUID_SIZE);
  if (NEXT(nvmlDeviceGetUUID)(device, uuids[*count], NVML_UUID_SIZE) == NVML_SUCCESS) ++*count;
}

static int listed_by_nvml(char uuids[REGION_CARDS][NVML_UUID_SIZE]) {
  int count = 0;
  unsigned devices = 0;
  if (!driver_load_nvml()) return 0;
  driver_inside++;
  if (NEXT(nvmlInit_v2)() == NVML_SUCCESS && NEXT(nvmlDeviceGetCount_v2)(&devices) == NVML_SUCCESS)
    for (unsigned i = 0; i < devices; i++) {
      nvmlDevice_t device, instance;
      unsigned most = 0;
      int before = count;
      if (NEXT(nvmlDeviceGetHandleByIndex_v2)(i, &device) != NVML_SUCCESS) continue;
      if (NEXT(nvmlDeviceGetMaxMigDeviceCount)(device, &most) != NVML_SUCCESS) most = 0;
      for (unsigned k = 0; k < most; k++)
        if (NEXT(nvmlDeviceGetMigDeviceHandleByIndex)(device, k, &instance) == NVML_SUCCESS) add_uuid(uuids, &count, instance);
      if (count == before) add_uuid(uuids, &count, device);
    }
  driver_inside--;
  return count;
}

static bool device_uuid(CUdevice device, char text[NVML_UUID_SIZE]) {
  CUuuid uuid;
  bool known = HAVE(cuDeviceGetUuid_v2) ? NEXT(cuDeviceGetUuid_v2)(&uuid, device) == CUDA_SUCCESS
                                        : HAVE(cuDeviceGetUuid) && NEXT(cuDeviceGetUuid)(&uuid, device) == CUDA_SUCCESS;
  if (!known) return false;
  char *end = text + sprintf(text, "GPU-");
  for (int i = 0; i < 16; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *end++ = '-';
    end += sprintf(end, "%02x", (unsigned char)uuid.bytes[i]);
  }
  return true;
}

static int listed_by_cuda(char uuids[REGION_CARDS][NVML_UUID_SIZE]) {
  int devices = 0, count = 0;
  if (!HAVE(cuDeviceGetCount) || NEXT(cuDeviceGetCount)(&devices) != CUDA_SUCCESS) return 0;
  for (int i = 0; i < devices && count < REGION_CARDS; i++) {
    memset(uuids[count], 0, NVML_UUID_SIZE);
    if (device_uuid(i, uuids[count])) count++;
  }
  return count;
}

int card_list(char uuids[REGION_CARDS][NVML_UUID_SIZE]) {
  int count = listed_by_environment(uuids);
  if (!count) count = listed_by_nvml(uuids);
  return count ? count : listed_by_cuda(uuids);
}

static int find(const struct region *region, const char *uuid) {
  for (int i = 0; i < region_cards(region); i++) {
    char known[NVML_UUID_SIZE];
    region_uuid(region, i, known);
    if (strcasecmp(digits(known), digits(uuid)) == 0) return i;
  }
  return CARD_NONE;
}

/* A card that was not there when the region was made: it gets the next number and that number's limits. */
static int append(const struct region *region, const char *uuid) {
  int fd = region->shared ? open(settings_get()->region, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
  if (fd >= 0 && flock(fd, LOCK_EX) != 0) {
    close(fd);
    return CARD_NONE;
  }
  int card = find(region, uuid), count = region_cards(region);
  if (card == CARD_NONE && count < REGION_CARDS) {
    card = count;
    memcpy(region->file->uuid[card], uuid, NVML_UUID_SIZE);
    memcpy(region->cards[card].uuid, uuid, NVML_UUID_SIZE);
    __atomic_store_n(&region->file->device_num, (uint64_t)count + 1, __ATOMIC_RELEASE);
  }
  if (fd >= 0) close(fd); /* nothing maps this descriptor, so the lock goes with it */
  return card;
}

static int learn(const struct region *region, CUdevice device) {
  char uuid[NVML_UUID_SIZE] = "";
  if (!device_uuid(device, uuid)) {
    log_line(LOG_ERROR, LOG_CARD, "the driver does not give the UUID of device %d; it is not limited", device);
    region_count_fault();
    return CARD_NONE;
  }
  int card = find(region, uuid);
  if (card == CARD_NONE) card = append(region, uuid);
  if (card == CARD_NONE) return card;
  size_t total = 0;
  if (NEXT(cuDeviceTotalMem_v2)(&total, device) == CUDA_SUCCESS) __atomic_store_n(&region->cards[card].memory_total, total, __ATOMIC_RELAXED);
  devices_of_cards[card] = (signed char)(device + 1);
  return card;
}

int card_of_device(CUdevice device) {
  if (device < 0 || device >= MAX_DEVICES) return CARD_NONE;
  int known = __atomic_load_n(&cards_of_devices[device], __ATOMIC_RELAXED);
  if (known) return known - 2;
  const struct region *region = region_get();
  int card = region ? learn(region, device) : CARD_NONE;
  __atomic_store_n(&cards_of_devices[device], (signed char)(card + 2), __ATOMIC_RELAXED);
  return card;
}

int card_current(void) {
  CUdevice device;
  if (!settings_get()->active || NEXT(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return CARD_NONE;
  return card_of_device(device);
}

CUdevice card_device(int card) { return devices_of_cards[card] - 1; }

int card_of_nvml(nvmlDevice_t device) {
  const struct region *region = region_get();
  if (!region) return CARD_NONE;
  for (int i = 0; i < MAX_HANDLES; i++) {
    nvmlDevice_t known = __atomic_load_n(&handles[i].handle, __ATOMIC_ACQUIRE);
    if (known == device) return handles[i].card;
    if (!known) break;
  }
  char uuid[NVML_UUID_SIZE] = "";
  driver_inside++;
  nvmlReturn_t result = NEXT(nvmlDeviceGetUUID)(device, uuid, sizeof uuid);
  driver_inside--;
  if (result != NVML_SUCCESS) return CARD_NONE;
  int card = find(region, uuid);
  static int used;
  int place = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
  if (place < MAX_HANDLES) {
    handles[place].card = card;
    __atomic_store_n(&handles[place].handle, device, __ATOMIC_RELEASE);
  }
  return card;
}
