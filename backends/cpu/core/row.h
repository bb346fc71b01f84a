/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in pieces: what softmax, the norms and the sums share. A piece of a row is held as floats in the first-level
 * cache between its steps.
 *
 * A loop over a piece has ROW_ACC accumulators, so that a sum is 256 additions deep at most, the depth that
 * spec/norm/norm.h allows, in an order that depends on nothing but the length. */
#ifndef TRINE_CPU_ROW_H
#define TRINE_CPU_ROW_H

#include "cpu.h"
#include "philox.h"
#include "vec_pair.h"

enum { ROW_PIECE = VL == 4 ? 4096 : 8192, ROW_ACC = 4, ROW_STEP = ROW_ACC * VL };
_Static_assert(ROW_PIECE / ROW_STEP <= 256, "sums would be deeper than specified");

typedef float row_piece[ROW_PIECE] __attribute__((aligned(64)));

/* A tensor of the call; NULL if it was not given. */
INLINE const trine_tensor *row_tensor(const trine_call *call, int index) {
    return call->present >> index & 1 ? &call->tensor[index] : NULL;
}

/* Row i of a matrix, and of the matrix g of a batch. */
INLINE void *row_at(const trine_tensor *t, int64_t i) {
    return (char *)t->data + i * t->stride[t->rank - 2] * (int64_t)vsize(t->dtype);
}
INLINE void *row_at3(const trine_tensor *t, int64_t g, int64_t i) {
    return (char *)row_at(t, i) + g * t->stride[0] * (int64_t)vsize(t->dtype);
}

/* How many of n elements are visible in row i of s under the causal mask, which is aligned bottom-right. */
INLINE int64_t row_visible(int64_t i, int64_t s, int64_t n) { return i + n - s + 1 > 0 ? i + n - s + 1 : 0; }

/* The bytes of a call's tensors. */
static inline int64_t row_bytes(const trine_call *call) {
    return (int64_t)trine_plan_bytes(call->plan, call->dim, call->type, call->present);
}

/* The bytes of its outputs. */
static inline int64_t row_written(const trine_call *call) {
    int64_t written = 0;
    for (int i = 0; i < call->plan->tensors; i++)
        if (call->present >> i & 1 && call->plan->tensor[i].spec->flags & OUT)
            written += trine_tensor_count(&call->tensor[i]) * (int64_t)vsize(call->tensor[i].dtype);
    return written;
}

/* Storing past the caches pays where outputs go to memory anyway, and not where a tensor is updated in place: its lines
 * are in the cache already. */
static inline bool row_streams(const trine_call *call) {
    for (int i = 0; i < call->plan->tensors; i++) {
        if (!(call->present >> i & 1) || !(call->plan->tensor[i].spec->flags & OUT)) continue;
        for (int j = 0; j < i; j++)
            if ((call->present >> j & 1) && call->tensor[j].data == call->tensor[i].data) return false;
    }
    return row_written(call) > cpu_of(call)->l3;
}

/* The dimension of a matrix's rows, and that of their elements: of the op's first tensor. */
static inline int row_down(const trine_call *call) {
    return call->plan->tensor[0].dim[call->plan->tensor[0].rank - 2].symbol;
}
static inline int row_along(const trine_call *call) {
    return call->plan->tensor[0].dim[call->plan->tensor[0].rank - 1].symbol;
}

/* Along rows: vectors, pairs of them, steps, pieces, and stores past the caches. */
static inline void row_edges(const trine_call *call, trine_kernel_edges *edges) {
    const int symbol = row_along(call);
    const int64_t n = call->dim[symbol] > 0 ? call->dim[symbol] : 1, each = row_written(call) / n;
    trine_kernel_edge(edges, symbol, VL);
    trine_kernel_edge(edges, symbol, 2 * VL);
    trine_kernel_edge(edges, symbol, ROW_STEP);
    trine_kernel_edge(edges, symbol, ROW_PIECE);
    if (each > 0) trine_kernel_edge(edges, symbol, cpu_of(call)->l3 / each);
}

/* The length of the piece of n elements that begins at `at`. */
INLINE int row_count(int64_t n, int64_t at) { return n - at < ROW_PIECE ? (int)(n - at) : ROW_PIECE; }

#define ROW_UNUSED __attribute__((unused))

/* Does a step for each vector of a piece, in ascending order: elements j .. j+m-1, accumulator k; m is the constant
 * `lanes` but in the last. */
#define LANES_EACH(lanes, count, j, k, m, ...) \
    do { \
        int at_ = 0; \
        for (; at_ + ROW_ACC * (lanes) <= (count); at_ += ROW_ACC * (lanes)) { \
            _Pragma("GCC unroll 4") \
            for (int k = 0; k < ROW_ACC; k++) { \
                const int j = at_ + k * (lanes), m ROW_UNUSED = (lanes); \
                __VA_ARGS__; \
            } \
        } \
        for (; at_ + (lanes) <= (count); at_ += (lanes)) { \
            const int j = at_, k ROW_UNUSED = 0, m ROW_UNUSED = (lanes); \
            __VA_ARGS__; \
        } \
        if (at_ < (count)) { \
            const int j = at_, k ROW_UNUSED = 0, m ROW_UNUSED = (count) - at_; \
            __VA_ARGS__; \
        } \
    } while (0)
#define ROW_EACH(count, j, k, m, ...) LANES_EACH(VL, count, j, k, m, __VA_ARGS__)

/* Does a step for each two vectors of a piece: elements j .. j+m-1, accumulators k and k+1;
 * m is 2*VL but in the last. */
