/* SPDX-License-Identifier: Apache-2.0 */
/* trine bench --peers: trine-peers, which links the other libraries, takes this process over. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

/* Where trine-peers may be, from the folder of this program on: beside it, or where a build has it. */
static const char *const places[] = { "trine-peers", "../bench/peers/trine-peers" };

bool find_peers(char *out, size_t size) {
    char self[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
    const char *const slash = length > 0 ? memrchr(self, '/', (size_t)length) : NULL;
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        snprintf(out, size, "%.*s/%s", (int)(slash - self), self, places[i]);
        if (access(out, X_OK) == 0) return true;
    }
    return false;
}

int bench_peers(char **argv, int flag) {
    char path[PATH_MAX + 32];
    /* the program's name takes the flag's place, and goes first */
    memmove(argv + 2, argv + 1, (size_t)(flag - 1) * sizeof *argv);
    argv[1] = path;
    if (find_peers(path, sizeof path)) execv(path, argv + 1); /* returns if that fails */
    return failure("there is no trine-peers beside this program: it is built where OpenBLAS, oneDNN 2 or cuBLASLt is "
                   "found, and is not installed");
}
