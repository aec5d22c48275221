/* A participant in a card's turns that does not play by the rules.

     rogue FILE HOW SECONDS

   Every 3 ms of CLOCK_MONOTONIC, after `begin`, it does to the file, as HOW says:
     noise     random bytes all over it                      fields    random values in sound records, the header kept
     shorten   cuts it to nothing, to a page's middle, or makes it huge
     unlink    removes it                                    replace   puts another file, a directory or a link in its place
     lock      takes its lock and keeps it
     hog       takes the turn whenever it can, says that it is light, had nothing yet, and will be done in an hour
     wait      always waits for the turn, as the first, and never takes it
     crowd     fills every record with a tenant that is busy and has a limit of 99
   What it knows of the file is the format (layout/region.yaml), not the library. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 4096, TURN = 64, TENANTS = 1024, TENANT = 128, COUNT = 24, MINE = 5 };
static const int64_t begin = 300000000, pause_ns = 3000000, hour = 3600000000000;

static uint64_t seed = 88172645463325252u;

static uint64_t any(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void put(int fd, off_t at, uint64_t value) { (void)!pwrite(fd, &value, sizeof value, at); }

static uint64_t get(int fd, off_t at) {
  uint64_t value = 0;
  (void)!pread(fd, &value, sizeof value, at);
  return value;
}

static void tenant(int fd, int slot, int64_t now, uint64_t wants, uint64_t percent) {
  const uint64_t record[9] = {0x7000 + (uint64_t)slot, 1, (uint64_t)now, wants, (uint64_t)(now + hour), 0, 0, percent, 1ull << 32};
  (void)!pwrite(fd, record, sizeof record, TENANTS + TENANT * slot);
}

static void noise(int fd) {
  uint64_t bytes[BYTES / 8];
  for (int i = 0; i < BYTES / 8; i++) bytes[i] = any();
  (void)!pwrite(fd, bytes, sizeof bytes, 0);
}

/* Values near the edges of what is believed are the interesting ones. */
static uint64_t odd(int64_t now) {
  switch (any() % 8) {
    case 0: return 0;
    case 1: return UINT64_MAX;
    case 2: return (uint64_t)INT64_MAX + any() % 3;
    case 3: return (uint64_t)now;
    case 4: return (uint64_t)now + any() % 2000000000;
    case 5: return (uint64_t)now - any() % 2000000000;
    case 6: return any() % 130;
    default: return any();
  }
}

static void fields(int fd, int64_t now) {
  for (int i = 0; i < 12; i++) {
    uint64_t slot = any() % (COUNT + 1);
    off_t base = slot == COUNT ? TURN : (off_t)(TENANTS + TENANT * slot);
    put(fd, base + (off_t)(any() % (slot == COUNT ? 4 : 9)) * 8, odd(now));
  }
}

static void replace(const char *path, unsigned how) {
  char other[4096];
  snprintf(other, sizeof other, "%s.other", path);
  unlink(path);
  rmdir(path);
  if (how % 3 == 0) {
    if (mkdir(path, 0777)) return;
  } else if (how % 3 == 1) {
    if (symlink("/etc/passwd", path)) return;
  } else {
    int fd = open(other, O_RDWR | O_CREAT, 0666);
    if (fd < 0) return;
    noise(fd);
    close(fd);
    if (rename(other, path)) return;
  }
}

int main(int count, char **words) {
  if (count != 4) return 2;
  const char *path = words[1], *how = words[2];
  int64_t started = now_ns(), end = started + (int64_t)(atof(words[3]) * 1e9);
  int fd = -1, locked = 0;
  for (unsigned round = 0; now_ns() < end; round++) {
    nanosleep(&(struct timespec){0, pause_ns}, NULL);
    int64_t now = now_ns();
    if (now - started < begin) continue;
    if (!strcmp(how, "unlink")) unlink(path);
    if (!strcmp(how, "replace") && round % 20 == 0) replace(path, round / 20);
    if (fd >= 0 && !locked) close(fd);
    if (!locked) fd = open(path, O_RDWR | O_NOFOLLOW);
    if (fd < 0) continue;
    if (!strcmp(how, "noise")) noise(fd);
    if (!strcmp(how, "fields")) fields(fd, now);
    if (!strcmp(how, "shorten")) (void)!ftruncate(fd, (off_t[]){0, 100, 2000, 1 << 20}[round % 4]);
    if (!strcmp(how, "lock") && !locked) locked = fcntl(fd, 37, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1}) == 0;
    if (!strcmp(how, "hog")) {
      uint64_t word = get(fd, TURN);
      tenant(fd, MINE, now, word & 0xff ? (uint64_t)now : 0, 99);
      if (!(word & 0xff)) {
        put(fd, TURN + 8, (uint64_t)now);
        put(fd, TURN + 16, (uint64_t)(now + hour));
        put(fd, TURN, ((word >> 8) + 1) << 8 | (MINE + 1));
      }
    }
    if (!strcmp(how, "wait")) tenant(fd, MINE, now, (uint64_t)started, 99);
    for (int i = 0; !strcmp(how, "crowd") && i < COUNT; i++)
      if (get(fd, TENANTS + TENANT * i) - 0x7000 < COUNT || i > 4) tenant(fd, i, now, (uint64_t)now, 99);
  }
  return 0;
}
