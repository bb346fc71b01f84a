/* SPDX-License-Identifier: Apache-2.0 */
/* hadamard on the CPU: a row at a time, as floats. */
#include "backends/cpu/core/row.h"
#include "spec/places/hadamard.h"
#include "spec/quantize/hadamard_signs.h"

/* Two stages at once, of vectors or of numbers: halves of `half` and 2 half. */
#define TWO_STAGES(type, x, half) \
    do { \
        type *const p_ = (x); \
        const type a_ = p_[0] + p_[half], b_ = p_[0] - p_[half], c_ = p_[2 * (half)] + p_[3 * (half)], \
                   d_ = p_[2 * (half)] - p_[3 * (half)]; \
        p_[0] = a_ + c_, p_[half] = b_ + d_, p_[2 * (half)] = a_ - c_, p_[3 * (half)] = b_ - d_; \
    } while (0)
#define ONE_STAGE(type, x, half) \
    do { \
        type *const p_ = (x); \
        const type a_ = p_[0], b_ = p_[half]; \
        p_[0] = a_ + b_, p_[half] = a_ - b_; \
    } while (0)

/* The stages from `half` on of rows of `size` elements, `count` in all: vectors, or numbers. */
#define STAGES(type, x, count, size) \
    do { \
        int64_t half_ = 1; \
        for (; 4 * half_ <= (size); half_ *= 4) \
            for (int64_t i_ = 0; i_ < (count); i_ += 4 * half_) \
                for (int64_t j_ = i_; j_ < i_ + half_; j_++) TWO_STAGES(type, (x) + j_, half_); \
        if (2 * half_ <= (size)) \
            for (int64_t i_ = 0; i_ < (count); i_ += 2 * half_) \
                for (int64_t j_ = i_; j_ < i_ + half_; j_++) ONE_STAGE(type, (x) + j_, half_); \
    } while (0)

/* The stages within a vector: an element's sum with the one `half` away, or the difference where it is the upper. */
INLINE vf within(vf x) {
    const vi lane = viota();
#pragma GCC unroll 4
    for (int half = 1; half < VL; half *= 2) {
        const vf other = vexchange(x, half);
        x = other + (vf)((vi)x ^ (visel((lane & half) != 0, viset(INT32_MIN), viset(0))));
    }
    return x;
}

static void sylvester(float *x, int64_t n, int64_t size) {
    if (size < VL) {
        STAGES(float, x, n, size);
        return;
    }
    vf *const v = (vf *)x;
    for (int64_t i = 0; i < n / VL; i++) v[i] = within(v[i]);
    STAGES(vf, v, n / VL, size / VL);
}

/* The sign bits that a matrix's rows turn, row by row. */
typedef uint32_t flips[HADAMARD_MOST * HADAMARD_MOST];

static void find_flips(int m, bool transposed, flips flip) {
    const uint32_t *signs = hadamard_signs(m, transposed);
    for (int i = 0; i < m * m; i++) flip[i] = signs[i / m] >> i % m << 31;
}

INLINE vf flip_vector(vf x, uint32_t sign) { return (vf)((vi)x ^ viset((int32_t)sign)); }
INLINE float flip_number(float x, uint32_t sign) { return sign ? -x : x; }

/* By the matrix of order m: `n` columns whose elements are `size` apart, at once. Four sums, each of a quarter of the
 * terms. */
#define COLUMNS(type, x, size, m, flip, n, turned) \
    do { \
        type column_[HADAMARD_MOST][n]; \
        for (int c_ = 0; c_ < (m); c_++) memcpy(column_[c_], (x) + c_ * (size), sizeof column_[c_]); \
        for (int b_ = 0; b_ < (m); b_++) { \
            const uint32_t *const row_ = (flip) + b_ * (m); \
            type sum_[4][n]; \
            for (int q_ = 0; q_ < 4; q_++) \
                for (int k_ = 0; k_ < (n); k_++) sum_[q_][k_] = turned(column_[q_][k_], row_[q_]); \
            for (int c_ = 4; c_ < (m); c_ += 4) { \
                _Pragma("GCC unroll 4") \
                for (int q_ = 0; q_ < 4; q_++) \
                    for (int k_ = 0; k_ < (n); k_++) sum_[q_][k_] += turned(column_[c_ + q_][k_], row_[c_ + q_]); \
            } \
            for (int k_ = 0; k_ < (n); k_++) \
                (x)[b_ * (size) + k_] = (sum_[0][k_] + sum_[1][k_]) + (sum_[2][k_] + sum_[3][k_]); \
        } \
    } while (0)

static void matrix(float *x, int64_t n, int m, const uint32_t *flip) {
    const int64_t size = n / m, vectors = size / VL;
    int64_t s = 0;
    if (size < VL)
        for (; s < size; s++) COLUMNS(float, x + s, size, m, flip, 1, flip_number);
    for (s = 0; s + 2 <= vectors; s += 2) COLUMNS(vf, (vf *)x + s, vectors, m, flip, 2, flip_vector);
    if (s < vectors) COLUMNS(vf, (vf *)x + s, vectors, m, flip, 1, flip_vector);
}

static int64_t buffer_bytes(const trine_call *call) {
    return cpu_round_up(call->dim[HADAMARD_DIM_N] * (int64_t)sizeof(float), 64);
}

INLINE void store(float *x, void *row, int64_t n, float scale, trine_dtype T) {
    int64_t j = 0;
    for (; j + VL <= n; j += VL) vstore(row, T, j, *(vf *)(x + j) * scale);
    if (j < n) vstoren(row, T, j, (int)(n - j), *(vf *)(x + j) * scale);
}

INLINE void load(float *x, const void *row, int64_t n, trine_dtype T) {
    int64_t j = 0;
    for (; j + VL <= n; j += VL) *(vf *)(x + j) = vload(row, T, j);
    if (j < n) *(vf *)(x + j) = vloadn(row, T, j, (int)(n - j), 0);
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_hadamard_args *args = call->args;
    const trine_tensor *from = &call->tensor[HADAMARD_X], *to = &call->tensor[HADAMARD_Y];
    const int64_t n = call->dim[HADAMARD_DIM_N];
    const int m = hadamard_order(n);
    float *x = (float *)(void *)((char *)call->workspace + thread * buffer_bytes(call));
    flips flip;
    if (m > 1) find_flips(m, args->transposed, flip);
    for (int64_t i = first; i < last; i++) {
        FOR_TYPE(from->dtype, load, x, row_at(from, i), n);
        sylvester(x, n, n / m);
        if (m > 1) matrix(x, n, m, flip);
        FOR_TYPE(to->dtype, store, x, row_at(to, i), n, args->scale);
    }
}

static int team_of(const trine_call *call) { return cpu_team(call, call->dim[HADAMARD_DIM_R], 2 * row_bytes(call)); }

static size_t workspace(const trine_call *call) { return (size_t)(team_of(call) * buffer_bytes(call)); }

static trine_status launch(const trine_call *call) {
    cpu_shares(call, team_of(call), call->dim[HADAMARD_DIM_R], rows, call);
    return TRINE_OK;
}

/* The second thread. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t r = call->dim[HADAMARD_DIM_R];
    if (r > 0) cpu_team_edge(edges, HADAMARD_DIM_R, 2 * row_bytes(call) / r);
}

CPU_KERNELS(hadamard) = { { CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
