#include "driver.h"

#include "entry.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

enum library { cuda, nvml, LIBRARIES };

struct function {
  const char *name;
  void *hook; /* NULL: called, not hooked */
  enum library library;
};

static const struct function functions[FUNCTIONS] = {
#define HOOK(library, name, result, parameters, effect) {#name, (void *)name, library},
#define CALL(library, name, result, parameters) {#name, NULL, library},
#include "../hooks/hooks.def"
#undef HOOK
#undef CALL
};

enum {
#define HOOK(library, name, result, parameters, effect) +1
#define CALL(library, name, result, parameters)
  HOOKS = 0
#include "../hooks/hooks.def"
#undef HOOK
#undef CALL
};

static const char *const prefixes[LIBRARIES][2] = {{"libcuda.so", NULL}, {"libnvidia-ml.so", NULL}};
static const char *const file_names[LIBRARIES] = {"libcuda.so.1", "libnvidia-ml.so.1"};

__thread int driver_inside;
void *driver_table[FUNCTIONS];
static void *addresses[FUNCTIONS]; /* in the driver itself, even where another preload comes first */
static int loaded[LIBRARIES];

static int absent_cuda(void) { return CUDA_ERROR_NOT_SUPPORTED; }
static int absent_nvml(void) { return NVML_ERROR_FUNCTION_NOT_FOUND; }

const struct elf_object *driver_self(void) {
  static struct elf_object self;
  if (!__atomic_load_n(&self.end, __ATOMIC_ACQUIRE)) {
    struct elf_object found;
    if (!elf_object_at((void *)driver_self, &found)) return &self;
    uintptr_t end = found.end;
    found.end = 0;
    self = found;
    __atomic_store_n(&self.end, end, __ATOMIC_RELEASE);
  }
  return &self;
}

bool driver_is(const struct elf_object *object) {
  const char *name = elf_file_name(object->name);
  for (int i = 0; i < LIBRARIES; i++)
    if (elf_begins(name, prefixes[i][0])) return true;
  return false;
}

enum { MAX_STACKED = 8, MAX_PRECEDING = 16 };
static struct elf_object stacked[MAX_STACKED];
static uintptr_t preceding[MAX_PRECEDING];
static int stacked_count = -1, preceding_count;

struct stack_search {
  const ElfW(Dyn) *main_dynamic;
  uintptr_t main_base;
  bool after_self, first;
  int count;
};

static bool main_needs(const struct stack_search *search, const char *name) {
  const char *strings = NULL;
  for (const ElfW(Dyn) *entry = search->main_dynamic; entry && entry->d_tag != DT_NULL; entry++)
    if (entry->d_tag == DT_STRTAB) {
      uintptr_t value = entry->d_un.d_ptr;
      strings = (const char *)(value >= search->main_base ? value : value + search->main_base);
    }
  for (const ElfW(Dyn) *entry = search->main_dynamic; strings && entry && entry->d_tag != DT_NULL; entry++)
    if (entry->d_tag == DT_NEEDED && strcmp(elf_file_name(strings + entry->d_un.d_val), name) == 0) return true;
  return false;
}

/* The loader lists the program, then the preloads, then what the program needs. */
static int visit_stack(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct stack_search *search = data;
  struct elf_object object = {.name = info->dlpi_name ? info->dlpi_name : "", .base = info->dlpi_addr, .start = UINTPTR_MAX};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_DYNAMIC) object.dynamic = (const void *)start;
    if (header->p_type != PT_LOAD) continue;
    if (start < object.start) object.start = start;
    if (start + header->p_memsz > object.end) object.end = start + header->p_memsz;
  }
  if (!search->after_self && object.base != driver_self()->base && preceding_count < MAX_PRECEDING) preceding[preceding_count++] = object.base;
  if (search->first) {
    search->first = false;
    search->main_dynamic = object.dynamic;
    search->main_base = object.base;
    return 0;
  }
  if (object.base == driver_self()->base) {
    search->after_self = true;
    return 0;
  }
  if (!search->after_self) return 0;
  if (main_needs(search, elf_file_name(object.name)) || driver_is(&object) || search->count == MAX_STACKED) return 1;
  for (int i = 0; i < HOOKS; i++)
    if (elf_symbol(&object, functions[i].name)) {
      stacked[search->count++] = object;
      return 0;
    }
  return 0;
}

static int find_stacked(void) {
  int count = __atomic_load_n(&stacked_count, __ATOMIC_ACQUIRE);
  if (count < 0) {
    struct stack_search search = {.first = true};
    preceding_count = 0;
    dl_iterate_phdr(visit_stack, &search);
    count = search.count;
    __atomic_store_n(&stacked_count, count, __ATOMIC_RELEASE);
  }
  return count;
}

bool driver_stacked(const struct elf_object *object) {
  int count = find_stacked();
  for (int i = 0; i < count; i++)
    if (stacked[i].base == object->base) return true;
  return false;
}

bool driver_precedes(const struct elf_object *object) {
  find_stacked();
  for (int i = 0; i < preceding_count; i++)
    if (preceding[i] == object->base) return true;
  return false;
}

static void *stacked_symbol(const char *name) {
  int count = find_stacked();
  for (int i = 0; i < count; i++) {
    void *symbol = elf_symbol(&stacked[i], name);
    if (symbol) return symbol;
  }
  return NULL;
}

/* Once found, the library is held open: a program that closes it must not leave stale addresses here. */
static bool load(enum library library) {
  if (__atomic_load_n(&loaded[library], __ATOMIC_ACQUIRE)) return true;
  struct elf_object object;
  if (!elf_object_named(prefixes[library], &object)) return false;
  entry_open(object.name, RTLD_LAZY | RTLD_NOLOAD);
  for (int i = 0; i < FUNCTIONS; i++)
    if (functions[i].library == library) addresses[i] = elf_symbol(&object, functions[i].name);
  __atomic_store_n(&loaded[library], 1, __ATOMIC_RELEASE);
  return true;
}

void *driver_find(enum function_id id) {
  const struct function *function = &functions[id];
  void *absent = function->library == cuda ? (void *)absent_cuda : (void *)absent_nvml;
  void *next = function->hook ? stacked_symbol(function->name) : NULL;
  if (!next) {
    if (!load(function->library)) return absent;
    next = addresses[id] ? addresses[id] : absent;
  }
  __atomic_store_n(&driver_table[id], next, __ATOMIC_RELAXED);
  return next;
}

bool driver_has(enum function_id id) {
  return load(functions[id].library) && addresses[id];
}

bool driver_load_nvml(void) {
  if (load(nvml)) return true;
  return entry_open(file_names[nvml], RTLD_LAZY | RTLD_LOCAL) && load(nvml);
}

int driver_hook_named(const char *name) {
  int low = 0, high = HOOKS - 1;
  while (low <= high) {
    int middle = (low + high) / 2, order = strcmp(name, functions[middle].name);
    if (order == 0) return middle;
    if (order < 0)
      high = middle - 1;
    else
      low = middle + 1;
  }
  return -1;
}

int driver_hook_at(const void *address) {
  if (!address || !load(cuda)) return -1;
  for (int i = 0; i < HOOKS; i++)
    if (addresses[i] == address) return i;
  return -1;
}

void *driver_hook(int id) { return functions[id].hook; }

bool driver_defines(int id) { return load(functions[id].library) && addresses[id]; }
