#include "region.h"

#include "card.h"
#include "log.h"
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef VGPU_VERSION
#define VGPU_VERSION "0.1.0"
#endif

enum { LOCK_TRIES = 500, LOCK_PAUSE_NS = 10000000 }; /* 5 s: a stopped process must not hold up all others */

static struct region current;

/* A sparse file on a full disk would kill the program when a page is first written, so blocks are taken now. */
static int reserve(int fd, off_t size) {
  int result;
  while ((result = fallocate(fd, 0, 0, size)) != 0 && errno == EINTR) {}
  if (result == 0) return 0;
  if (errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS) return errno;
  return ftruncate(fd, size) == 0 ? 0 : errno;
}

static bool same_file(int fd, const char *path) {
  struct stat opened, named;
  return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

static bool lock(int fd) {
  const struct timespec pause = {0, LOCK_PAUSE_NS};
  for (int i = 0; i < LOCK_TRIES; i++) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    nanosleep(&pause, NULL);
  }
  errno = ETIMEDOUT;
  return false;
}

/* Opens path as a file of that size. A file of another size or kind is of another version: it is replaced, never
   reused, and those who have it mapped keep it. Returns -1 and errno. */
static int open_sized(const char *path, off_t size) {
  for (int tries = 0; tries < 8; tries++) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666);
    if (fd < 0) return -1;
    struct stat status;
    int error = fstat(fd, &status) == 0 ? 0 : errno;
    if (!error && !S_ISREG(status.st_mode)) error = EINVAL;
    if (!error && status.st_size == size) return fd;
    if (!error && status.st_size == 0) {
      fchmod(fd, 0666); /* all users of the container share it */
      error = reserve(fd, size);
      if (!error) return fd;
    } else if (!error) {
      log_line(LOG_WARNING, LOG_REGION, "%s is not a region of this version; replaced", path);
      if (!lock(fd) || (same_file(fd, path) && unlink(path) != 0)) error = errno;
    }
    close(fd);
    if (error) {
      errno = error;
      return -1;
    }
  }
  errno = EAGAIN;
  return -1;
}

static bool region_ready(const struct region_file *file) {
  return __atomic_load_n(&file->magic, __ATOMIC_ACQUIRE) == REGION_MAGIC && file->major == REGION_MAJOR && file->minor == REGION_MINOR;
}

static bool core_ready(const struct core_header *header) {
  return __atomic_load_n(&header->ready, __ATOMIC_ACQUIRE) == 1 && header->magic == CORE_MAGIC && header->major == CORE_MAJOR &&
         header->header_size == CORE_CARDS_OFFSET && header->card_size == sizeof(struct core_card) && header->card_count == REGION_CARDS &&
         header->process_size == sizeof(struct core_process) && header->process_count == REGION_SLOTS;
}

static void fill_region(struct region_file *file, const struct settings *settings, char uuids[REGION_CARDS][NVML_UUID_SIZE], int cards) {
  memset(file, 0, sizeof *file);
  file->major = REGION_MAJOR;
  file->minor = REGION_MINOR;
  const uint32_t idle_semaphore[3] = {1, 0, 128};
  memcpy(file->lock, idle_semaphore, sizeof idle_semaphore);
  memcpy(file->postinit_lock, idle_semaphore, sizeof idle_semaphore);
  file->device_num = (uint64_t)cards;
  for (int i = 0; i < cards; i++) memcpy(file->uuid[i], uuids[i], NVML_UUID_SIZE);
  for (int i = 0; i < REGION_CARDS; i++) {
    file->limit[i] = settings->memory[i];
    file->sm_limit[i] = settings->cores[i];
  }
  file->utilization_switch = 1;
  file->recent_kernel = 2;
  file->priority = 1;
  __atomic_store_n(&file->magic, REGION_MAGIC, __ATOMIC_RELEASE);
}

