/* SPDX-License-Identifier: Apache-2.0 */
/* Copies by all threads: what collective ops are made of, besides sums. */
#ifndef TRINE_CPU_COMM_COPY_H
#define TRINE_CPU_COMM_COPY_H

#include <string.h>

#include <trine/group.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/group.h"

enum { COPY_PIECE = 16384 }; /* bytes that a thread takes at a time */

/* Rows of as many bytes, each with an address of its own. */
typedef struct copies {
    int rows;
    int64_t bytes; /* of a row */
    const char *from[TRINE_MAX_RANKS];
    char *to[TRINE_MAX_RANKS];
} copies;

static inline int64_t copy_pieces(const copies *c) { return (c->bytes + COPY_PIECE - 1) / COPY_PIECE; }

static inline void copy_some(const void *context, int64_t first, int64_t last, int thread) {
    const copies *c = context;
    const int64_t pieces = copy_pieces(c);
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i / pieces, at = i % pieces * COPY_PIECE, left = c->bytes - at;
        memcpy(c->to[row] + at, c->from[row] + at, (size_t)(left < COPY_PIECE ? left : COPY_PIECE));
    }
}

static inline void copy_rows(const trine_call *call, const copies *c) {
    const int64_t items = c->rows * copy_pieces(c);
    cpu_shares(call, cpu_team(call, items, c->rows * c->bytes), items, copy_some, c);
}

/* One row. */
static inline void copy_row(const trine_call *call, char *to, const char *from, int64_t bytes) {
    const copies c = { .rows = 1, .bytes = bytes, .from = { from }, .to = { to } };
    if (to != from) copy_rows(call, &c);
}

/* Where element `at` of row `row` of a matrix is. */
static inline char *row_at(const trine_tensor *t, int64_t row, int64_t at) {
    return (char *)t->data + (row * t->stride[0] + at) * (int64_t)trine_dtype_size(t->dtype);
}

/* How many elements of each of `rows` rows have room in a half: whole lines, one row never sharing one with another. */
static inline int64_t copy_room(const trine_call *call, trine_dtype T, int64_t rows) {
    const int64_t bytes = trine_cpu_group_bytes(call) / rows / 64 * 64, room = bytes / (int64_t)trine_dtype_size(T);
    return room > 0 ? room : 1;
}

#endif
