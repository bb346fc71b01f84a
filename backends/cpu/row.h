/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in pieces: what softmax, the norms and the sums do to a piece of a row that is held as floats in the first-level cache.
 *
 * A piece is padded to whole steps of ROW_STEP elements with a value that does not count, so that the loops over it have no tails. Its sums go through ROW_ACC
 * vectors: 256 additions deep at most, the depth that spec/norm.h allows, and in an order that depends on nothing but the length. */
#ifndef TRINE_CPU_ROW_H
#define TRINE_CPU_ROW_H

#include "cpu.h"
#include "philox.h"
#include "vec.h"

enum { ROW_PIECE = 8192, ROW_ACC = VL == 4 ? 8 : 4, ROW_STEP = ROW_ACC * VL };
_Static_assert(ROW_PIECE / ROW_STEP <= 256, "sums would be deeper than specified");

/* A piece, and a vector more that unaligned loads may touch. */
typedef float row_piece[ROW_PIECE + VL] __attribute__((aligned(64)));

/* A tensor of the call; NULL if it was not given. */
INLINE const trine_tensor *row_tensor(const trine_call *call, int index) { return call->present >> index & 1 ? &call->tensor[index] : NULL; }

/* Row i of a matrix. */
INLINE void *row_at(const trine_tensor *t, int64_t i) { return (char *)t->data + i * t->stride[t->rank - 2] * (int64_t)vsize(t->dtype); }

/* Row i of problem g of a batch of matrices. */
INLINE void *row_at3(const trine_tensor *t, int64_t g, int64_t i) {
    return (char *)row_at(t, i) + g * t->stride[0] * (int64_t)vsize(t->dtype);
}

/* How many of n elements are visible in row i of s under the causal mask, which is aligned bottom-right. */
INLINE int64_t row_visible(int64_t i, int64_t s, int64_t n) { return i + n - s + 1 > 0 ? i + n - s + 1 : 0; }

/* The bytes of a call's tensors. */
static inline int64_t row_bytes(const trine_call *call) { return (int64_t)trine_plan_bytes(call->plan, call->dim, call->type, call->present); }

/* Storing past the caches pays where outputs go to memory anyway, and not where a tensor is updated in place: its lines are in the cache already. */
static inline bool row_streams(const trine_call *call) {
    int64_t written = 0;
    for (int i = 0; i < call->plan->tensors; i++) {
        if (!(call->present >> i & 1) || !(call->plan->tensor[i].spec->flags & OUT)) continue;
        written += trine_tensor_count(&call->tensor[i]) * (int64_t)vsize(call->tensor[i].dtype);
        for (int j = 0; j < i; j++)
            if ((call->present >> j & 1) && call->tensor[j].data == call->tensor[i].data) return false;
    }
    return written > cpu_of(call)->l3;
}

/* The length of the piece of n elements that begins at `at`; and with its padding. */
INLINE int row_count(int64_t n, int64_t at) { return n - at < ROW_PIECE ? (int)(n - at) : ROW_PIECE; }
INLINE int row_padded(int count) { return (count + ROW_STEP - 1) / ROW_STEP * ROW_STEP; }

INLINE vf *row_vector(float *h, int j) { return (vf *)(h + j); }

INLINE void row_pad(float *h, int count, float value) {
    for (int j = count; j < row_padded(count); j++) h[j] = value;
}

/* Calls step(j, v) for each vector j, j + VL, ... of a piece, where v is what `memory` has there: zeros beyond the end. */
#define ROW_EACH(memory, at, count, T, j, v, step)                          \
    do {                                                                    \
        int j = 0;                                                          \
        for (; j + VL <= (count); j += VL) {                                \
            const vf v = vload(memory, T, (at) + j);                        \
            step;                                                           \
        }                                                                   \
        if (j < (count)) {                                                  \
            const vf v = vloadn(memory, T, (at) + j, (count) - j, 0);       \
            step;                                                           \
        }                                                                   \
    } while (0)

/* h = memory, h += memory, h *= memory + offset: `count` elements of type T from `at` on. */
INLINE void row_load_as(float *h, const void *memory, int64_t at, int count, trine_dtype T) {
    ROW_EACH(memory, at, count, T, j, v, *row_vector(h, j) = v);
}
INLINE void row_add_as(float *h, const void *memory, int64_t at, int count, trine_dtype T) {
    ROW_EACH(memory, at, count, T, j, v, *row_vector(h, j) += v);
}
INLINE void row_multiply_as(float *h, const void *memory, int64_t at, int count, float offset, trine_dtype T) {
    ROW_EACH(memory, at, count, T, j, v, *row_vector(h, j) *= v + offset);
}
INLINE void row_store_as(const float *h, void *memory, int64_t at, int count, bool stream, trine_dtype T) {
    int j = 0;
    if (stream) {
        const uintptr_t size = vsize(T), first = (uintptr_t)memory + (uintptr_t)at * size, ahead = -first % (VL * size) / size;
        j = ahead < (uintptr_t)count ? (int)ahead : count;
        vstoren(memory, T, at, j, *(const vf *)h);
        for (; j + VL <= count; j += VL) vstream(memory, T, at + j, *(const vf_any *)(h + j));
    }
    for (; j + VL <= count; j += VL) vstore(memory, T, at + j, *(const vf *)(h + j));
    if (j < count) vstoren(memory, T, at + j, count - j, *(const vf_any *)(h + j));
}
static inline void row_load(float *h, const void *memory, int64_t at, int count, trine_dtype dtype) {
    FOR_TYPE(dtype, row_load_as, h, memory, at, count);
}
static inline void row_add(float *h, const void *memory, int64_t at, int count, trine_dtype dtype) {
    FOR_TYPE(dtype, row_add_as, h, memory, at, count);
}
static inline void row_multiply(float *h, const void *memory, int64_t at, int count, float offset, trine_dtype dtype) {
    FOR_TYPE(dtype, row_multiply_as, h, memory, at, count, offset);
}
static inline void row_store(const float *h, void *memory, int64_t at, int count, trine_dtype dtype, bool stream) {
    FOR_TYPE(dtype, row_store_as, h, memory, at, count, stream);
}

/* The sum of ROW_ACC vectors, by halves. */
INLINE float row_total(vf acc[ROW_ACC]) {
    for (int half = ROW_ACC / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++) acc[k] += acc[k + half];
    return vhsum(acc[0]);
}

/* Sum over a padded piece; `step` adds what vector j contributes to acc[k]. */
#define ROW_SUM(count, j, k, acc, step)                                     \
    for (int row_base = 0; row_base < row_padded(count); row_base += ROW_STEP) \
        _Pragma("GCC unroll 8") for (int k = 0; k < ROW_ACC; k++) {         \
            const int j = row_base + k * VL;                                \
            step;                                                           \
        }

/* Dropout of elements first, first + 1, ... of the tensor, which are in h. */
static inline void row_dropout(float *h, const dropout *d, uint64_t first, int count) {
    int32_t buffer[DROPOUT_BUFFER];
    for (int base = 0; base < count; base += DROPOUT_RUN) {
        const int run = count - base < DROPOUT_RUN ? count - base : DROPOUT_RUN;
        const int32_t *keep = dropout_run(d, first + (uint64_t)base, run, buffer);
        for (int j = 0; j < run; j += VL) *row_vector(h, base + j) = dropout_apply(d, *row_vector(h, base + j), keep + j);
    }
}

#endif
