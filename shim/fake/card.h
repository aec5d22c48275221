/* The cards that the simulation shows: a list of models with their facts, chosen by VGPUCTL_FAKE_GPUS. */
#ifndef FAKE_CARD_H
#define FAKE_CARD_H

#include <stdint.h>

#define MAX_CARDS 16
#define MAX_SLICES 7
#define MIB (1ULL << 20)

struct slice {          /* a MIG device: one compute instance that fills its GPU instance */
	char profile[24];   /* for example "2g.20gb" */
	char uuid[48];      /* "MIG-" and a UUID */
	uint64_t memory;    /* bytes */
	int sms, gpu_instance;
};

struct card {
	char model[32], name[64], uuid[48], serial[16];
	uint64_t memory, reserved, context; /* bytes: as NVML's total, of it the driver's own, taken by each context */
	int sms, compute;                   /* compute: 90 is 9.0 */
	int mhz, memory_mhz, bus_bits, pci_device, pci_bus, watts, max_slices;
	int slices;                         /* MIG is on when > 0 */
	struct slice slice[MAX_SLICES];
};

struct driver { const char *directory, *version; int cuda, lowest_compute, highest_compute; };

struct cards { int count; struct card card[MAX_CARDS]; };

/* The cards of VGPUCTL_FAKE_GPUS that `driver` can drive, read once. A text that cannot be read is reported on standard error
 * and leaves no card. */
const struct cards *cards_get(void);
const struct driver *driver_get(void);

/* A number made of everything that the specification says, to tell two simulated machines apart. */
uint64_t cards_fingerprint(void);

#endif
