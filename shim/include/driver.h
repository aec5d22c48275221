/* The real driver: where each function of hooks.def goes on to. */
#ifndef VGPU_DRIVER_H
#define VGPU_DRIVER_H

#include "cuda_abi.h"
#include "elf_find.h"
#include "nvml_abi.h"

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

enum function_id {
#define HOOK(library, name, result, parameters, effect) F_##name,
#define CALL(library, name, result, parameters) F_##name,
#include "../hooks/hooks.def"
#undef HOOK
#undef CALL
  FUNCTIONS
};

#define HOOK(library, name, result, parameters, effect) \
  typedef result(*fn_##name) parameters;                \
  EXPORT result name parameters;
#define CALL(library, name, result, parameters) typedef result(*fn_##name) parameters;
#include "../hooks/hooks.def"
#undef HOOK
#undef CALL

extern void *driver_table[FUNCTIONS];

/* Not 0 while this library itself calls the driver: hooks that the driver's own calls meet then only pass on. */
extern __thread int driver_inside;

/* Looks the function up; an absent one becomes a function that returns "not supported". */
void *driver_find(enum function_id id);

static inline void *driver_function(enum function_id id) {
  void *function = __atomic_load_n(&driver_table[id], __ATOMIC_RELAXED);
  return __builtin_expect(function != NULL, 1) ? function : driver_find(id);
}

/* The function that the hook of this name goes on to. */
#define NEXT(name) ((fn_##name)driver_function(F_##name))

/* Whether the driver, of whatever age, has that function. */
bool driver_has(enum function_id id);
#define HAVE(name) driver_has(F_##name)

/* The hook of a symbol, by name or by the driver's own address; -1 if it is not hooked. */
int driver_hook_named(const char *name);
int driver_hook_at(const void *address);
void *driver_hook(int id);

/* Whether an object is the CUDA driver or NVML. */
bool driver_is(const struct elf_object *object);

/* Whether the loaded driver defines the symbol itself. */
bool driver_defines(int id);

/* Whether an object was preloaded behind this library: it is what hooks go on to, and its own look-ups are real. */
bool driver_stacked(const struct elf_object *object);

/* Whether an object comes before this library in the search order: the program, and what was preloaded in front. */
bool driver_precedes(const struct elf_object *object);

/* This library itself. */
const struct elf_object *driver_self(void);

/* Loads NVML for this library's own use; false if there is none. */
bool driver_load_nvml(void);

#endif
