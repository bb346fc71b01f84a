/* SPDX-License-Identifier: Apache-2.0 */
/* Cases from a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <trine/ops.h>

#include "bench.h"

/* A line and what it says. */
typedef struct line {
    char *storage;
    trine_op op; /* TRINE_OP_NONE: nothing */
    const char *text;
} line;

typedef struct lines {
    line *line;
    size_t count;
} lines;

static bool parse_line(line *l, char *error, size_t size) {
    static trine_case c;
    l->storage[strcspn(l->storage, "\r\n")] = 0;
    if (l->storage[0] == 0 || l->storage[0] == '#') return true;
    char *text = strchr(l->storage, ' ');
    if (text != NULL) *text = 0;
    l->op = trine_op_find(l->storage);
    if (l->op == TRINE_OP_NONE || text == NULL) {
        if (text != NULL) *text = ' ';
        snprintf(error, size, "\"%.200s\" is not an op and a case", l->storage);
        return false;
    }
    l->text = text + 1;
    trine_case_init(&c, l->op);
    return trine_case_parse(&c, l->text, error, size);
}

/* Adds the next line of the file; false at its end. */
static bool next_line(lines *all, FILE *file) {
    line *grown = realloc(all->line, (all->count + 1) * sizeof *grown), l = { NULL, TRINE_OP_NONE, NULL };
    size_t size = 0;
    if (grown == NULL) return false;
    all->line = grown;
    const bool read = getline(&l.storage, &size, file) >= 0;
    if (!read) free(l.storage);
    if (read) all->line[all->count++] = l;
    return read;
}

bool bench_read_cases(const char *path, void (*each)(void *context, trine_op op, const char *text), void *context,
                      char *error, size_t error_size) {
    lines all = { NULL, 0 };
    char reason[320] = "";
    FILE *file = fopen(path, "r");
    bool ok = file != NULL;
    while (ok && next_line(&all, file)) {
        ok = parse_line(&all.line[all.count - 1], reason, sizeof reason);
        if (!ok) snprintf(error, error_size, "%s:%zu: %s", path, all.count, reason);
    }
    if (ok && !feof(file)) ok = false;
    if (!ok && reason[0] == 0) snprintf(error, error_size, "%s: %s", path, strerror(errno));
    if (file != NULL) fclose(file);
    for (size_t i = 0; i < all.count; i++) {
        if (ok && all.line[i].op != TRINE_OP_NONE) each(context, all.line[i].op, all.line[i].text);
        free(all.line[i].storage);
    }
    free(all.line);
    return ok;
}
