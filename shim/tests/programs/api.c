#define _GNU_SOURCE
#include "api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct api cu;

static const struct { const char *name; size_t at; } names[] = {
#define ROW(name, args) {#name, offsetof(struct api, name)},
	API(ROW)
#undef ROW
};

const char spin_ptx[] =
	".version 5.0\n.target sm_50\n.address_size 64\n"
	".visible .entry spin_ns(.param .u64 duration)\n{\n"
	".reg .pred %p;\n.reg .u64 %now, %end, %length;\n"
	"ld.param.u64 %length, [duration];\nmov.u64 %now, %globaltimer;\nadd.u64 %end, %now, %length;\n"
	"again:\nmov.u64 %now, %globaltimer;\nsetp.lt.u64 %p, %now, %end;\n@%p bra again;\nret;\n}\n";

static void *by_getproc(void *library, const char *name) {
	char base[64];
	void *found = NULL;
	int version = 0;
	*(void **)&cu.cuGetProcAddress_v2 = dlsym(library, "cuGetProcAddress_v2");
	*(void **)&cu.cuGetProcAddress = dlsym(library, "cuGetProcAddress");
	if (!cu.cuGetProcAddress)
		return dlsym(library, name);
	cu.cuDriverGetVersion(&version);
	snprintf(base, sizeof base, "%s", name);
	char *suffix = strstr(base, "_v2");
	if (suffix && !suffix[3]) {
		*suffix = 0;
		version = 10020; /* later ones would give _v3 of some */
	} else if (version > 12000)
		version = 12000;
	if (cu.cuGetProcAddress_v2)
		cu.cuGetProcAddress_v2(base, &found, version, 0, NULL);
	else
		cu.cuGetProcAddress(base, &found, version, 0);
	return found ? found : dlsym(library, name);
}

int api_load(const char *how) {
	void *library = dlopen("libcuda.so.1", strcmp(how, "default") && strcmp(how, "next") ? RTLD_NOW : RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
	*(void **)&cu.cuDriverGetVersion = dlsym(library, "cuDriverGetVersion");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		void *p = NULL;
		if (!strcmp(how, "dlsym"))
			p = dlsym(library, names[i].name);
		else if (!strcmp(how, "next"))
			p = dlsym(RTLD_NEXT, names[i].name);
		else if (!strcmp(how, "default"))
			p = dlsym(RTLD_DEFAULT, names[i].name);
#ifdef __GLIBC__
		else if (!strcmp(how, "dlvsym"))
			p = dlvsym(library, names[i].name, "any");
#endif
		else if (!strcmp(how, "getproc"))
			p = by_getproc(library, names[i].name);
		memcpy((char *)&cu + names[i].at, &p, sizeof p);
	}
	if (!cu.cuInit) {
		fprintf(stderr, "no cuInit by %s\n", how);
		return -1;
	}
	return 0;
}
