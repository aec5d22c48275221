/* Asks cuGetProcAddress for each line of standard input, "NAME VERSION FLAGS"; prints the code, the status, and the symbol and file
 * of the answer. Argument 1 asks the version without a status. */
#define _GNU_SOURCE
#include "api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
	char line[256], name[128];
	int version, old = argc > 1 && !strcmp(argv[1], "1");
	unsigned long long flags;
	if (api_load("dlsym"))
		return 3;
	if (old ? !cu.cuGetProcAddress : !cu.cuGetProcAddress_v2)
		return 4;
	while (fgets(line, sizeof line, stdin)) {
		void *found = (void *)-1;
		int status = -1;
		Dl_info where = {0};
		if (sscanf(line, "%127s %d %llu", name, &version, &flags) != 3)
			return 5;
		int code = old ? cu.cuGetProcAddress(name, &found, version, flags) : cu.cuGetProcAddress_v2(name, &found, version, flags, &status);
		if (found && found != (void *)-1)
			dladdr(found, &where);
		const char *file = where.dli_fname ? strrchr(where.dli_fname, '/') : NULL;
		printf("%s %d %llu: %d %d %s %s\n", name, version, flags, code, status, where.dli_sname ? where.dli_sname : found ? "?" : "null",
		       file ? file + 1 : "-");
	}
	return 0;
}
