/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of rows, which the ops of x + bias go through on the CPU. */
#ifndef TRINE_CPU_BIAS_H
#define TRINE_CPU_BIAS_H

#include "backends/cpu/core/row.h"

/* Of a pass over the rows of a matrix, whose pieces are independent. */
typedef struct bias_pass {
    const void *op;
    void (*piece)(const void *op, int64_t i, int64_t at, int count); /* of row i, from element `at` on */
    int64_t r, n;
    bool stream;
} bias_pass;

static inline int64_t bias_pieces(int64_t n) { return (n + ROW_PIECE - 1) / ROW_PIECE; }

static inline void bias_some_pieces(const void *context, int64_t first, int64_t last, int thread) {
    const bias_pass *pass = context;
    const int64_t pieces = bias_pieces(pass->n);
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        const int64_t at = k % pieces * ROW_PIECE;
        pass->piece(pass->op, k / pieces, at, row_count(pass->n, at));
    }
    if (pass->stream) stream_fence();
}

static inline void bias_run(const trine_call *call, const bias_pass *pass) {
    const int64_t tasks = pass->r * bias_pieces(pass->n);
    cpu_shares(call, cpu_team(call, tasks, row_bytes(call)), tasks, bias_some_pieces, pass);
}

/* Body(..., B, T) with T a constant equal to `dtype` and B to the type of the bias, which is T or f32. */
#define FOR_BIAS(dtype, of_bias, body, ...) \
    do { \
        if ((dtype) == TRINE_F32) \
            body(__VA_ARGS__, TRINE_F32, TRINE_F32); \
        else if ((of_bias) == TRINE_F32) \
            FOR_TYPE(dtype, body, __VA_ARGS__, TRINE_F32); \
        else if ((dtype) == TRINE_BF16) \
            body(__VA_ARGS__, TRINE_BF16, TRINE_BF16); \
        else \
            body(__VA_ARGS__, TRINE_F16, TRINE_F16); \
    } while (0)

#endif
