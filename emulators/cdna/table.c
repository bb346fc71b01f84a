/* SPDX-License-Identifier: Apache-2.0 */
/* Finds an instruction in the tables. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

enum { SLOTS = 4096 }; /* several times the number of rows */

static const row *slots[SLOTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t hash(const char *name, size_t length) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)name[i]) * 16777619u;
    return h ^ h >> 15;
}

static void fill(void) {
    static const row *const tables[] = { vector_rows,  scalar_rows, lane_rows,  matrix_rows,
                                         control_rows, lds_rows,    memory_rows };
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        for (const row *r = tables[t]; r->name; r++) {
            uint32_t slot = hash(r->name, strlen(r->name)) % SLOTS;
            while (slots[slot] != NULL) slot = (slot + 1) % SLOTS;
            slots[slot] = r;
        }
    }
}

static const row *find(const char *name, size_t length) {
    for (uint32_t slot = hash(name, length) % SLOTS; slots[slot] != NULL; slot = (slot + 1) % SLOTS)
        if (strlen(slots[slot]->name) == length && memcmp(slots[slot]->name, name, length) == 0) return slots[slot];
    return NULL;
}

const row *row_find(const char *mnemonic, size_t length) {
    static const char *const suffixes[] = { "_e32", "_e64", "_dpp", "_sdwa" };
    pthread_once(&once, fill);
    const row *r = find(mnemonic, length);
    for (int i = 0; r == NULL && i < 4; i++) {
        const size_t suffix = strlen(suffixes[i]);
        if (length > suffix && memcmp(mnemonic + length - suffix, suffixes[i], suffix) == 0)
            r = find(mnemonic, length - suffix);
    }
    return r;
}
