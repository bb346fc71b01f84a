/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: inputs, their dimensions and two programs of trine check --exact-field, a line each, of any bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check/field_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Cuts the next line off. */
static const char *line(char **rest) {
    char *const start = *rest, *const end = strchr(start, '\n');
    *rest = end ? end + 1 : start + strlen(start);
    if (end) *end = 0;
    return start;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char message[400], *text = malloc(size + 1), *rest = text;
    field_graph *g = calloc(1, sizeof *g);
    int node;
    if (text == NULL || g == NULL) abort();
    memcpy(text, data, size);
    text[size] = 0;
    const char *inputs = line(&rest), *dims = line(&rest), *left = line(&rest), *right = line(&rest);
    if (field_read_inputs(g, inputs, *dims ? dims : NULL, message, sizeof message) &&
        field_read_program(g, left, "left", &node, message, sizeof message) &&
        field_read_program(g, right, "right", &node, message, sizeof message) && node >= g->nodes)
        abort();
    free(g);
    free(text);
    return 0;
}
