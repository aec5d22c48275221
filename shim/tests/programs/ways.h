/* The ways to get device memory, by name: one way of the driver each, with what gives it back. */
#ifndef TEST_WAYS_H
#define TEST_WAYS_H

#include "api.h"

struct way;
struct held { const struct way *way; CUptr pointer; unsigned long long handle; void *object; size_t size; };

struct way {
	const char *name;
	CUresult (*take)(struct held *, size_t);
	CUresult (*give)(struct held *);
	int by_handle; /* physical memory: the device is in the request */
};

extern void *stream; /* of stream-ordered memory and launches; NULL at first */

const struct way *way_of(const char *name); /* NULL: no such way */
int has_way(const struct way *w);           /* does this driver have its functions? */
int current_device(void);
size_t granule(size_t n); /* rounded up to 2 MiB */

#endif
