/* user PATH: maps a library and uses it until its standard input ends. Without a path: uses a preloaded one once.
 * It fails where the library is there and not whole. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : RTLD_DEFAULT;
    if (argc > 1 && !library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*whole)(void) = (int (*)(void))dlsym(library, "whole");
    struct pollfd input = {.fd = 0, .events = POLLIN};
    do
        if (whole && !whole()) return 2;
    while (argc > 1 && poll(&input, 1, 1) == 0);
    return 0;
}
