/* How programs reach the driver: dlsym, dlvsym, dlopen and cuGetProcAddress. */
#ifndef VGPU_ENTRY_H
#define VGPU_ENTRY_H

#include <stdint.h>

/* Called from trampoline.S. */
struct entry_answer {
  uintptr_t answered; /* 0: the real function is to look itself */
  void *value;
};
struct entry_answer entry_lookup(void *handle, const char *name, const char *version, void *caller, int which);
int entry_open_flags(int flags);

/* The loader's own dlopen. */
void *entry_open(const char *path, int flags);

#endif
