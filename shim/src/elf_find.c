#include "elf_find.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>

#ifndef STT_GNU_IFUNC
#define STT_GNU_IFUNC 10
#endif

struct search {
  uintptr_t address;
  const char *const *prefixes;
  struct elf_object *found;
};

bool elf_same(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

bool elf_begins(const char *text, const char *prefix) {
  while (*prefix && *text == *prefix) text++, prefix++;
  return !*prefix;
}

const char *elf_file_name(const char *path) {
  const char *name = path;
  for (; *path; path++)
    if (*path == '/') name = path + 1;
  return name;
}

static void describe(const struct dl_phdr_info *info, struct elf_object *object) {
  object->name = info->dlpi_name ? info->dlpi_name : "";
  object->base = info->dlpi_addr;
  object->start = UINTPTR_MAX;
  object->end = 0;
  object->dynamic = NULL;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_DYNAMIC) object->dynamic = (const void *)start;
    if (header->p_type != PT_LOAD) continue;
    if (start < object->start) object->start = start;
    if (start + header->p_memsz > object->end) object->end = start + header->p_memsz;
  }
}

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct search *search = data;
  if (search->prefixes) {
    const char *name = elf_file_name(info->dlpi_name ? info->dlpi_name : "");
    for (const char *const *prefix = search->prefixes; *prefix; prefix++)
      if (elf_begins(name, *prefix)) {
        describe(info, search->found);
        return 1;
      }
    return 0;
  }
  struct elf_object object;
  describe(info, &object);
  if (search->address < object.start || search->address >= object.end) return 0;
  *search->found = object;
  return 1;
}

bool elf_object_at(const void *address, struct elf_object *object) {
  struct search search = {.address = (uintptr_t)address, .found = object};
  return dl_iterate_phdr(visit, &search) == 1;
}

bool elf_object_named(const char *const *prefixes, struct elf_object *object) {
  struct search search = {.prefixes = prefixes, .found = object};
  return dl_iterate_phdr(visit, &search) == 1;
}

/* The loader leaves the head of its list in the program's own dynamic section, for debuggers. */
static const struct link_map *first_object(void) {
  const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
  unsigned long count = getauxval(AT_PHNUM);
  uintptr_t base = 0;
  for (unsigned long i = 0; headers && i < count; i++)
    if (headers[i].p_type == PT_PHDR) base = (uintptr_t)headers - headers[i].p_vaddr;
  for (unsigned long i = 0; headers && i < count; i++) {
    if (headers[i].p_type != PT_DYNAMIC) continue;
    for (const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(base + headers[i].p_vaddr); entry->d_tag != DT_NULL; entry++)
      if (entry->d_tag == DT_DEBUG && entry->d_un.d_ptr) return ((const struct r_debug *)entry->d_un.d_ptr)->r_map;
  }
  return NULL;
}

bool elf_object_early(const char *const *prefixes, struct elf_object *object) {
  const struct link_map *map = first_object();
  if (!map) return elf_object_named(prefixes, object);
  for (; map; map = map->l_next) {
    const char *name = elf_file_name(map->l_name ? map->l_name : "");
    for (const char *const *prefix = prefixes; *prefix; prefix++) {
      if (!elf_begins(name, *prefix)) continue;
      *object = (struct elf_object){.name = map->l_name, .base = map->l_addr, .dynamic = map->l_ld};
      return true;
    }
  }
  return false;
}

struct tables {
  const ElfW(Sym) *symbols;
  const char *strings;
  const uint32_t *gnu_hash;
  const uint32_t *hash;
};

/* glibc stores absolute addresses in the dynamic section, musl leaves them relative to the object. */
static const void *pointer_in(const struct elf_object *object, uintptr_t value) {
  return (const void *)(value >= object->base ? value : object->base + value);
}

static void *definition(const struct elf_object *object, const struct tables *tables, uint32_t index, const char *name) {
  const ElfW(Sym) *symbol = &tables->symbols[index];
  if (symbol->st_shndx == SHN_UNDEF || !elf_same(tables->strings + symbol->st_name, name)) return NULL;
  unsigned type = symbol->st_info & 0xf;
  if (type == STT_GNU_IFUNC || type == STT_TLS) return NULL;
  return (void *)(object->base + symbol->st_value);
}

static void *find_gnu(const struct elf_object *object, const struct tables *tables, const char *name) {
  uint32_t code = 5381;
  for (const unsigned char *c = (const unsigned char *)name; *c; c++) code = code * 33 + *c;
  const uint32_t *header = tables->gnu_hash;
  uint32_t buckets = header[0], first = header[1], words = header[2];
  const uint32_t *bucket = header + 4 + words * (sizeof(ElfW(Addr)) / 4);
  const uint32_t *chain = bucket + buckets;
  if (buckets == 0) return NULL;
  uint32_t index = bucket[code % buckets];
  if (index < first) return NULL;
  for (;; index++) {
    uint32_t entry = chain[index - first];
    if ((entry | 1) == (code | 1)) {
      void *value = definition(object, tables, index, name);
      if (value) return value;
    }
    if (entry & 1) return NULL;
  }
}

static void *find_sysv(const struct elf_object *object, const struct tables *tables, const char *name) {
  uint32_t code = 0;
  for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
    code = (code << 4) + *c;
    uint32_t high = code & 0xf0000000;
    code = (code ^ (high >> 24)) & ~high;
  }
  const uint32_t *bucket = tables->hash + 2, *chain = bucket + tables->hash[0];
  if (tables->hash[0] == 0) return NULL;
  for (uint32_t index = bucket[code % tables->hash[0]]; index; index = chain[index]) {
    void *value = definition(object, tables, index, name);
    if (value) return value;
  }
  return NULL;
}

void *elf_symbol(const struct elf_object *object, const char *name) {
  struct tables tables = {0};
  const ElfW(Dyn) *entry = object->dynamic;
  if (!entry) return NULL;
  for (; entry->d_tag != DT_NULL; entry++) {
    const void *value = pointer_in(object, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) tables.symbols = value;
    if (entry->d_tag == DT_STRTAB) tables.strings = value;
    if (entry->d_tag == DT_GNU_HASH) tables.gnu_hash = value;
    if (entry->d_tag == DT_HASH) tables.hash = value;
  }
  if (!tables.symbols || !tables.strings) return NULL;
  if (tables.gnu_hash) return find_gnu(object, &tables, name);
  return tables.hash ? find_sysv(object, &tables, name) : NULL;
}
