/* Modules and libraries: what an image holds is read from PTX text; of a binary image every name is taken to be in it. */
#define _GNU_SOURCE
#include "driver.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE_BYTES 65536
#define FATBIN_WRAPPER 0x466243b1u
#define FATBIN 0xba55ed50u

static struct module *modules;

static bool is_text(const char *image) {
	while (isspace((unsigned char)*image))
		image++;
	return image[0] == '.' || image[0] == '/';
}

static bool is_binary(const void *image) {
	uint32_t magic;
	memcpy(&magic, image, 4);
	return magic == FATBIN || magic == FATBIN_WRAPPER || !memcmp(image, "\177ELF", 4);
}

/* The word after `key` where it stands alone, from *at on; NULL when there is none. */
static const char *word_after(const char *at, const char *key, char *out, size_t size) {
	while ((at = strstr(at, key))) {
		at += strlen(key);
		if (!isspace((unsigned char)*at))
			continue;
		while (isspace((unsigned char)*at))
			at++;
		size_t n = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$%");
		if (n && n < size) {
			memcpy(out, at, n);
			out[n] = 0;
			return at + n;
		}
	}
	return NULL;
}

static bool has_entry(const struct module *m, const char *name) {
	char word[128];
	if (!m->named)
		return true;
	for (const char *p = m->text; (p = word_after(p, ".entry", word, sizeof word));)
		if (!strcmp(word, name))
			return true;
	return false;
}

/* `.global .align N .b8 name[bytes]` */
static size_t global_size(const struct module *m, const char *name) {
	char pattern[160];
	if (!m->named)
		return 8;
	snprintf(pattern, sizeof pattern, " %s[", name);
	const char *p = strstr(m->text, pattern);
	return p ? strtoull(p + strlen(pattern), NULL, 10) : 0;
}

static CUresult load(const void *image, struct context *c, struct module **out) {
	bool text = is_text(image);
	if (!text && !is_binary(image))
		return ERR_IMAGE;
	if (text && !strstr(image, ".version"))
		return 218;
	struct module *m = object_new(K_MODULE, sizeof *m);
	if (!m)
		return ERR_MEMORY;
	m->context = c;
	m->named = text;
	m->text = text ? strdup(image) : NULL;
	m->bytes = CODE_BYTES;
	if (text) /* .global arrays */
		for (const char *p = m->text; (p = strstr(p, ".global "));) {
			const char *open = strpbrk(p, "[;");
			m->bytes += open && *open == '[' ? strtoull(open + 1, NULL, 10) : 8;
			p += 8;
		}
	m->bytes = (m->bytes + 511) / 512 * 512;
	CUresult r = memory_charge_small(c, m->bytes);
	if (r) {
		free(m->text);
		object_end(m);
		return r;
	}
	m->next = modules;
	modules = m;
	*out = m;
	return OK;
}

static void unload(struct module *m) {
	for (struct module **p = &modules; *p; p = &(*p)->next)
		if (*p == m) {
			*p = m->next;
			break;
		}
	for (struct function *f = m->functions, *next; f; f = next) {
		next = f->next;
		object_end(f);
	}
	if (is_kind(m->context, K_CONTEXT))
		memory_refund_small(m->context, m->bytes);
	free(m->text);
	object_end(m);
}

static CUresult get_function(struct module *m, const char *name, struct function **out) {
	for (struct function *f = m->functions; f; f = f->next)
		if (!strcmp(f->name, name)) {
			*out = f;
			return OK;
		}
	if (!has_entry(m, name) || strlen(name) >= sizeof (*out)->name)
		return ERR_NOT_FOUND;
	struct function *f = object_new(K_FUNCTION, sizeof *f);
	if (!f)
		return ERR_MEMORY;
	size_t n = strlen(name);
	strcpy(f->name, name);
	f->timed = n > 3 && !strcmp(name + n - 3, "_ns");
	f->logs = n > 7 && !strcmp(name + n - 7, "_log_ns");
	f->module = m;
	f->next = m->functions;
	m->functions = f;
	*out = f;
	return OK;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	return leave(out && image ? load(image, context_current(), out) : ERR_VALUE);
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count, int *options, void **values) {
	(void)count, (void)options, (void)values;
	return cuModuleLoadData(out, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image) { return cuModuleLoadData(out, image); }

CUresult cuModuleLoad(CUmodule *out, const char *path) {
	if (!out || !path)
		return ERR_VALUE;
	FILE *f = fopen(path, "re");
	if (!f)
		return ERR_FILE;
	char *image = calloc(1, (1 << 20) + 1);
	size_t n = image ? fread(image, 1, 1 << 20, f) : 0;
	fclose(f);
	CUresult r = n ? cuModuleLoadData(out, image) : ERR_FILE;
	free(image);
	return r;
}

CUresult cuModuleUnload(CUmodule m) {
	CUresult r = enter(CONTEXT | UNSAFE);
	if (r)
		return r;
	if (!is_kind(m, K_MODULE))
		return leave(ERR_HANDLE);
	unload(m);
	return leave(OK);
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!out || !name || !*name)
		return leave(ERR_VALUE);
	return leave(is_kind(m, K_MODULE) ? get_function(m, name, out) : ERR_HANDLE);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule m, const char *name) {
	CUresult r = enter(CONTEXT);
	if (r)
		return r;
	if (!name || (!pointer && !bytes))
		return leave(ERR_VALUE);
	if (!is_kind(m, K_MODULE))
		return leave(ERR_HANDLE);
	size_t size = global_size(m, name);
	if (!size)
		return leave(ERR_NOT_FOUND);
	if (pointer) {
		struct block *b = block_new(B_GLOBAL, size, context_current()->device);
		if (!b)
			return leave(ERR_MEMORY);
		*pointer = b->base;
	}
	if (bytes)
		*bytes = size;
	return leave(OK);
}

