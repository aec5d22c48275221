#include "core_card_file.h"

#include "core_time.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif

static const char directory[] = "/tmp/vgpulock"; /* upstream's plugin mounts the host's into every vGPU container */
static const int64_t open_interval = SECOND, repair_interval = 100 * MILLISECOND, check_interval = SECOND;
static const int64_t refused_most = 50 * MILLISECOND; /* the lock is held for some microseconds */
enum { LOCK_TRIES = 4, MOST_REFUSALS = 20 };

/* The UUID stands in a file that the tenant writes. */
static bool path_of(const char *uuid, char path[128]) {
  size_t length = strspn(uuid, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-");
  if (length < 8 || length > 95 || uuid[length]) return false;
  return snprintf(path, 128, "%s/%s%s", directory, uuid, TURNS_SUFFIX) < 128;
}

/* The program may have closed the descriptor and opened something else under its number. */
static bool ours(const struct card_handle *handle, struct stat *status) {
  return fstat(handle->fd, status) == 0 && status->st_dev == handle->device && status->st_ino == handle->inode;
}

static void drop(struct card_handle *handle, int64_t next_open) {
  struct stat status;
  if (ours(handle, &status)) close(handle->fd);
  handle->fd = -1;
  handle->next_open = next_open;
}

static void tell(const char *what, const char *why) {
  static int told;
  if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) log_line(LOG_WARNING, LOG_CARD, "cannot use %s: %s; containers on this card do not take turns", what, why);
}

static bool lock(const struct card_handle *handle, short type) {
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  return fcntl(handle->fd, F_OFD_SETLK, &range) == 0;
}

/* Not made by O_CREAT where it exists: in a sticky directory the kernel may refuse that for another user's file. */
static bool open_file(struct card_handle *handle, const char *path) {
  const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  int fd = open(path, flags);
  if (fd < 0 && errno == ENOENT) {
    fd = open(path, flags | O_CREAT | O_EXCL, 0666);
    if (fd >= 0) fchmod(fd, 0666);
    if (fd < 0 && errno == EEXIST) fd = open(path, flags);
  }
  struct stat status;
  if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
    close(fd);
    errno = EINVAL;
    fd = -1;
  }
  if (fd >= 0 && fd <= STDERR_FILENO) {
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    fd = higher;
  }
  if (fd < 0) {
    if (errno != ENOENT) tell(path, strerror(errno));
    return false;
  }
  handle->fd = fd;
  handle->device = status.st_dev;
  handle->inode = status.st_ino;
  handle->refused = handle->refusals = 0;
  return true;
}

static bool sound(const struct card_file *file) { return file->magic == TURNS_MAGIC && file->major == TURNS_MAJOR; }

/* Times that can be added and subtracted; one beyond them is as good as none. */
static void bound(uint64_t *time) {
  if (*time > INT64_MAX / 4) *time = 0;
}

static bool fetch(const struct card_handle *handle, struct card_file *file) {
  if (pread(handle->fd, file, sizeof *file, 0) != (ssize_t)sizeof *file) return false;
  bound(&file->turn.since);
  bound(&file->turn.ends);
  for (int i = 0; i < CARD_TENANTS; i++) {
    struct card_tenant *tenant = &file->tenants[i];
    bound(&tenant->seen);
    bound(&tenant->wants);
    bound(&tenant->frees);
    bound(&tenant->account);
    bound(&tenant->launch);
    if (tenant->finish != CARD_FINISH_UNKNOWN) bound(&tenant->finish);
  }
  return true;
}

/* A file that is new, cut short or written over begins anew. */
static void repair(struct card_handle *handle) {
  static const struct card_file empty = {.magic = TURNS_MAGIC, .major = TURNS_MAJOR};
  struct card_file file;
  if (!lock(handle, F_WRLCK)) return;
  if (!fetch(handle, &file) || !sound(&file)) {
    ssize_t written = pwrite(handle->fd, &empty, sizeof empty, 0);
    (void)written; /* read again by whoever looks next */
  }
  lock(handle, F_UNLCK);
}

bool card_file_read(struct card_handle *handle, const char *uuid, int64_t now, struct card_file *file) {
  char path[128];
  struct stat status, named;
  if (handle->fd <= 0) {
    if (now < handle->next_open || !path_of(uuid, path)) return false;
    handle->next_open = now + open_interval;
    if (!open_file(handle, path)) return false;
    handle->next_check = now + check_interval;
  }
  if (!ours(handle, &status) || status.st_nlink == 0) {
    drop(handle, now + repair_interval);
    return false;
  }
  if (now >= handle->next_check) {
    handle->next_check = now + check_interval;
    if (!path_of(uuid, path) || lstat(path, &named) != 0 || named.st_ino != handle->inode || named.st_dev != handle->device) {
      drop(handle, now);
      return false;
    }
  }
  if (handle->refusals > MOST_REFUSALS && now - handle->refused > refused_most) {
    tell(directory, "somebody holds a file's lock");
    drop(handle, now + open_interval);
    return false;
  }
  for (int tries = 0; tries < 2; tries++) {
    if (fetch(handle, file) && sound(file)) return true;
    if (!tries) repair(handle);
  }
  drop(handle, now + repair_interval);
  return false;
}

static off_t place(int slot) { return (off_t)(offsetof(struct card_file, tenants) + (size_t)slot * sizeof(struct card_tenant)); }

void card_file_write(const struct card_handle *handle, int slot, const struct card_tenant *tenant) {
  struct stat status;
  if (!ours(handle, &status)) return;
  ssize_t written = pwrite(handle->fd, tenant, sizeof *tenant, place(slot));
  (void)written; /* a hint that was not written is one that others do not have */
}

static bool enter(struct card_handle *handle, int64_t now) {
  struct stat status;
  if (!ours(handle, &status)) return false;
  for (int i = 0; i < LOCK_TRIES; i++) {
    if (!lock(handle, F_WRLCK)) continue;
    handle->refused = handle->refusals = 0;
    return true;
  }
  if (!handle->refusals++) handle->refused = now;
  return false;
}

bool card_file_swap(struct card_handle *handle, uint64_t expected, const struct card_turn *turn, int64_t now) {
  struct card_turn found;
  const off_t at = offsetof(struct card_file, turn);
  if (!enter(handle, now)) return false;
  bool same = pread(handle->fd, &found, sizeof found, at) == (ssize_t)sizeof found && found.word == expected;
  bool done = same && pwrite(handle->fd, turn, sizeof *turn, at) == (ssize_t)sizeof *turn;
  lock(handle, F_UNLCK);
  return done;
}

int card_file_slot(struct card_handle *handle, const struct card_tenant *tenant, int64_t stale, int64_t now) {
  struct card_file file;
  int found = -1;
  if (!enter(handle, now)) return -1;
  if (fetch(handle, &file)) {
    for (int i = 0; i < CARD_TENANTS && (found < 0 || file.tenants[found].owner != tenant->owner); i++) {
      int64_t age = now - (int64_t)file.tenants[i].seen;
      bool free = !file.tenants[i].owner || age > stale || age < -stale;
      if (file.tenants[i].owner == tenant->owner || (free && found < 0)) found = i;
    }
    if (found >= 0) card_file_write(handle, found, tenant);
  }
  lock(handle, F_UNLCK);
  return found;
}
