#define _GNU_SOURCE
#include "card.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef DRIVER
#error "DRIVER must name a directory of data/drivers.tsv"
#endif

struct model {
	const char *key, *name;
	int memory_mib, reserved_mib, context_mib, sms, compute, mhz, memory_mhz, bus_bits, pci_device, watts, slices;
};

static const struct model models[] = {
#include "cards.inc"
};
static const struct driver drivers[] = {
#include "drivers.inc"
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct cards found;
static uint64_t fingerprint = 14695981039346656037ULL;

const struct driver *driver_get(void) {
	for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
		if (!strcmp(drivers[i].directory, DRIVER))
			return &drivers[i];
	abort();
}

static void hash(const char *text) {
	for (; *text; text++)
		fingerprint = (fingerprint ^ (unsigned char)*text) * 1099511628211ULL;
}

static void make_uuid(char *out, const char *prefix, const char *text, int index) {
	uint64_t h[2];
	for (int half = 0; half < 2; half++) {
		h[half] = 0x9e3779b97f4a7c15ULL * (uint64_t)(index + 1 + 64 * half);
		for (const char *c = text; *c; c++)
			h[half] = (h[half] ^ (unsigned char)*c) * 1099511628211ULL;
		h[half] ^= h[half] >> 29;
	}
	sprintf(out, "%s-%08x-%04x-4%03x-8%03x-%012llx", prefix, (unsigned)(h[0] >> 32), (unsigned)(h[0] >> 16) & 0xffff,
	        (unsigned)h[0] & 0xfff, (unsigned)(h[1] >> 52), (unsigned long long)(h[1] & 0xffffffffffffULL));
}

/* A MIG profile such as 2g.20gb: so many of the card's slices and so much memory. */
static int add_slice(struct card *c, const char *profile) {
	unsigned parts, gb;
	if (sscanf(profile, "%ug.%ugb", &parts, &gb) != 2 || c->max_slices == 0 || (int)parts > c->max_slices || c->slices == MAX_SLICES)
		return -1;
	struct slice *s = &c->slice[c->slices];
	snprintf(s->profile, sizeof s->profile, "%.20s", profile);
	s->memory = (uint64_t)gb * 1024 * MIB * 97 / 100 & ~(MIB - 1);
	s->sms = c->sms / (c->max_slices + 1) * (int)parts;
	s->gpu_instance = c->slices + 1;
	make_uuid(s->uuid, "MIG", c->uuid, c->slices);
	c->slices++;
	return 0;
}

static int set_option(struct card *c, const char *key, char *value) {
	if (!strcmp(key, "uuid") && strlen(value) < sizeof c->uuid)
		strcpy(c->uuid, value);
	else if (!strcmp(key, "memory"))
		c->memory = strtoull(value, NULL, 10) * MIB;
	else if (!strcmp(key, "context"))
		c->context = strtoull(value, NULL, 10) * MIB;
	else if (!strcmp(key, "reserved"))
		c->reserved = strtoull(value, NULL, 10) * MIB;
	else if (!strcmp(key, "sms"))
		c->sms = atoi(value);
	else if (!strcmp(key, "compute"))
		c->compute = (int)(strtod(value, NULL) * 10 + 0.5);
	else if (!strcmp(key, "mig")) {
		for (char *save = NULL, *p = strtok_r(value, "+", &save); p; p = strtok_r(NULL, "+", &save))
			if (add_slice(c, p))
				return -1;
	} else
		return -1;
	return 0;
}

/* One entry: [COUNTx]MODEL[:key=value]... */
static int add_entry(char *entry) {
	char *save = NULL, *head = strtok_r(entry, ":", &save), *name = head, *end;
	if (!head)
		return -1;
	unsigned long count = strtoul(head, &end, 10);
	if (end != head && *end == 'x')
		name = end + 1;
	else
		count = 1;
	const struct model *m = NULL;
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		if (!strcmp(models[i].key, name))
			m = &models[i];
	if (!m || count < 1 || found.count + count > MAX_CARDS)
		return -1;
	struct card card = {.memory = m->memory_mib * MIB, .reserved = m->reserved_mib * MIB, .context = m->context_mib * MIB,
	                    .sms = m->sms, .compute = m->compute, .mhz = m->mhz, .memory_mhz = m->memory_mhz,
	                    .bus_bits = m->bus_bits, .pci_device = m->pci_device, .watts = m->watts, .max_slices = m->slices};
	snprintf(card.model, sizeof card.model, "%s", m->key);
	snprintf(card.name, sizeof card.name, "%s", m->name);
	char *options = save && *save ? strdup(save) : NULL;
	for (unsigned long i = 0; i < count; i++) {
		struct card *c = &found.card[found.count];
		*c = card;
		c->pci_bus = found.count + 1;
		snprintf(c->serial, sizeof c->serial, "165000000%04d", found.count);
		make_uuid(c->uuid, "GPU", c->model, found.count);
		found.count++;
		char *copy = options ? strdup(options) : NULL, *inner = NULL;
		for (char *o = copy ? strtok_r(copy, ":", &inner) : NULL; o; o = strtok_r(NULL, ":", &inner)) {
			char *equals = strchr(o, '=');
			if (!equals)
				return -1;
			*equals = 0;
			if (set_option(c, o, equals + 1))
				return -1;
		}
		free(copy);
	}
	free(options);
	return 0;
}

static char *read_text(const char *value) {
	if (value[0] != '/' && value[0] != '.')
		return strdup(value);
	FILE *f = fopen(value, "re");
	if (!f)
		return NULL;
	char *text = calloc(1, 65536), line[1024];
	while (text && fgets(line, sizeof line, f))
		if (line[0] != '#' && strlen(text) + strlen(line) + 2 < 65536)
			strcat(text, line);
	fclose(f);
	return text;
}

static void drop_unsupported(void) {
	const struct driver *d = driver_get();
	int kept = 0;
	for (int i = 0; i < found.count; i++) {
		struct card *c = &found.card[i];
		if (c->compute < d->lowest_compute || c->compute > d->highest_compute)
			fprintf(stderr, "simulated driver %s: %s is not supported by this driver, ignored\n", d->version, c->name);
		else
			found.card[kept++] = *c;
	}
	found.count = kept;
}

static void load(void) {
	const char *value = getenv("VGPUCTL_FAKE_GPUS");
	if (!value || !*value)
		value = "1xT4-16GB";
	char *text = read_text(value), *save = NULL;
	if (!text) {
		fprintf(stderr, "simulated driver: VGPUCTL_FAKE_GPUS: cannot read the file %s\n", value);
		return;
	}
	hash(DRIVER);
	hash(text);
	for (char *entry = strtok_r(text, ", \t\r\n", &save); entry; entry = strtok_r(NULL, ", \t\r\n", &save)) {
		char shown[128];
		snprintf(shown, sizeof shown, "%s", entry);
		if (add_entry(entry)) {
			fprintf(stderr, "simulated driver: VGPUCTL_FAKE_GPUS: cannot read \"%s\"; the form is [COUNTx]MODEL[:key=value]..., "
			                "for example 2xT4-16GB, at most %d cards; models:", shown, MAX_CARDS);
			for (size_t i = 0; i < sizeof models / sizeof *models; i++)
				fprintf(stderr, " %s", models[i].key);
			fprintf(stderr, "\n");
			found.count = 0;
			break;
		}
	}
	free(text);
	drop_unsupported();
}

const struct cards *cards_get(void) {
	pthread_once(&once, load);
	return &found;
}

uint64_t cards_fingerprint(void) {
	cards_get();
	return fingerprint;
}
