/* SPDX-License-Identifier: Apache-2.0 */
/* int_matmul_exact on the CPU: the digits of all rows and columns in the workspace, of 16 bits each, then a tile of d a
 * task, whose products of digits are multiplied and added in pairs. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/int_matmul_exact.h"

#define SLICES_INLINE static inline
#include "spec/exact/slices.h"

enum { SIDE = 16, LINE = 32 };

/* The lines of an operand, of all batches: their digits, slice by slice, and their exponents. */
typedef struct lines {
    const char *from;
    int64_t batch, line, along; /* strides in bytes */
    int64_t count;              /* of a batch */
    int16_t *digits;
    int32_t *exponents;
} lines;

typedef struct job {
    lines a, b;
    const trine_tensor *d;
    int64_t g, k, wide, down, across; /* wide: k, rounded up to whole vectors, whose end is of zeros */
    int slices;
} job;

static inline int64_t wide_of(int64_t k) { return cpu_round_up(k > 0 ? k : 1, LINE); }

static void slice_line(const job *w, const lines *l, int64_t at) {
    const char *const from = l->from + at / l->count * l->batch + at % l->count * l->line;
    int16_t *const digits = l->digits + at * w->slices * w->wide;
    double most = 0;
    bool stray = false;
    for (int64_t p = 0; p < w->k; p++) {
        const double x = fabs(*(const double *)(const void *)(from + p * l->along));
        stray |= !(x < (double)INFINITY);
        most = x > most ? x : most;
    }
    const int exponent = stray ? SLICES_STRAY : slices_exponent(most);
    l->exponents[at] = exponent;
    memset(digits, 0, sizeof *digits * (size_t)(w->slices * w->wide));
    for (int64_t p = 0; p < w->k && !stray; p++) {
        double rest = slices_begin(*(const double *)(const void *)(from + p * l->along), exponent);
        for (int s = 0; s < w->slices; s++) digits[s * w->wide + p] = (int16_t)slices_next(&rest);
    }
}

static void slice_all(const void *context, int64_t first, int64_t last, int thread) {
    const job *w = context;
    const int64_t rows = w->g * w->a.count;
    (void)thread;
    for (int64_t at = first; at < last; at++)
        if (at < rows)
            slice_line(w, &w->a, at);
        else
            slice_line(w, &w->b, at - rows);
}

/* The sum of products of two slices of a line, of a multiple of LINE elements that 32 bits hold. */
static int32_t dot(const int16_t *a, const int16_t *b, int64_t n) {
    int32_t sum = 0;
    for (int64_t p = 0; p < n; p++) sum += (int32_t)a[p] * (int32_t)b[p];
    return sum;
}

static double element(const job *w, const int16_t *a, const int16_t *b, int exponent) {
    double sum = 0;
    for (int at = w->slices - 1; at >= 0; at--) {
        int64_t term = 0;
        for (int s = 0; s <= at; s++)
            for (int64_t p = 0; p < w->wide; p += SLICES_CHUNK) {
                const int64_t n = w->wide - p < SLICES_CHUNK ? w->wide - p : SLICES_CHUNK;
                term += dot(a + s * w->wide + p, b + (at - s) * w->wide + p, n);
            }
        sum = slices_add(sum, term);
    }
    return slices_scale(sum, exponent - 2 * SLICES_FIRST);
}

static void tiles(const void *context, int64_t first, int64_t last, int thread) {
    const job *w = context;
    const int64_t m = w->a.count, n = w->b.count, size = w->slices * w->wide;
    (void)thread;
    for (int64_t at = first; at < last; at++) {
        const int64_t g = at / (w->down * w->across), row = at / w->across % w->down * SIDE,
                      column = at % w->across * SIDE;
        for (int64_t i = row; i < row + SIDE && i < m; i++)
            for (int64_t j = column; j < column + SIDE && j < n; j++) {
                const int e = w->a.exponents[g * m + i], f = w->b.exponents[g * n + j];
                double *const to = (double *)w->d->data + g * w->d->stride[0] + i * w->d->stride[1] + j;
                *to = e == SLICES_STRAY || f == SLICES_STRAY
                          ? (double)NAN
                          : element(w, w->a.digits + (g * m + i) * size, w->b.digits + (g * n + j) * size, e + f);
            }
    }
}

static lines lines_of(const trine_tensor *t, int line, int along, int64_t count) {
    return (lines){ .from = t->data,
                    .batch = t->stride[0] * (int64_t)sizeof(double),
                    .line = t->stride[line] * (int64_t)sizeof(double),
                    .along = t->stride[along] * (int64_t)sizeof(double),
                    .count = count };
}

static size_t workspace(const trine_call *call) {
    const trine_int_matmul_exact_args *args = call->args;
    const size_t count = (size_t)call->dim[INT_MATMUL_EXACT_DIM_G] *
                         ((size_t)call->dim[INT_MATMUL_EXACT_DIM_M] + (size_t)call->dim[INT_MATMUL_EXACT_DIM_N]);
    return count *
           ((size_t)(args->slices * wide_of(call->dim[INT_MATMUL_EXACT_DIM_K])) * sizeof(int16_t) + sizeof(int32_t));
}

static trine_status launch(const trine_call *call) {
    const trine_int_matmul_exact_args *args = call->args;
    const int64_t g = call->dim[INT_MATMUL_EXACT_DIM_G], m = call->dim[INT_MATMUL_EXACT_DIM_M],
                  n = call->dim[INT_MATMUL_EXACT_DIM_N], k = call->dim[INT_MATMUL_EXACT_DIM_K];
    job w = { .a = lines_of(&call->tensor[INT_MATMUL_EXACT_A], 1, 2, m),
              .b = lines_of(&call->tensor[INT_MATMUL_EXACT_B], 2, 1, n),
              .d = &call->tensor[INT_MATMUL_EXACT_D],
              .g = g,
              .k = k,
              .wide = wide_of(k),
              .down = (m + SIDE - 1) / SIDE,
              .across = (n + SIDE - 1) / SIDE,
              .slices = args->slices };
    const int64_t size = w.slices * w.wide, pairs = (int64_t)w.slices * (w.slices + 1) / 2;
    w.a.digits = call->workspace;
    w.b.digits = w.a.digits + g * m * size;
    w.a.exponents = (int32_t *)(void *)(w.b.digits + g * n * size);
    w.b.exponents = w.a.exponents + g * m;
    cpu_shares(call, cpu_team(call, g * (m + n), g * (m + n) * size), g * (m + n), slice_all, &w);
    const int64_t tasks = g * w.down * w.across;
    const double bytes = (double)g * (double)m * (double)n * ((double)w.wide * (double)pairs / 8 + 8);
    cpu_tasks(call, cpu_team(call, tasks, (int64_t)fmin(bytes, 0x1p62)), tasks, tiles, &w);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, INT_MATMUL_EXACT_DIM_M, SIDE);
    trine_kernel_edge(edges, INT_MATMUL_EXACT_DIM_N, SIDE);
    trine_kernel_edge(edges, INT_MATMUL_EXACT_DIM_K, LINE);
}

CPU_KERNELS(int_matmul_exact) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
