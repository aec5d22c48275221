#define _GNU_SOURCE
#include "state.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAYOUT 3

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct state *mapped;
static int file = -1; /* never closed: closing any descriptor of the file would drop the process's record lock */

static void complain(const char *path, const char *what) {
	fprintf(stderr, "simulated driver: %s: %s; set VGPUCTL_FAKE_STATE to another path\n", path, what);
}

static void prepare(struct state *s) {
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&s->lock, &a);
	s->version = LAYOUT;
	s->fingerprint = cards_fingerprint();
	s->size = sizeof *s;
	pthread_mutex_init(&s->clock.lock, &a);
	s->clock.now = 1000000000;
	for (int i = 0; i < MAX_CARDS; i++)
		s->timeline[i].current = -1;
	s->ready = 1;
}

static void open_state(void) {
	char path[512];
	const char *value = getenv("VGPUCTL_FAKE_STATE");
	if (value && *value)
		snprintf(path, sizeof path, "%s", value);
	else
		snprintf(path, sizeof path, "/dev/shm/vgpuctl-fake-%u-%d-%016llx", (unsigned)getuid(), LAYOUT,
		         (unsigned long long)cards_fingerprint());
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (file < 0) {
		complain(path, strerror(errno));
		return;
	}
	struct stat st;
	while (flock(file, LOCK_EX) && errno == EINTR)
		;
	if (fstat(file, &st) == 0 && st.st_size == 0 && ftruncate(file, sizeof(struct state)) == 0)
		st.st_size = sizeof(struct state);
	void *p = MAP_FAILED;
	if (st.st_size == sizeof(struct state))
		p = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	struct state *s = p == MAP_FAILED ? NULL : p;
	if (s && !s->ready)
		prepare(s);
	if (s && s->version == LAYOUT && s->fingerprint == cards_fingerprint())
		mapped = s;
	else
		complain(path, s ? "belongs to another simulated machine" : "is not a state file");
	flock(file, LOCK_UN);
}

struct state *state_get(void) {
	pthread_once(&once, open_state);
	return mapped;
}

void state_lock(struct state *s) {
	if (pthread_mutex_lock(&s->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&s->lock); /* every figure in the file is a plain store: nothing is half done for long */
}

void state_unlock(struct state *s) {
	pthread_mutex_unlock(&s->lock);
}

static struct flock byte_of(int slot, short type) {
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
}

int state_pid(const struct state *s, int slot) {
	(void)s;
	struct flock f = byte_of(slot, F_WRLCK);
	if (fcntl(file, F_OFD_GETLK, &f) || f.l_type == F_UNLCK)
		return -1;
	return f.l_pid > 0 ? f.l_pid : 0;
}

static void clear(struct state *s, int slot) {
	s->active[slot / 64] &= ~(1ULL << slot % 64);
	memset(&s->slot[slot], 0, sizeof s->slot[slot]);
}

int state_next(const struct state *s, int slot) {
	for (int i = slot + 1; i < MAX_SLOTS; i = (i / 64 + 1) * 64) {
		uint64_t word = s->active[i / 64] >> i % 64;
		if (word)
			return i + __builtin_ctzll(word);
	}
	return -1;
}

void state_reap(struct state *s) {
	for (int i = -1; (i = state_next(s, i)) >= 0;)
		if (state_pid(s, i) < 0)
			clear(s, i);
}

int state_slot_take(struct state *s) {
	int taken = -1;
	state_lock(s);
	state_reap(s);
	for (int i = 0; i < MAX_SLOTS && taken < 0; i++) {
		struct flock f = byte_of(i, F_WRLCK);
		bool free_slot = !(s->active[i / 64] >> i % 64 & 1);
		if (free_slot && fcntl(file, F_SETLK, &f) == 0) {
			s->slot[i].pid = getpid();
			s->slot[i].started = (uint64_t)clock_now();
			s->active[i / 64] |= 1ULL << i % 64;
			taken = i;
		}
	}
	state_unlock(s);
	return taken;
}

void state_slot_leave(struct state *s, int slot) {
	struct flock f = byte_of(slot, F_UNLCK);
	state_lock(s);
	clear(s, slot);
	fcntl(file, F_SETLK, &f);
	state_unlock(s);
}

uint64_t state_used(struct state *s, int card) {
	uint64_t sum = 0;
	for (int i = -1; (i = state_next(s, i)) >= 0;)
		sum += s->slot[i].card[card].bytes;
	return sum;
}
