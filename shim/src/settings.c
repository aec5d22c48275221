#include "settings.h"

#include "log.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <time.h>

static const char region_directory[] = "/tmp/vgpu";
static const char fallback_region[] = "/tmp/cudevshr.cache"; /* upstream's path when only limits are set */

bool settings_secure(void) {
  static int state; /* 0 not asked, 1 ordinary, 2 privileged */
  int known = __atomic_load_n(&state, __ATOMIC_RELAXED);
  if (!known) {
    known = getauxval(AT_SECURE) ? 2 : 1;
    __atomic_store_n(&state, known, __ATOMIC_RELAXED);
  }
  return known == 2;
}

bool settings_parse_memory(const char *text, uint64_t *bytes) {
  while (*text == ' ' || *text == '\t') text++;
  if (*text < '0' || *text > '9') return false;
  errno = 0;
  char *end;
  unsigned long long number = strtoull(text, &end, 10);
  if (errno) return false;
  unsigned shift = 0;
  switch (*end | 0x20) {
    case 'k': shift = 10; break;
    case 'm': shift = 20; break;
    case 'g': shift = 30; break;
    case 't': shift = 40; break;
  }
  if (shift) end++;
  if (shift && *end == 'i') end++;
  if ((*end | 0x20) == 'b') end++;
  while (*end == ' ' || *end == '\t' || *end == '\n') end++;
  if (*end || number > UINT64_MAX >> (shift + 1)) return false;
  *bytes = (uint64_t)number << shift;
  return true;
}

static bool memory_variable(const char *name, uint64_t *bytes) {
  const char *text = getenv(name);
  if (!text || !*text) return false;
  if (settings_parse_memory(text, bytes)) return true;
  log_line(LOG_ERROR, LOG_SETTINGS, "%s=%.40s is not an amount of memory (4g, 5120m, bytes); ignored", name, text);
  return false;
}

static bool cores_variable(const char *name, uint64_t *percent) {
  const char *text = getenv(name);
  if (!text || !*text) return false;
  char *end;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (errno || *end || text[0] < '0' || text[0] > '9') {
    log_line(LOG_ERROR, LOG_SETTINGS, "%s=%.40s is not a percentage (1 to 100); ignored", name, text);
    return false;
  }
  *percent = number == 0 || number > 100 ? 100 : number;
  return true;
}

static bool first_region(char *path, size_t size) {
  DIR *directory = opendir(region_directory);
  if (!directory) return false;
  char best[256] = "";
  for (struct dirent *entry; (entry = readdir(directory));) {
    size_t length = strlen(entry->d_name);
    if (length < 7 || length >= sizeof best || strcmp(entry->d_name + length - 6, ".cache") != 0) continue;
    if (!*best || strcmp(entry->d_name, best) < 0) strcpy(best, entry->d_name);
  }
  closedir(directory);
  if (!*best) return false;
  snprintf(path, size, "%s/%s", region_directory, best);
  return true;
}

static uint32_t policy(void) {
  const char *text = getenv("GPU_CORE_UTILIZATION_POLICY");
  if (!text || !*text || strcasecmp(text, "default") == 0) return CORE_POLICY_DEFAULT;
  if (strcasecmp(text, "force") == 0) return CORE_POLICY_FORCE;
  if (strcasecmp(text, "disable") == 0) return CORE_POLICY_DISABLE;
  log_line(LOG_ERROR, LOG_SETTINGS, "GPU_CORE_UTILIZATION_POLICY=%.40s is not default, force or disable; default is used", text);
  return CORE_POLICY_DEFAULT;
}

static void read_environment(struct settings *settings) {
  uint64_t memory = 0, cores = 100;
  const uint32_t all = (1u << REGION_CARDS) - 1;
  settings->memory_named = memory_variable("CUDA_DEVICE_MEMORY_LIMIT", &memory) ? all : 0;
  settings->cores_named = cores_variable("CUDA_DEVICE_SM_LIMIT", &cores) ? all : 0;
  for (int i = 0; i < REGION_CARDS; i++) {
    char name[48];
    settings->memory[i] = memory;
    settings->cores[i] = cores;
    snprintf(name, sizeof name, "CUDA_DEVICE_MEMORY_LIMIT_%d", i);
    if (memory_variable(name, &settings->memory[i])) settings->memory_named |= 1u << i;
    snprintf(name, sizeof name, "CUDA_DEVICE_SM_LIMIT_%d", i);
    if (cores_variable(name, &settings->cores[i])) settings->cores_named |= 1u << i;
  }
  bool named = settings->memory_named || settings->cores_named;
  settings->policy = policy();
  const char *path = getenv("CUDA_DEVICE_MEMORY_SHARED_CACHE");
  bool found = true;
  if (path && *path && strlen(path) < sizeof settings->region - sizeof CORE_SUFFIX)
    strcpy(settings->region, path);
  else
    found = first_region(settings->region, sizeof settings->region);
  if (!found && named) {
    strcpy(settings->region, fallback_region);
    settings->default_region = true;
  }
  settings->active = (found || named) && !getenv("CUDA_DISABLE_CONTROL");
}

const struct settings *settings_get(void) {
  static struct settings settings;
  static int state; /* 0 unread, 1 being read, 2 read */
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == 2) return &settings;
  int expected = 0;
  if (__atomic_compare_exchange_n(&state, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
    if (!settings_secure()) read_environment(&settings);
    __atomic_store_n(&state, 2, __ATOMIC_RELEASE);
  } else {
    const struct timespec pause = {0, 100000};
    while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != 2) nanosleep(&pause, NULL);
  }
  return &settings;
}
