#include "process.h"

#include "account.h"
#include "claim.h"
#include "elf_find.h"
#include "entry.h"
#include "ledger.h"
#include "log.h"
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#endif

enum { REAP_INTERVAL_NS = 10000000, REAP_BATCH = 32 };
static const uint64_t host_pid_namespace = 0xEFFFFFFC; /* fixed inode of the first PID namespace */

static struct {
  int slot; /* record + 1; 0 none */
  int pid, lock_fd;
  struct stat lock_file; /* what lock_fd was opened on: a program may have closed it and opened something else there */
  uint64_t start, image, pid_namespace;
} self = {.lock_fd = -1};
static int taking, gone;

struct life {
  bool found, zombie;
  uint64_t start, image;
};

/* The third field of stat is the state, the 20th the number of threads, the 22nd the start time in clock ticks, the 28th
   the start of the stack (0 for a reader without rights), which differs from one program to the next in a process. */
static bool read_stat(int pid, struct life *life) {
  char path[40], text[1024];
  *life = (struct life){0};
  if (pid)
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
  else
    strcpy(path, "/proc/self/stat");
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT || errno == ESRCH ? access("/proc/self/stat", R_OK) == 0 : false;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return true; /* it ended meanwhile */
  text[length] = 0;
  char *field = strrchr(text, ')');
  if (!field) return false;
  char state = field[2];
  unsigned long long values[29] = {0};
  for (int number = 3; field && number <= 28; number++) {
    field = strchr(field + 1, ' ');
    if (field && number > 3) values[number] = strtoull(field + 1, NULL, 10);
  }
  if (!field) return false;
  unsigned long long threads = values[20];
  life->found = true;
  life->start = values[22];
  life->image = values[28];
  life->zombie = (state == 'Z' || state == 'X') && threads <= 1;
  return true;
}

static uint64_t own_pid_namespace(void) {
  char text[64];
  ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text - 1);
  if (length <= 0) return 1; /* no /proc: all such processes are taken to share one */
  text[length] = 0;
  char *bracket = strchr(text, '[');
  return bracket ? strtoull(bracket + 1, NULL, 10) : 1;
}

bool process_sees_host(void) { return own_pid_namespace() == host_pid_namespace; }

static uint64_t identity(uint64_t start, int pid) { return (start & 0xffffffff) << 32 | (uint32_t)pid; }

static void know_self(void) {
  int pid = getpid();
  if (self.pid == pid) return;
  struct life life;
  bool known = read_stat(0, &life);
  self.start = known ? life.start : 0;
  self.image = known ? life.image : 0;
  self.pid_namespace = own_pid_namespace();
  self.pid = pid;
}

static int lock_byte(const struct region *region, uint32_t slot, int command, short *type) {
  int fd = open(region->core_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return -1;
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)CORE_LOCK_OFFSET + slot, .l_len = 1};
  if (fcntl(fd, command, &lock) != 0) {
    close(fd);
    return -1;
  }
  *type = lock.l_type;
  return fd;
}

static bool claims_anything(const struct core_process *process) {
  for (int i = 0; i < REGION_CARDS; i++)
    if (__atomic_load_n(&process->claims[i].claimed, __ATOMIC_SEQ_CST) || __atomic_load_n(&process->claims[i].trying, __ATOMIC_SEQ_CST)) return true;
  return false;
}

/* Claims that no process can have where a limit holds: more than twice the card, or on a card that is not there. */
static bool claims_too_much(const struct region *region, const struct core_process *process) {
  for (int i = 0; i < REGION_CARDS; i++) {
    uint64_t total = __atomic_load_n(&region->cards[i].memory_total, __ATOMIC_RELAXED);
    uint64_t claimed = __atomic_load_n(&process->claims[i].claimed, __ATOMIC_SEQ_CST);
    if (i < region_cards(region) ? total && claimed / 2 > total && region_memory_limit(region, i) : claimed) return true;
  }
  return false;
}

static bool alive(const struct region *region, uint32_t slot, uint64_t owner) {
  const struct core_process *process = &region->processes[slot];
  int pid = (int)(owner & (CORE_OWNER_REAPING - 1));
  uint64_t pid_namespace = __atomic_load_n(&process->pid_namespace, __ATOMIC_ACQUIRE);
  if (owner & CORE_OWNER_REAPING || pid_namespace == self.pid_namespace) {
    struct life life;
    if (!read_stat(pid, &life)) return kill(pid, 0) == 0 || errno != ESRCH;
    uint64_t image = owner & CORE_OWNER_REAPING ? 0 : __atomic_load_n(&process->image, __ATOMIC_ACQUIRE);
    bool same_program = !image || !life.image || image == life.image;
    return life.found && !life.zombie && (life.start & 0xffffffff) == owner >> 32 && same_program;
  }
  /* A process that has just taken its record writes its namespace, then claims. Read again: it may have done both. */
  if (!pid_namespace) return !claims_anything(process) || __atomic_load_n(&process->pid_namespace, __ATOMIC_ACQUIRE);
  /* Its id means nothing here, but the kernel dropped its lock when it died. */
  if (!(__atomic_load_n(&process->flags, __ATOMIC_ACQUIRE) & CORE_FLAG_LOCKED)) return !claims_too_much(region, process);
  short type = F_WRLCK;
  int fd = lock_byte(region, slot, F_OFD_GETLK, &type);
  if (fd < 0) return true;
  close(fd);
  return type != F_UNLCK;
}