#define ROW_PAIRS(count, j, k, m, ...) \
    do { \
        int at_ = 0; \
        for (; at_ + ROW_STEP <= (count); at_ += ROW_STEP) { \
            _Pragma("GCC unroll 2") \
            for (int k = 0; k < ROW_ACC; k += 2) { \
                const int j = at_ + k * VL, m ROW_UNUSED = 2 * VL; \
                __VA_ARGS__; \
            } \
        } \
        for (; at_ + 2 * VL <= (count); at_ += 2 * VL) { \
            const int j = at_, k ROW_UNUSED = 0, m ROW_UNUSED = 2 * VL; \
            __VA_ARGS__; \
        } \
        if (at_ < (count)) { \
            const int j = at_, k ROW_UNUSED = 0, m ROW_UNUSED = (count) - at_; \
            __VA_ARGS__; \
        } \
    } while (0)

/* Vector j of a piece, which is readable and writable as a whole, to the end of a step. */
INLINE vf *row_vector(float *h, int j) { return (vf *)(h + j); }

/* Elements i .. i+m-1 of memory; the rest of the vector is 0. */
INLINE vf row_get(const void *data, trine_dtype T, int64_t i, int m) {
    return m == VL ? vload(data, T, i) : vloadn(data, T, i, m, 0);
}

/* v in its first m elements, `rest` in the others. */
INLINE vf row_mask(vf v, int m, float rest) { return m == VL ? v : vsel(viota() < m, v, vset(rest)); }

/* The same for two vectors in the order of vload2_as. */
INLINE void row_get2(vf v[2], const void *data, trine_dtype T, int64_t i, int m, trine_dtype order) {
    char part[8 * VL] = { 0 };
    if (m == 2 * VL) {
        vload2_as(v, data, T, i, order);
        return;
    }
    memcpy(part, (const char *)data + i * (int64_t)vsize(T), (size_t)m * vsize(T));
    vload2_as(v, part, T, 0, order);
}
INLINE void row_mask2(vf v[2], int m, trine_dtype order) {
    vi first[2];
    if (m == 2 * VL) return;
    vfirst2(first, m, order);
    for (int i = 0; i < 2; i++) v[i] = (vf)((vi)v[i] & first[i]);
}

/* Where a piece is stored, from element `at` of a row on: past the caches if asked for and if the address allows. */
typedef struct row_sink {
    void *data;
    int64_t at;
    bool stream;
} row_sink;

INLINE row_sink row_sink_at(void *row, trine_dtype dtype, int64_t at, bool stream) {
    const uintptr_t size = vsize(dtype);
    return (row_sink){ row, at, stream && ((uintptr_t)row + (uintptr_t)at * size) % (2 * VL * size) == 0 };
}
INLINE row_sink row_sink_of(const trine_tensor *t, int64_t i, int64_t at, bool stream) {
    return row_sink_at(row_at(t, i), t->dtype, at, stream);
}
INLINE void row_put(row_sink sink, trine_dtype T, int j, int m, vf v) {
    if (m < VL)
        vstoren(sink.data, T, sink.at + j, m, v);
    else if (sink.stream)
        vstream(sink.data, T, sink.at + j, v);
    else
        vstore(sink.data, T, sink.at + j, v);
}

INLINE void row_put2(row_sink sink, trine_dtype T, int j, int m, const vf v[2], trine_dtype order) {
    char part[8 * VL];
    if (m < 2 * VL) {
        vstore2_as(part, T, 0, v, order);
        memcpy((char *)sink.data + (sink.at + j) * (int64_t)vsize(T), part, (size_t)m * vsize(T));
    } else if (sink.stream) {
        vstream2_as(sink.data, T, sink.at + j, v, order);
    } else {
        vstore2_as(sink.data, T, sink.at + j, v, order);
    }
}

/* Asks for the line of element j of a row that will be read next, once for each line;
 * and for those of elements j and j+VL. */
INLINE void row_prefetch(const void *data, trine_dtype T, int j, int k) {
    if (k * VL * vsize(T) % 64 == 0) __builtin_prefetch((const char *)((uintptr_t)data + (uintptr_t)j * vsize(T)));
}
INLINE void row_prefetch2(const void *data, trine_dtype T, int j, int k) {
    row_prefetch(data, T, j, k);
    row_prefetch(data, T, j + VL, k + 1);
}

/* h = memory; memory = h. */
INLINE void row_load_as(float *h, const void *memory, int64_t at, int count, trine_dtype T) {
    ROW_EACH(count, j, k, m, *row_vector(h, j) = row_get(memory, T, at + j, m));
}
static inline void row_load(float *h, const void *memory, int64_t at, int count, trine_dtype dtype) {
    FOR_TYPE(dtype, row_load_as, h, memory, at, count);
}
INLINE void row_store_as(float *h, row_sink sink, int count, trine_dtype T) {
    ROW_EACH(count, j, k, m, row_put(sink, T, j, m, *row_vector(h, j)));
}
static inline void row_store(float *h, row_sink sink, int count, trine_dtype dtype) {
    FOR_TYPE(dtype, row_store_as, h, sink, count);
}

/* The sum of the accumulators, by halves. */
INLINE float row_total(vf acc[ROW_ACC]) {
    for (int half = ROW_ACC / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++) acc[k] += acc[k + half];
    return vhsum(acc[0]);
}

/* Dropout of elements first, first + 1, ... of the tensor, which are in h. */
static inline void row_dropout(float *h, const dropout *d, uint64_t first, int count) {
    int32_t buffer[DROPOUT_BUFFER];
    for (int base = 0; base < count; base += DROPOUT_RUN) {
        const int run = count - base < DROPOUT_RUN ? count - base : DROPOUT_RUN;
        const int32_t *keep = dropout_run(d, first + (uint64_t)base, run, buffer);
        for (int j = 0; j < run; j += VL)
            *row_vector(h, base + j) = dropout_apply(d, *row_vector(h, base + j), keep + j);
    }
}

#endif
