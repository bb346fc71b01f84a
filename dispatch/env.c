/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables trine knows, and warnings: of those that only look as if it did, and of directories that it
 * does not search. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dispatch.h"

const trine_env_entry trine_env_list[] = {
    { "TRINE_BACKENDS", "comma-separated list of the backends to load; the CPU is always loaded" },
    { "TRINE_CODE", "directory of the cache of device code that is compiled at run time; /dev/null for none" },
    { "TRINE_DEVICE", "the device that TRINE_BEST_DEVICE means, by name: cpu, cuda:0" },
    { "TRINE_ISA", "highest CPU level to use: baseline, v3, v4, v4_bf16, amx or v8_bf16" },
    { "TRINE_KERNEL", "run only the kernel of this name" },
    { "TRINE_PATH", "colon-separated absolute directories searched first for modules; ignored in setuid programs" },
    { "TRINE_REPRODUCIBLE", "1: all queues have TRINE_QUEUE_REPRODUCIBLE" },
    { "TRINE_TUNE", "file of the tuning cache; /dev/null for none" },
    { "TRINE_VERBOSE", "1: one line on stderr for each call: device, kernel, types, sizes and time" },
    { NULL, NULL },
};

static bool known(const char *name, size_t length) {
    for (const trine_env_entry *e = trine_env_list; e->name; e++)
        if (strlen(e->name) == length && memcmp(e->name, name, length) == 0) return true;
    return false;
}

const char *trine_env(const char *name) {
    const char *value = known(name, strlen(name)) ? secure_getenv(name) : NULL;
    return value != NULL && value[0] != 0 ? value : NULL;
}

int trine_word_distance(const char *a, size_t n, const char *b, size_t m) {
    enum { LONGEST = 64 };
    if (n >= LONGEST || m >= LONGEST) return LONGEST;
    int d[LONGEST][LONGEST];
    for (size_t i = 0; i <= n; i++) d[i][0] = (int)i;
    for (size_t j = 0; j <= m; j++) d[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[n][m];
}

static void warn_unknown(void) {
    static const char prefix[] = "TRINE_";
    const size_t skip = sizeof prefix - 1;
    for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
        const size_t length = strcspn(*variable, "=");
        if (strncmp(*variable, prefix, skip) != 0 || known(*variable, length)) continue;
        const char *nearest = NULL;
        int least = INT_MAX;
        for (const trine_env_entry *e = trine_env_list; e->name; e++) {
            const int d = trine_word_distance(*variable + skip, length - skip, e->name + skip, strlen(e->name) - skip);
            if (d < least && 2 * d <= (int)(strlen(e->name) - skip)) { /* further away it is no misspelling */
                least = d;
                nearest = e->name;
            }
        }
        fprintf(stderr, "trine: unknown environment variable %.*s%s%s%s\n", (int)length, *variable,
                nearest ? ": did you mean " : ": see trine(7)", nearest ? nearest : "", nearest ? "?" : "");
    }
}

static void warn_relative(void) {
    const char *path = trine_env("TRINE_PATH");
    for (const char *at = path ? path : ""; *at; at += strcspn(at, ":"), at += *at == ':')
        if (*at != '/' && *at != ':')
            fprintf(stderr, "trine: TRINE_PATH has %.*s, which is not an absolute directory: it is not searched\n",
                    (int)strcspn(at, ":"), at);
}

static void warn(void) {
    warn_unknown();
    warn_relative();
}

void trine_env_warn(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, warn);
}
