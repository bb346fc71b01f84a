/* SPDX-License-Identifier: Apache-2.0 */
/* trine bench --peers: trine-peers, which links the other libraries, takes this process over. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

/* Where trine-peers may be, from the folder of this program on: beside it, or where a build has it. */
static const char *const places[] = { "trine-peers", "../bench/peers/trine-peers" };

int bench_peers(char **argv, int flag) {
    char self[PATH_MAX], path[PATH_MAX + 32];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
    const char *const slash = length > 0 ? memrchr(self, '/', (size_t)length) : NULL;
    /* the program's name takes the flag's place, and goes first */
    memmove(argv + 2, argv + 1, (size_t)(flag - 1) * sizeof *argv);
    argv[1] = path;
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - self), self, places[i]);
        execv(path, argv + 1); /* returns where there is none */
    }
    return failure("there is no trine-peers beside this program: it is built where OpenBLAS, oneDNN 2 or cuBLASLt is "
                   "found, and is not installed");
}
