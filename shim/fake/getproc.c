/* cuGetProcAddress: from (name, version, kind of default stream) to the exported function, as data/getproc.tsv says. */
#include "getproc.h"

#include "driver.h"

#include <string.h>

enum { FOUND, NO_SYMBOL, NO_VERSION };

static const struct getproc *find(const char *name, int version, enum mode other, bool *known) {
	const struct getproc *best = NULL;
	for (const struct getproc *r = getproc_rows; r->name; r++) {
		if (strcmp(r->name, name) || r->since > driver_get()->cuda)
			continue;
		*known = true;
		if (r->minimum <= version && r->mode != other && (!best || r->minimum > best->minimum))
			best = r;
	}
	return best;
}

CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
	if (!name || !out || flags > 2)
		return ERR_VALUE;
	bool known = false;
	const struct getproc *r = find(name, version, flags == 2 ? LEGACY : PER_THREAD, &known);
	if (!r && flags == 2) /* no twin of its own at that version */
		r = find(name, version, PER_THREAD, &known);
	*out = r ? r->function : NULL;
	if (!status)
		return r ? OK : ERR_NOT_FOUND;
	*status = r ? FOUND : known ? NO_VERSION : NO_SYMBOL;
	return OK;
}

CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) {
	return cuGetProcAddress_v2(name, out, version, flags, NULL);
}
