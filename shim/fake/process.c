#define _GNU_SOURCE
#include "driver.h"

#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process process = {.lock = PTHREAD_MUTEX_INITIALIZER, .slot = -1};

CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult code, const char **out);
CUresult cuGetErrorString(CUresult code, const char **out);

static void after_fork(void) {
	process.forked = process.initialised;
}

/* -2 when it is there already. */
static int add_device(int card, int slice) {
	for (int i = 0; i < process.devices; i++)
		if (process.device[i].card == card && process.device[i].slice == slice)
			return -2;
	if (process.devices < MAX_CARDS)
		process.device[process.devices++] = (struct device){.card = card, .slice = slice};
	return 0;
}

/* CUDA_DEVICE_ORDER: the fastest card first unless it says PCI_BUS_ID. */
static void order_cards(int *order) {
	const struct cards *c = cards_get();
	const char *by = getenv("CUDA_DEVICE_ORDER");
	for (int i = 0; i < c->count; i++) {
		int at = i;
		if (!by || strcmp(by, "PCI_BUS_ID"))
			while (at > 0 && c->card[order[at - 1]].sms * c->card[order[at - 1]].mhz < c->card[i].sms * c->card[i].mhz) {
				order[at] = order[at - 1];
				at--;
			}
		order[at] = i;
	}
}

/* One entry of CUDA_VISIBLE_DEVICES: an index in CUDA's order, or the start of a card's or MIG device's UUID. */
static int add_visible(const char *entry, const int *order) {
	const struct cards *c = cards_get();
	char *end;
	long index = strtol(entry, &end, 10);
	if (end != entry && !*end) {
		if (index < 0 || index >= c->count)
			return -1;
		return add_device(order[index], c->card[order[index]].slices ? 0 : -1);
	}
	int card = -1, slice = -1, hits = 0;
	for (int i = 0; i < c->count; i++) {
		if (!strncmp(entry, "GPU-", 4) && !strncmp(c->card[i].uuid, entry, strlen(entry)))
			card = i, slice = c->card[i].slices ? 0 : -1, hits++;
		for (int j = 0; j < c->card[i].slices; j++)
			if (!strncmp(entry, "MIG-", 4) && !strncmp(c->card[i].slice[j].uuid, entry, strlen(entry)))
				card = i, slice = j, hits++;
	}
	return hits == 1 ? add_device(card, slice) : -1;
}

/* The devices up to the first entry that names none; a device named twice leaves none. */
static void find_devices(void) {
	const struct cards *c = cards_get();
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int order[MAX_CARDS];
	order_cards(order);
	process.devices = 0;
	if (!visible) {
		for (int i = 0; i < c->count; i++)
			add_device(order[i], c->card[order[i]].slices ? 0 : -1);
	} else {
		char *text = strdup(visible), *save = NULL;
		int e = 0;
		for (char *entry = strtok_r(text, ", ", &save); entry && !e; entry = strtok_r(NULL, ", ", &save))
			e = add_visible(entry, order);
		if (e == -2)
			process.devices = 0;
		free(text);
	}
	for (int i = 0; i < process.devices; i++)
		if (process.device[i].slice >= 0) { /* CUDA shows one MIG device to a process */
			process.device[0] = process.device[i];
			process.devices = 1;
		}
}

CUresult cuInit(unsigned flags) {
	static bool hooked;
	if (flags)
		return ERR_VALUE;
	if (process.forked)
		return ERR_INIT;
	pthread_mutex_lock(&process.lock);
	CUresult r = OK;
	if (!process.initialised) {
		find_devices();
		process.shared = process.devices ? state_get() : NULL;
		if (process.shared && process.slot < 0)
			process.slot = state_slot_take(process.shared);
		if (!process.devices)
			r = ERR_NO_DEVICE;
		else if (process.slot < 0)
			r = ERR_UNKNOWN;
		else {
			if (!hooked)
				pthread_atfork(NULL, NULL, after_fork);
			hooked = true;
			process.initialised = true;
		}
	}
	pthread_mutex_unlock(&process.lock);
	return r;
}

/* A child made without fork's handlers runs this too: the slot is not its own. */
__attribute__((destructor)) static void unload(void) {
	if (process.initialised && !process.forked && process.shared->slot[process.slot].pid == getpid())
		state_slot_leave(process.shared, process.slot);
	process.initialised = false;
}

CUresult enter(int need) {
	if (!process.initialised || process.forked)
		return ERR_INIT;
	if (need & CONTEXT) {
		CUresult r = context_check(context_current());
		if (r)
			return r;
	}
	pthread_mutex_lock(&process.lock);
	if (need & UNSAFE && process.captures && capture_forbids()) {
		pthread_mutex_unlock(&process.lock);
		return ERR_CAPTURE_UNSUPPORTED;
	}
	return OK;
}

CUresult leave(CUresult result) {
	pthread_mutex_unlock(&process.lock);
	return result;
}

bool is_kind(const void *handle, enum kind kind) {
	return (uintptr_t)handle > 4096 && (uintptr_t)handle % 8 == 0 && ((const struct head *)handle)->kind == kind;
}

/* Objects that ended stay readable, so that a handle used after its end is an error and not a crash. */
static struct dead { struct head head; size_t size; struct dead *next; } *graves;
static size_t grave_count;

void *object_new(enum kind kind, size_t size) {
	if (size < sizeof(struct dead))
		size = sizeof(struct dead);
	struct head *h = calloc(1, size);
	if (h)
		h->kind = kind;
	return h;
}

void object_end(void *object) {
	static struct dead *oldest_end;
	struct dead *d = object;
	d->head.kind = K_DEAD;
	d->next = NULL;
	if (oldest_end)
		oldest_end->next = d;
	else
		graves = d;
	oldest_end = d;
	if (++grave_count > 4096) {
		struct dead *first = graves;
		graves = first->next;
		grave_count--;
		free(first);
	}
}

CUresult cuDriverGetVersion(int *version) {
	if (!version)
		return ERR_VALUE;
	*version = driver_get()->cuda;
	return OK;
}

static const struct { int code; const char *name; } errors[] = {
#include "errors.inc"
};

CUresult cuGetErrorName(CUresult code, const char **out) {
	if (!out)
		return ERR_VALUE;
	*out = NULL;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code)
			*out = errors[i].name;
	return *out ? OK : ERR_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char **out) {
	return cuGetErrorName(code, out);
}
