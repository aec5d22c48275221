/* A libcuda without symbol versions, as the real one: dlvsym finds its functions whatever version is asked for. */
int cuInit(unsigned flags);
int cuInit(unsigned flags) { return flags ? 1 : 0; }
int cuMemAlloc_v2(unsigned long long *out, unsigned long size);
int cuMemAlloc_v2(unsigned long long *out, unsigned long size) { return *out = size, 0; }
int cuDeviceGetName(char *out, int size, int device);
int cuDeviceGetName(char *out, int size, int device) { return *out = 0, size + device; }
