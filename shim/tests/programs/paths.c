/* Which function does each way of looking it up give? Prints "WAY NAME MODULE" lines: the file that holds the address. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int (*getproc1)(const char *, void **, int, uint64_t);
typedef int (*getproc2)(const char *, void **, int, uint64_t, int *);
typedef void *(*lookup)(void *, const char *);

static void show(const char *way, const char *name, void *p) {
	Dl_info where = {0};
	if (p)
		dladdr(p, &where);
	const char *file = where.dli_fname ? strrchr(where.dli_fname, '/') ? strrchr(where.dli_fname, '/') + 1 : where.dli_fname : "-";
	printf("%s %s %s\n", way, name, p ? file : "absent");
}

int main(int argc, char **argv) {
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 3;
	}
	getproc1 old = (getproc1)dlsym(library, "cuGetProcAddress");
	getproc2 new = (getproc2)dlsym(library, "cuGetProcAddress_v2");
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	lookup found = libc ? (lookup)dlsym(libc, "dlsym") : NULL;
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i];
		show("handle", name, dlsym(library, name));
		show("default", name, dlsym(RTLD_DEFAULT, name));
		show("next", name, dlsym(RTLD_NEXT, name));
#ifdef __GLIBC__
		show("dlvsym", name, dlvsym(library, name, "any"));
		lookup by_version = (lookup)dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.2.5");
		show("dlsym@2.2.5", name, by_version ? by_version(library, name) : NULL);
		by_version = (lookup)dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.34");
		show("dlsym@2.34", name, by_version ? by_version(library, name) : NULL);
#endif
		show("dlsym-of-dlsym", name, found ? found(library, name) : NULL);
		char base[64];
		void *p = NULL;
		snprintf(base, sizeof base, "%s", name);
		char *suffix = strstr(base, "_v2");
		if (suffix && !suffix[3])
			*suffix = 0;
		if (old) {
			old(base, &p, 11030, 0);
			show("getproc-v1", name, p);
		}
		p = NULL;
		if (new) {
			new(base, &p, 12000, 0, NULL);
			show("getproc-v2", name, p);
		}
	}
	/* a name that the driver does not have stays missing, and dlerror is as a program expects it */
	dlerror();
	void *missing = dlsym(library, "cuLaunchKernel_v2");
	printf("missing %s %s\n", missing ? "found" : "absent", dlerror() ? "error" : "no-error");
	dlsym(library, "cuInit");
	printf("clean %s\n", dlerror() ? "error" : "no-error");
	return 0;
}
