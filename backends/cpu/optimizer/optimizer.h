/* SPDX-License-Identifier: Apache-2.0 */
/* What the optimizers' steps share on the CPU: their scalars in tensors, parameters that are rounded by chance, and the
 * copy of a step that is skipped. */
#ifndef TRINE_CPU_OPTIMIZER_H
#define TRINE_CPU_OPTIMIZER_H

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/philox.h"
#include "backends/cpu/core/vec_pair.h"

enum { OPTIMIZER_BLOCK = 64 }; /* elements, so that no cache line has two writers */

static inline bool optimizer_given(const trine_call *call, int tensor) { return call->present >> tensor & 1; }
static inline float optimizer_scalar(const trine_call *call, int tensor, float otherwise) {
    return optimizer_given(call, tensor) ? *(const float *)call->tensor[tensor].data : otherwise;
}

/* `count` elements, VL where they are a whole vector; behind them are zeros. */
INLINE vf optimizer_load(const void *data, trine_dtype type, int64_t i, int count) {
    return count == VL ? vload(data, type, i) : vloadn(data, type, i, count, 0);
}
INLINE void optimizer_store(void *data, trine_dtype type, int64_t i, int count, vf x) {
    if (count == VL)
        vstore(data, type, i, x);
    else
        vstoren(data, type, i, count, x);
}

/* The generator of what rounds a parameter by chance; false: it goes to the nearest. */
static inline bool optimizer_chances(const trine_call *call, int param, int philox, bool stochastic, uint64_t seed,
                                     uint64_t stream, dropout *chances_out) {
    *chances_out = dropout_of(0, seed, stream);
    if (optimizer_given(call, philox)) dropout_tell(chances_out, &call->tensor[philox]);
    return stochastic && call->tensor[param].dtype == TRINE_BF16;
}

/* The words of elements first .. first+count-1, count <= DROPOUT_RUN: readable to the next whole vector. */
static inline const int32_t *optimizer_words(const dropout *d, uint64_t first, int count,
                                             int32_t buffer[DROPOUT_BUFFER]) {
    const int skip = (int)(first % 8);
    for (int i = 0; i < skip + count; i += 8 * VL) {
        vu word[8];
        philox_words(d, first / 8 + (uint64_t)(i / 8), word);
        philox_interleave(word, buffer + i);
    }
    return buffer + skip;
}

/* x as numbers of bf16: up where the upper half of the word is less than what bf16 has not. */
INLINE vf optimizer_by_chance(vf x, const int32_t *word) {
    const vu bits = (vu)x + (0xffff - ((vu)(*(const vi_any *)word) >> 16));
    return vsel(x != x, x, (vf)(bits & 0xffff0000u));
}

typedef struct optimizer_copy {
    const trine_tensor *param, *copy;
    int64_t n, blocks; /* of a row */
} optimizer_copy;

INLINE void optimizer_copy_range(const optimizer_copy *c, int64_t row, int64_t first, int64_t last, trine_dtype type) {
    const int64_t from = row * c->param->stride[0], to = row * c->copy->stride[0];
    for (int64_t i = first; i < last; i += VL) {
        const int m = last - i < VL ? (int)(last - i) : VL;
        vstoren(c->copy->data, c->copy->dtype, to + i, m, vloadn(c->param->data, type, from + i, m, 0));
    }
}
static inline void optimizer_copy_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const optimizer_copy *c = context;
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        const int64_t at = k % c->blocks * OPTIMIZER_BLOCK,
                      end = at + OPTIMIZER_BLOCK < c->n ? at + OPTIMIZER_BLOCK : c->n;
        FOR_TYPE(c->param->dtype, optimizer_copy_range, c, k / c->blocks, at, end);
    }
}

/* A step that is skipped leaves its parameter, a vector or a matrix, to the copy. */
static inline void optimizer_skip(const trine_call *call, int param, int copy) {
    if (!optimizer_given(call, copy)) return;
    optimizer_copy c = { &call->tensor[param], &call->tensor[copy], .n = call->tensor[param].shape[0] };
    int64_t rows = 1;
    if (c.param->rank == 2) rows = c.param->shape[0], c.n = c.param->shape[1];
    c.blocks = (c.n + OPTIMIZER_BLOCK - 1) / OPTIMIZER_BLOCK;
    const int64_t bytes = rows * c.n * (int64_t)(vsize(c.param->dtype) + 2);
    cpu_shares(call, cpu_team(call, rows * c.blocks, bytes), rows * c.blocks, optimizer_copy_blocks, &c);
}

#endif
