/* What is loaded in this process, read from the loader's own list: no file is opened, nothing is allocated. Sanitizers
   look up functions through here before they are ready: as little as possible of the C library is called, and the file
   is never instrumented. */
#ifndef VGPU_ELF_FIND_H
#define VGPU_ELF_FIND_H

#include <stdbool.h>
#include <stdint.h>

struct elf_object {
  const char *name; /* path as the loader has it; "" for the program itself */
  uintptr_t base, start, end;
  const void *dynamic;
};

/* The object that holds an address; false if none does. */
bool elf_object_at(const void *address, struct elf_object *object);

/* The first object whose file name begins with one of the prefixes (a NULL-terminated list). */
bool elf_object_named(const char *const *prefixes, struct elf_object *object);

/* The same while the program starts, when even dl_iterate_phdr may be a sanitizer's that is not ready. Only base and
   dynamic are known of the object then. */
bool elf_object_early(const char *const *prefixes, struct elf_object *object);

/* A function or variable defined by that object, whatever its version; NULL if it defines none of that name. */
void *elf_symbol(const struct elf_object *object, const char *name);

bool elf_same(const char *a, const char *b);
bool elf_begins(const char *text, const char *prefix);

/* The file name of a path: what follows its last slash. */
const char *elf_file_name(const char *path);

#endif