static void fill_core(struct core_header *header, const struct region_file *file, const struct settings *settings) {
  memset(header, 0, CORE_BYTES);
  header->magic = CORE_MAGIC;
  header->major = CORE_MAJOR;
  header->minor = CORE_MINOR;
  header->header_size = CORE_CARDS_OFFSET;
  header->card_size = sizeof(struct core_card);
  header->card_count = REGION_CARDS;
  header->process_size = sizeof(struct core_process);
  header->process_count = REGION_SLOTS;
  header->created = (uint64_t)time(NULL);
  header->policy = settings->policy;
  strncpy(header->version, VGPU_VERSION, sizeof header->version - 1);
  struct core_card *cards = (struct core_card *)((char *)header + CORE_CARDS_OFFSET);
  for (int i = 0; i < REGION_CARDS; i++) {
    memcpy(cards[i].uuid, file->uuid[i], sizeof cards[i].uuid);
    cards[i].core_limit = file->sm_limit[i];
  }
  __atomic_store_n(&header->ready, 1, __ATOMIC_RELEASE);
}

static void attach_views(struct region *region, struct region_file *file, struct core_header *header) {
  region->header = header;
  region->cards = (struct core_card *)((char *)header + CORE_CARDS_OFFSET);
  region->processes = (struct core_process *)((char *)region->cards + REGION_CARDS * sizeof(struct core_card));
  region->file = file;
}

