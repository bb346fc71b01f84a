/* SPDX-License-Identifier: Apache-2.0 */
/* trine bench --peers: trine-peers, which links the other libraries, takes this process over. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

/* Where trine-peers may be, from the folder of this program on: beside it, or where a build has it. */
static const char *const places[] = { "trine-peers", "../bench/peers/trine-peers" };

int bench_peers(int argc, char **argv) {
    static const char flag[] = "--peers";
    char self[PATH_MAX], path[PATH_MAX + 32];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
    const char *const slash = length > 0 ? memrchr(self, '/', (size_t)length) : NULL;
    char **words = calloc((size_t)argc + 1, sizeof *words);
    if (words == NULL) return failure("out of memory");
    int count = 1; /* the first is the program's name */
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], flag) != 0) words[count++] = argv[i];
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - self), self, places[i]);
        words[0] = path;
        execv(path, words); /* returns where there is none */
    }
    free(words);
    return failure("there is no trine-peers beside this program: it is built where OpenBLAS, oneDNN 2 or cuBLASLt is found, and is not installed");
}
