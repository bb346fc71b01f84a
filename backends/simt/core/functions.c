/* SPDX-License-Identifier: Apache-2.0 */
/* Names of device functions, and the table of those that are loaded. */
#include "functions.h"

#include <string.h>

void simt_function_name(const char *op, const simt_function *f, char name_out[static SIMT_NAME_SIZE]) {
    char *at = name_out, *const end = name_out + SIMT_NAME_SIZE - 1;
    enum { TYPES = 3, PARTS = TYPES + SIMT_MAX_TYPES };
    const char *parts[PARTS] = { op, f->step, f->ragged ? "ragged" : NULL };
    for (int i = 0; i < SIMT_MAX_TYPES; i++) parts[TYPES + i] = f->type[i] ? trine_dtype_name(f->type[i]) : NULL;
    for (int i = 0; i < PARTS; i++) {
        if (parts[i] == NULL) continue;
        if (i > 0 && at < end) *at++ = '_';
        for (const char *from = parts[i]; *from && at < end; from++) *at++ = *from;
    }
    char digits[12];
    int count = 0;
    for (int rest = f->variant; rest > 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
    if (count > 0 && at < end) *at++ = '_';
    while (count > 0 && at < end) *at++ = digits[--count];
    *at = 0;
}

static unsigned hash(const char *name) {
    unsigned h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

/* The function's place in the table, or the free one where it belongs; NULL if the table is full. */
static struct simt_loaded *find_place(simt_functions *table, const char *name) {
    unsigned at = hash(name) % SIMT_MAX_FUNCTIONS;
    for (int tries = 0; tries < SIMT_MAX_FUNCTIONS; tries++, at = (at + 1) % SIMT_MAX_FUNCTIONS)
        if (table->entry[at].function == NULL || strcmp(table->entry[at].name, name) == 0) return &table->entry[at];
    return NULL;
}

void *simt_function_find(simt_functions *table, const char *name) {
    const struct simt_loaded *place = find_place(table, name);
    return place != NULL ? place->function : NULL;
}

void simt_function_enter(simt_functions *table, const char *name, void *function) {
    struct simt_loaded *place = find_place(table, name);
    if (place == NULL) return;
    memcpy(place->name, name, SIMT_NAME_SIZE);
    place->function = function;
}
