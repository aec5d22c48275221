#include "entry.h"

#include "driver.h"
#include "log.h"
#include "settings.h"

#include <dlfcn.h>

enum { BY_DLSYM, BY_DLVSYM };

__attribute__((visibility("hidden"))) void *(*entry_real_dlsym)(void *, const char *);
__attribute__((visibility("hidden"))) void *(*entry_real_dlvsym)(void *, const char *, const char *);
__attribute__((visibility("hidden"))) void *(*entry_real_dlopen)(const char *, int);

void *entry_dlsym(void *handle, const char *name);
void *entry_dlvsym(void *handle, const char *name, const char *version);
void *entry_dlopen(const char *path, int flags);

/* This runs in constructors and under the loader's lock: nothing is allocated, no lock is taken. The real functions are
   read from the C library's own symbol table, since both glibc versions of the names are taken by this library. */
static void find_loader(void) {
  static const char *const libraries[][2] = {{"libc.so.6", NULL}, {"libdl.so.2", NULL}, {"ld-musl-", NULL}, {"libc.musl-", NULL}};
  if (__atomic_load_n(&entry_real_dlsym, __ATOMIC_ACQUIRE)) return;
  void *dlsym_found = NULL, *dlvsym_found = NULL, *dlopen_found = NULL;
  for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
    struct elf_object object;
    if (!elf_object_early(libraries[i], &object)) continue;
    if (!dlsym_found) dlsym_found = elf_symbol(&object, "dlsym");
    if (!dlvsym_found) dlvsym_found = elf_symbol(&object, "dlvsym");
    if (!dlopen_found) dlopen_found = elf_symbol(&object, "dlopen");
  }
  entry_real_dlopen = (void *(*)(const char *, int))dlopen_found;
  entry_real_dlvsym = (void *(*)(void *, const char *, const char *))dlvsym_found;
  __atomic_store_n(&entry_real_dlsym, (void *(*)(void *, const char *))dlsym_found, __ATOMIC_RELEASE);
}

int entry_open_flags(int flags) {
  find_loader();
  if (!(flags & RTLD_DEEPBIND) || settings_secure() || !settings_get()->active) return flags;
  return flags & ~RTLD_DEEPBIND;
}

void *entry_open(const char *path, int flags) {
  find_loader();
  return entry_real_dlopen ? entry_real_dlopen(path, flags) : NULL;
}

static void *look(void *handle, const char *name, const char *version, int which) {
  return which == BY_DLSYM ? entry_real_dlsym(handle, name) : entry_real_dlvsym(handle, name, version);
}

static bool in_self(const void *address) {
  const struct elf_object *self = driver_self();
  return (uintptr_t)address >= self->start && (uintptr_t)address < self->end;
}

/* Another preload that looks up dlsym must not get the C library's. */
static struct entry_answer loader_name(void *handle, const char *name, const char *version, int which) {
  void *real = look(handle, name, version, which);
  if (!real) return (struct entry_answer){1, NULL};
  if (real == (void *)entry_real_dlsym) return (struct entry_answer){1, (void *)entry_dlsym};
  if (real == (void *)entry_real_dlvsym) return (struct entry_answer){1, (void *)entry_dlvsym};
  if (real == (void *)entry_real_dlopen) return (struct entry_answer){1, (void *)entry_dlopen};
  return (struct entry_answer){1, real};
}

struct entry_answer entry_lookup(void *handle, const char *name, const char *version, void *caller, int which) {
  const struct entry_answer through = {0, NULL};
  find_loader();
  if (which == BY_DLSYM ? !entry_real_dlsym : !entry_real_dlvsym) return (struct entry_answer){1, NULL};
  if (!name) return through;
  bool driver = (name[0] == 'c' && name[1] == 'u') || elf_begins(name, "nvml");
  bool loader = elf_same(name, "dlsym") || elf_same(name, "dlvsym") || elf_same(name, "dlopen");
  if (!driver && (!loader || handle == RTLD_NEXT)) return through;
  int hook = loader ? -1 : driver_hook_named(name);
  if ((!loader && hook < 0) || settings_secure()) return through;
  struct elf_object from;
  if (in_self(caller) || !elf_object_at(caller, &from) || driver_is(&from) || driver_stacked(&from)) return through;
  if (loader) return loader_name(handle, name, version, which);
  if (handle == RTLD_NEXT) {
    /* From in front the answer is this library anyway; a library loaded later would get past it. */
    if (driver_precedes(&from) || !driver_defines(hook) || !settings_get()->active) return through;
    return (struct entry_answer){1, driver_hook(hook)};
  }

  void *real = look(handle, name, version, which);
  if (!real) return (struct entry_answer){1, NULL};
  if (in_self(real)) {
    /* Found in the global scope because this library is there: true only if the driver has it too. */
    if (driver_defines(hook)) return (struct entry_answer){1, driver_hook(hook)};
    return (struct entry_answer){1, entry_real_dlsym(RTLD_NEXT, name)};
  }
  struct elf_object object;
  if (!elf_object_at(real, &object) || !driver_is(&object) || !settings_get()->active) return (struct entry_answer){1, real};
  return (struct entry_answer){1, driver_hook(hook)};
}

/* The driver decides by version and flags, so its answer comes first; hooks are found by the address that it gives. */
static void exchange(const char *name, void **function) {
  if (!function || !*function) return;
  int hook = driver_hook_at(*function);
  if (hook < 0 || !settings_get()->active) return;
  log_line(LOG_DEBUG, LOG_DRIVER, "cuGetProcAddress %s: hooked", name);
  *function = driver_hook(hook);
}

EXPORT CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
  CUresult result = NEXT(cuGetProcAddress)(name, function, version, flags);
  if (result == CUDA_SUCCESS) exchange(name, function);
  return result;
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status) {
  CUresult result = NEXT(cuGetProcAddress_v2)(name, function, version, flags, status);
  if (result == CUDA_SUCCESS) exchange(name, function);
  return result;
}