bool process_alive(const struct region *region, uint32_t slot) {
  know_self();
  uint64_t owner = __atomic_load_n(&region->processes[slot].owner, __ATOMIC_ACQUIRE);
  return owner && alive(region, slot, owner);
}

static void clear(const struct region *region, uint32_t slot) {
  struct core_process *process = &region->processes[slot];
  struct region_slot *shown = &region->file->slots[slot];
  __atomic_store_n(&shown->pid, 0, __ATOMIC_RELEASE);
  for (int i = 0; i < REGION_CARDS; i++) {
    __atomic_store_n(&process->claims[i].trying, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&process->claims[i].claimed, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&process->parked[i], 0, __ATOMIC_SEQ_CST);
  }
  memset(&shown->host_pid, 0, sizeof *shown - offsetof(struct region_slot, host_pid));
  __atomic_store_n(&process->pid_namespace, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&process->flags, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&process->image, 0, __ATOMIC_RELEASE);
}

/* Whoever exchanges the dead owner for itself clears the records; if it dies meanwhile, it is itself a dead owner. */
static bool reap(const struct region *region, uint32_t slot, uint64_t owner) {
  uint64_t *word = &region->processes[slot].owner, mine = identity(self.start, self.pid) | CORE_OWNER_REAPING;
  if (!__atomic_compare_exchange_n(word, &owner, mine, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return false;
  clear(region, slot);
  __atomic_compare_exchange_n(word, &mine, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return true;
}

int process_reap(bool force) {
  static int64_t last;
  static uint32_t next;
  const struct region *region = region_get();
  if (!region || !region->shared) return 0;
  uint32_t high = __atomic_load_n(&region->header->process_high, __ATOMIC_ACQUIRE);
  if (high > REGION_SLOTS) high = REGION_SLOTS;
  if (high <= 1 && self.slot == 1) return 0;
  if (!force) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t time = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, before = __atomic_load_n(&last, __ATOMIC_RELAXED);
    if (time - before < REAP_INTERVAL_NS || !__atomic_compare_exchange_n(&last, &before, time, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return 0;
  }
  know_self();
  int found = 0, looked = 0;
  uint32_t start = force ? 0 : __atomic_load_n(&next, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < high && (force || looked < REAP_BATCH); i++) {
    uint32_t slot = (start + i) % high;
    uint64_t owner = __atomic_load_n(&region->processes[slot].owner, __ATOMIC_ACQUIRE);
    __atomic_store_n(&next, slot + 1, __ATOMIC_RELAXED);
    if (owner == identity(self.start, self.pid)) continue;
    if (!owner && (!force || !claims_anything(&region->processes[slot]))) continue; /* nobody's claims are nonsense */
    looked++;
    if ((!owner || !alive(region, slot, owner)) && reap(region, slot, owner)) found++;
  }
  return found;
}

static void raise_high(const struct region *region, uint32_t slot) {
  uint32_t high = __atomic_load_n(&region->header->process_high, __ATOMIC_RELAXED);
  while (high <= slot && !__atomic_compare_exchange_n(&region->header->process_high, &high, slot + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {}
  int32_t count = __atomic_load_n(&region->file->proc_num, __ATOMIC_RELAXED);
  while (count <= (int32_t)slot && !__atomic_compare_exchange_n(&region->file->proc_num, &count, (int32_t)slot + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {}
}

/* A slot that another library filled: its process is not in our records, so the slot is left while that process lives. */
static bool taken_by_others(const struct region *region, uint32_t slot) {
  int pid = __atomic_load_n(&region->file->slots[slot].pid, __ATOMIC_ACQUIRE);
  return pid > 0 && kill(pid, 0) == 0;
}

static int take(const struct region *region) {
  uint64_t mine = identity(self.start, self.pid);
  for (uint32_t slot = 0; slot < REGION_SLOTS; slot++) {
    struct core_process *process = &region->processes[slot];
    uint64_t owner = __atomic_load_n(&process->owner, __ATOMIC_ACQUIRE);
    if (owner == mine) return (int)slot; /* of the program that ran in this process before exec */
    if (owner && !alive(region, slot, owner) && reap(region, slot, owner)) owner = 0;
    if (owner || taken_by_others(region, slot)) continue;
    /* Before anything can be charged here, others must look at this record. */
    raise_high(region, slot);
    if (!__atomic_compare_exchange_n(&process->owner, &owner, mine, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
    return (int)slot;
  }
  return -1;
}

static void fill(const struct region *region, uint32_t slot) {
  struct core_process *process = &region->processes[slot];
  struct region_slot *shown = &region->file->slots[slot];
  uint32_t flags = CORE_FLAG_LAUNCH_HOOKS;
  clear(region, slot);
  short type;
  if (region->shared) {
    self.lock_fd = lock_byte(region, slot, F_OFD_SETLK, &type);
    if (self.lock_fd >= 0 && fstat(self.lock_fd, &self.lock_file) == 0) flags |= CORE_FLAG_LOCKED;
  }
  process->start_time = self.start;
  process->attached = (uint64_t)time(NULL);
  __atomic_store_n(&process->image, self.image, __ATOMIC_RELEASE);
  __atomic_store_n(&process->flags, flags, __ATOMIC_RELEASE);
  __atomic_store_n(&process->pid_namespace, self.pid_namespace, __ATOMIC_RELEASE);
  shown->host_pid = self.pid_namespace == host_pid_namespace ? self.pid : 0;
  shown->status = REGION_STATUS_RUNNING;
  __atomic_store_n(&shown->pid, self.pid, __ATOMIC_RELEASE);
}

/* A forked child shares the parent's mapping, not its records. */
static void after_fork_in_child(void) {
  struct stat now;
  bool same = self.lock_fd >= 0 && fstat(self.lock_fd, &now) == 0 && now.st_ino == self.lock_file.st_ino && now.st_dev == self.lock_file.st_dev;
  if (same) close(self.lock_fd);
  self.lock_fd = -1;
  self.pid = 0;
  taking = 0;
  __atomic_store_n(&self.slot, 0, __ATOMIC_RELEASE);
  claim_forget();
  account_forget();
  ledger_forget();
}

/* pthread_atfork is not to be had under one name in glibc of every age and in musl. */
static void watch_forks(void) {
  static const char *const glibc[] = {"libc.so.6", NULL}, *const musl[] = {"ld-musl-", NULL};
  struct elf_object object;
  if (elf_object_named(glibc, &object)) {
    int (*watch)(void (*)(void), void (*)(void), void (*)(void), void *) =
        (int (*)(void (*)(void), void (*)(void), void (*)(void), void *))elf_symbol(&object, "__register_atfork");
    if (watch) watch(NULL, NULL, after_fork_in_child, NULL);
  } else if (elf_object_named(musl, &object)) {
    int (*watch)(void (*)(void), void (*)(void), void (*)(void)) =
        (int (*)(void (*)(void), void (*)(void), void (*)(void)))elf_symbol(&object, "pthread_atfork");
    if (watch) watch(NULL, NULL, after_fork_in_child);
  }
}

int process_slot(void) {
  static int watching;
  int known = __atomic_load_n(&self.slot, __ATOMIC_ACQUIRE);
  if (__builtin_expect(known > 0, 1)) return known - 1;
  const struct region *region = region_get();
  if (!region || gone) return -1;
  const struct timespec pause = {0, 50000};
  while (__atomic_exchange_n(&taking, 1, __ATOMIC_ACQUIRE)) nanosleep(&pause, NULL);
  if (!self.slot) {
    know_self();
    if (!watching++) watch_forks();
    int slot = take(region);
    if (slot < 0 && region->shared) {
      region_go_private();
      slot = take(region);
    }
    if (slot >= 0) {
      fill(region, (uint32_t)slot);
      __atomic_store_n(&self.slot, slot + 1, __ATOMIC_RELEASE);
    }
  }
  known = self.slot;
  __atomic_store_n(&taking, 0, __ATOMIC_RELEASE);
  return known - 1;
}

int process_slot_of(const struct region *region, pid_t pid) {
  uint32_t high = __atomic_load_n(&region->header->process_high, __ATOMIC_ACQUIRE);
  for (uint32_t slot = 0; slot < high && slot < REGION_SLOTS; slot++)
    if (__atomic_load_n(&region->processes[slot].owner, __ATOMIC_ACQUIRE) && region->file->slots[slot].pid == pid) return (int)slot;
  return -1;
}

/* A normal end gives the records back at once; children of clone() that run the parent's exit code must not. */
__attribute__((destructor)) static void leave(void) {
  int known = __atomic_load_n(&self.slot, __ATOMIC_ACQUIRE);
  if (known <= 0 || self.pid != getpid()) return;
  const struct region *region = region_get();
  uint64_t mine = identity(self.start, self.pid);
  gone = 1;
  __atomic_store_n(&self.slot, 0, __ATOMIC_SEQ_CST);
  clear(region, (uint32_t)known - 1);
  __atomic_compare_exchange_n(&region->processes[known - 1].owner, &mine, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
