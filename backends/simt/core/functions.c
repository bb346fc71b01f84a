/* SPDX-License-Identifier: Apache-2.0 */
/* Names of device functions, and the table of those that are loaded. */
#include "functions.h"

#include <stdlib.h>
#include <string.h>

bool simt_function_name(const char *op, const simt_function *f, char name_out[static SIMT_NAME_SIZE]) {
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
    return at < end;
}

static unsigned hash(const char *name) {
    unsigned h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

struct simt_function_table {
    struct simt_function_table *before; /* the one that this replaced */
    unsigned places, used;              /* places: a power of two, at least twice those used */
    struct simt_loaded {
        char name[SIMT_NAME_SIZE];
        _Atomic(void *) function; /* NULL: a free place */
    } entry[];
};

/* The function's place, or the free one where it belongs. */
static struct simt_loaded *find_place(struct simt_function_table *table, const char *name) {
    unsigned at = hash(name) & (table->places - 1);
    while (table->entry[at].function != NULL && strcmp(table->entry[at].name, name) != 0)
        at = (at + 1) & (table->places - 1);
    return &table->entry[at];
}

void *simt_function_find(simt_functions *functions, const char *name) {
    struct simt_function_table *table = functions->table;
    return table != NULL ? find_place(table, name)->function : NULL;
}

static void enter(struct simt_function_table *table, const char *name, void *function) {
    struct simt_loaded *place = find_place(table, name);
    strcpy(place->name, name);
    place->function = function;
    table->used++;
}

void simt_function_enter(simt_functions *functions, const char *name, void *function) {
    enum { FIRST = 1024 };
    struct simt_function_table *table = functions->table;
    if (table == NULL || 2 * (table->used + 1) > table->places) {
        const unsigned places = table != NULL ? 2 * table->places : FIRST;
        struct simt_function_table *next = calloc(1, sizeof *next + places * sizeof next->entry[0]);
        if (next == NULL) return;
        next->before = table;
        next->places = places;
        for (unsigned i = 0; table != NULL && i < table->places; i++)
            if (table->entry[i].function != NULL) enter(next, table->entry[i].name, table->entry[i].function);
        functions->table = table = next;
    }
    enter(table, name, function);
}