static void *map(int fd, size_t size) {
  void *address = mmap(NULL, size, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
  return address == MAP_FAILED ? NULL : address;
}

/* Nobody lives in a region at upstream's common path: what stands there is left over from another container or run. */
static bool abandoned(const struct region *region) {
  for (uint32_t i = 0; i < REGION_SLOTS; i++) {
    int pid = region->file->slots[i].pid;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", pid);
    if (pid > 0 && access(path, F_OK) == 0) return false;
  }
  return true;
}

static void compare_environment(const struct region *region, const struct settings *settings) {
  for (int i = 0; i < region_cards(region); i++) {
    uint64_t memory = region->file->limit[i], cores = region->file->sm_limit[i];
    bool other_memory = settings->memory_named >> i & 1 && memory != settings->memory[i];
    bool other_cores = settings->cores_named >> i & 1 && cores != settings->cores[i];
    if (!other_memory && !other_cores) continue;
    __atomic_fetch_add(&region->header->ignored_environment, 1, __ATOMIC_RELAXED);
    log_line(LOG_WARNING, LOG_REGION,
             "card %d: the environment asks for %llu MiB and %llu cores; the region's %llu MiB and %llu cores are in force", i,
             (unsigned long long)settings->memory[i] >> 20, (unsigned long long)settings->cores[i], (unsigned long long)memory >> 20,
             (unsigned long long)cores);
    return;
  }
}

/* Fills in whichever file is not complete. The lock goes with the process that holds it, but not with its descriptor: the
   mapping keeps the open file, so it is given back by name. */
static bool complete(const struct region *region, const struct settings *settings, int fd) {
  bool left_over = settings->default_region && abandoned(region);
  if (region_ready(region->file) && core_ready(region->header) && !left_over) return true;
  char uuids[REGION_CARDS][NVML_UUID_SIZE];
  int cards = card_list(uuids); /* asks the driver, so before the lock is taken */
  if (!lock(fd)) return false;
  bool stale = left_over && abandoned(region);
  if (!region_ready(region->file) || stale) fill_region(region->file, settings, uuids, cards);
  if (!core_ready(region->header) || stale) fill_core(region->header, region->file, settings);
  flock(fd, LOCK_UN);
  return true;
}

static bool open_shared(struct region *region, const struct settings *settings) {
  snprintf(region->core_path, sizeof region->core_path, "%s%s", settings->region, CORE_SUFFIX);
  const char *path = settings->region;
  int fd = open_sized(path, REGION_BYTES);
  struct region_file *file = fd >= 0 ? map(fd, REGION_BYTES) : NULL;
  if (file) path = region->core_path;
  int core_fd = file ? open_sized(path, CORE_BYTES) : -1;
  struct core_header *header = core_fd >= 0 ? map(core_fd, CORE_BYTES) : NULL;
  bool done = false;
  if (header) {
    attach_views(region, file, header);
    done = complete(region, settings, fd);
  }
  if (!done) log_line(LOG_ERROR, LOG_REGION, "cannot use %s: %s; limits hold for this process alone", path, strerror(errno));
  if (!done && header) munmap(header, CORE_BYTES);
  if (!done && file) munmap(file, REGION_BYTES);
  if (core_fd >= 0) close(core_fd);
  if (fd >= 0) close(fd);
  region->shared = done;
  return done;
}

/* The limits of a region that this user may read but not write still count. */
static void read_limits(struct region_file *file, const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return;
  struct region_file head;
  const size_t size = offsetof(struct region_file, slots);
  struct stat status;
  bool sound = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == REGION_BYTES;
  if (sound && pread(fd, &head, size, 0) == (ssize_t)size && head.magic == REGION_MAGIC && head.major == REGION_MAJOR) {
    file->device_num = head.device_num;
    memcpy(file->uuid, head.uuid, sizeof file->uuid);
    memcpy(file->limit, head.limit, sizeof file->limit);
    memcpy(file->sm_limit, head.sm_limit, sizeof file->sm_limit);
  }
  close(fd);
}

static bool open_private(struct region *region, const struct settings *settings) {
  struct region_file *file = map(-1, REGION_BYTES);
  struct core_header *header = map(-1, CORE_BYTES);
  if (!file || !header) return false;
  char uuids[REGION_CARDS][NVML_UUID_SIZE];
  fill_region(file, settings, uuids, card_list(uuids));
  read_limits(file, settings->region);
  fill_core(header, file, settings);
  region->shared = false;
  attach_views(region, file, header);
  return true;
}

const struct region *region_get(void) {
  static int state; /* 0 closed, 1 being opened, 2 open, 3 nothing configured */
  int known = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
  if (known == 2) return &current;
  if (known == 3) return NULL;
  const struct settings *settings = settings_get();
  int expected = 0;
  if (__atomic_compare_exchange_n(&state, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
    bool open = settings->active && (open_shared(&current, settings) || open_private(&current, settings));
    if (open && current.shared) compare_environment(&current, settings);
    if (open && !current.shared) region_count_fault();
    __atomic_store_n(&state, open ? 2 : 3, __ATOMIC_RELEASE);
    return open ? &current : NULL;
  }
  const struct timespec pause = {0, 100000};
  while ((known = __atomic_load_n(&state, __ATOMIC_ACQUIRE)) == 1) nanosleep(&pause, NULL);
  return known == 2 ? &current : NULL;
}

void region_go_private(void) {
  struct region region = {0};
  log_line(LOG_ERROR, LOG_REGION, "more than %d processes in this container; limits hold for this process alone", REGION_SLOTS);
  struct region_file *old = current.file;
  if (!open_private(&region, settings_get())) return;
  memcpy(region.file->limit, old->limit, sizeof old->limit);
  memcpy(region.file->sm_limit, old->sm_limit, sizeof old->sm_limit);
  memcpy(region.file->uuid, old->uuid, sizeof old->uuid);
  region.file->device_num = old->device_num;
  current = region;
}

void region_count_fault(void) { __atomic_fetch_add(&current.header->faults, 1, __ATOMIC_RELAXED); }

int region_cards(const struct region *region) {
  uint64_t count = __atomic_load_n(&region->file->device_num, __ATOMIC_ACQUIRE);
  return count > REGION_CARDS ? REGION_CARDS : (int)count;
}

uint64_t region_memory_limit(const struct region *region, int card) {
  uint64_t limit = __atomic_load_n(&region->file->limit[card], __ATOMIC_RELAXED);
  uint64_t total = __atomic_load_n(&region->cards[card].memory_total, __ATOMIC_RELAXED);
  if (limit && total && limit > total) limit = total;
  if (region->cards[card].memory_limit != limit) __atomic_store_n(&region->cards[card].memory_limit, limit, __ATOMIC_RELAXED);
  return limit;
}

uint64_t region_core_limit(const struct region *region, int card) {
  uint64_t limit = __atomic_load_n(&region->file->sm_limit[card], __ATOMIC_RELAXED);
  if (limit == 0 || limit > 100) limit = 100;
  if (region->cards[card].core_limit != limit) __atomic_store_n(&region->cards[card].core_limit, limit, __ATOMIC_RELAXED);
  return limit;
}

void region_uuid(const struct region *region, int card, char uuid[96]) {
  memcpy(uuid, region->file->uuid[card], 95);
  uuid[95] = 0;
}