CUresult cuModuleGetLoadingMode(int *out) {
	if (!out)
		return ERR_VALUE;
	*out = 2; /* lazy */
	return OK;
}

static CUresult about(const void *f, const void *out) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out)
		return leave(ERR_VALUE);
	return is_kind(f, K_FUNCTION) ? OK : leave(ERR_HANDLE);
}

CUresult cuFuncGetAttribute(int *out, int attribute, CUfunction f) {
	static const int values[] = {1024, 0, 0, 0, 32, 70, 70, 0, 49152, -1};
	CUresult r = about(f, out);
	if (r)
		return r;
	if (attribute < 0 || attribute > 15)
		return leave(ERR_VALUE);
	*out = attribute < 10 ? values[attribute] : 0;
	return leave(OK);
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction f) {
	CUresult r = about(f, out);
	if (r)
		return r;
	*out = f->module;
	return leave(OK);
}

CUresult cuFuncGetName(const char **out, CUfunction f) {
	CUresult r = about(f, out);
	if (r)
		return r;
	*out = f->name;
	return leave(OK);
}

CUresult cuFuncIsLoaded(int *out, CUfunction f) {
	CUresult r = about(f, out);
	if (r)
		return r;
	*out = 1;
	return leave(OK);
}

static CUresult function_set(CUfunction f) {
	CUresult r = about(f, f);
	return r ? r : leave(OK);
}

CUresult cuFuncLoad(CUfunction f) { return function_set(f); }
CUresult cuFuncSetAttribute(CUfunction f, int attribute, int value) { (void)attribute, (void)value; return function_set(f); }
CUresult cuFuncSetCacheConfig(CUfunction f, int config) { (void)config; return function_set(f); }
CUresult cuFuncSetSharedMemConfig(CUfunction f, int config) { (void)config; return function_set(f); }

/* A library is a module of the current device's primary context, made when its first kernel is asked for. */
struct library { struct head head; struct module *module; };

CUresult cuLibraryLoadData(CUlibrary *out, const void *code, int *jit, void **jit_values, unsigned jit_count, int *options, void **values,
                           unsigned count) {
	(void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
	CUresult r = enter(UNSAFE);
	if (r)
		return r;
	if (!out || !code)
		return leave(ERR_VALUE);
	struct context *c = context_current() ? context_current() : process.contexts;
	if (!c)
		return leave(ERR_CONTEXT);
	struct library *l = object_new(K_LIBRARY, sizeof *l);
	if (!l || (r = load(code, c, &l->module))) {
		if (l)
			object_end(l);
		return leave(l ? r : ERR_MEMORY);
	}
	*out = l;
	return leave(OK);
}

CUresult cuLibraryUnload(CUlibrary l) {
	CUresult r = enter(UNSAFE);
	if (r)
		return r;
	if (!is_kind(l, K_LIBRARY))
		return leave(ERR_HANDLE);
	unload(l->module);
	object_end(l);
	return leave(OK);
}

CUresult cuLibraryGetModule(CUmodule *out, CUlibrary l) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!is_kind(l, K_LIBRARY) || !out)
		return leave(out ? ERR_HANDLE : ERR_VALUE);
	*out = l->module;
	return leave(OK);
}

/* A kernel handle and a function handle are the same object here. */
CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary l, const char *name) {
	CUresult r = enter(ANY);
	if (r)
		return r;
	if (!out || !name)
		return leave(ERR_VALUE);
	return leave(is_kind(l, K_LIBRARY) ? get_function(l->module, name, (struct function **)out) : ERR_HANDLE);
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel k) {
	CUresult r = about(k, out);
	if (r)
		return r;
	*out = (CUfunction)k;
	return leave(OK);
}

CUresult cuKernelGetName(const char **out, CUkernel k) { return cuFuncGetName(out, (CUfunction)k); }
