#include "smi.h"

#include "busy.h"
#include "card.h"
#include "claim.h"
#include "driver.h"
#include "elf_find.h"
#include "process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int wanted;
static int busy[REGION_CARDS];
static uint64_t totals[REGION_CARDS]; /* bytes of the whole card */

/* Only the plain listing gets the block: XML must still parse, files and chosen sections stay as asked for. */
static bool plain_query(void) {
  static const char *const other[] = {"-x", "--xml", "-f", "--filename", "-d", "--display", "--query-", "-h", "--help", "-u", "--unit"};
  char text[4096];
  int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return false;
  text[length] = 0;
  if (strcmp(elf_file_name(text), "nvidia-smi") != 0) return false;
  bool query = false;
  for (const char *word = text + strlen(text) + 1; word < text + length; word += strlen(word) + 1) {
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
      if (strncmp(word, other[i], strlen(other[i])) == 0) return false;
    query |= strcmp(word, "-q") == 0 || strcmp(word, "--query") == 0;
  }
  return query;
}

void smi_prepare(void) {
  const struct region *region = wanted || !plain_query() ? NULL : region_get();
  if (!region) return;
  wanted = 1;
  driver_inside++;
  for (int card = 0; card < region_cards(region); card++) {
    nvmlDevice_t device;
    struct nvml_memory memory;
    char uuid[NVML_UUID_SIZE];
    region_uuid(region, card, uuid);
    if (NEXT(nvmlDeviceGetHandleByUUID)(uuid, &device) != NVML_SUCCESS) continue;
    if (NEXT(nvmlDeviceGetMemoryInfo)(device, &memory) == NVML_SUCCESS) totals[card] = memory.total;
    busy[card] = busy_percent(card, device);
  }
  driver_inside--;
}

static int processes_on(const struct region *region, int card) {
  int count = 0;
  uint32_t high = region->header->process_high;
  for (uint32_t slot = 0; slot < high && slot < REGION_SLOTS; slot++)
    count += region->processes[slot].owner && __atomic_load_n(&region->processes[slot].claims[card].claimed, __ATOMIC_RELAXED);
  return count;
}

__attribute__((destructor)) static void print(void) {
  if (!wanted) return;
  const struct region *region = region_get();
  process_reap(true);
  for (int card = 0; card < region_cards(region); card++) {
    uint64_t limit = region_memory_limit(region, card), used = claim_used(card);
    if (!limit || (totals[card] && limit > totals[card])) limit = totals[card];
    uint64_t cores = region_core_limit(region, card);
    printf("\nHAMI-core Virtual GPU:\n");
    printf("    Memory Usage : %llu/%llu MB (%llu%%)\n", (unsigned long long)used >> 20, (unsigned long long)limit >> 20,
           (unsigned long long)(limit ? used * 100 / limit : 0));
    printf("    Compute Usage : %d/%llu cores\n", busy[card] < 0 ? 0 : busy[card], (unsigned long long)cores);
    printf("    Process Count : %d\n", processes_on(region, card));
  }
  fflush(stdout);
}
