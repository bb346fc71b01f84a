/* SPDX-License-Identifier: Apache-2.0 */
/* max_plus_matmul on the CPU: a task has a tile of d, whose sums are compared in vectors of columns, along k in steps
 * whose lines of b are copied side by side. Of equals the first stays, as k runs from its start. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/max_plus_matmul.h"

enum { ROWS = 32, COLUMNS = 64, STEP = 128, BYTES = 32 };

typedef struct job {
    const trine_call *call;
    const trine_tensor *c, *indices;
    int64_t down, across; /* tiles of a matrix */
    bool minimum;
} job;

/* The place of element (g, i, j). */
static inline char *place(const trine_tensor *t, int64_t g, int64_t i, int64_t j, size_t size) {
    return (char *)t->data + (g * t->stride[0] + i * t->stride[1] + j * t->stride[2]) * (int64_t)size;
}

/* For a type: vectors of its elements and of integers of their size; how a is added to b, and whether x beats y. */
#define VECTORS(T, I) \
    typedef T vector_##T __attribute__((vector_size(BYTES), aligned(BYTES))); \
    typedef I places_##T __attribute__((vector_size(BYTES), aligned(BYTES)));
VECTORS(float, int32_t)
VECTORS(double, int64_t)
VECTORS(int32_t, int32_t)
typedef uint32_t unsigned_vector __attribute__((vector_size(BYTES), aligned(BYTES)));
#define ADD_FLOATS(x, y, V) ((x) + (y))
#define ADD_INTEGERS(x, y, V) ((V)((unsigned_vector)(x) + (unsigned_vector)(y)))
/* Beside numbers NaN, the first of which stays where it is named. */
#define MORE_FLOATS(x, y) (((x) > (y)) | ((x) != (x)))
#define LESS_FLOATS(x, y) (((x) < (y)) | ((x) != (x)))
#define FIRST_MORE_FLOATS(x, y) (((x) > (y)) | (((x) != (x)) & ((y) == (y))))
#define FIRST_LESS_FLOATS(x, y) (((x) < (y)) | (((x) != (x)) & ((y) == (y))))
#define MORE_INTEGERS(x, y) ((x) > (y))
#define LESS_INTEGERS(x, y) ((x) < (y))
#define FIRST_MORE_INTEGERS MORE_INTEGERS
#define FIRST_LESS_INTEGERS LESS_INTEGERS

/* A step of a row: the sums of `steps` elements of a with their lines of b, against what has been best. If NAMED,
 * `found` has the number of the step, -1 where none was better. */
#define ROW_STEP(name, T, I, ADD, BEATS, NAMED) \
    static void name(const T *a, int64_t along, const T(*b)[COLUMNS], int steps, T *best, I *found) { \
        enum { LANES = BYTES / (int)sizeof(T), CHAINS = 4 }; \
        for (int j = 0; j < COLUMNS; j += CHAINS * LANES) { \
            vector_##T most[CHAINS]; \
            places_##T at[CHAINS]; \
            for (int c = 0; c < CHAINS; c++) { \
                most[c] = *(const vector_##T *)(const void *)(best + j + c * LANES); \
                at[c] = (places_##T){ 0 } - 1; \
            } \
            for (int p = 0; p < steps; p++) { \
                const vector_##T x = a[p * along] - (vector_##T){ 0 }; /* -0 stays */ \
                const places_##T number = (places_##T){ 0 } + p; \
                for (int c = 0; c < CHAINS; c++) { \
                    const vector_##T sum = \
                        ADD(x, *(const vector_##T *)(const void *)(b[p] + j + c * LANES), vector_##T); \
                    const places_##T better = (places_##T)BEATS(sum, most[c]); \
                    most[c] = (vector_##T)(((places_##T)sum & better) | ((places_##T)most[c] & ~better)); \
                    if (NAMED) at[c] = (number & better) | (at[c] & ~better); \
                } \
            } \
            for (int c = 0; c < CHAINS; c++) { \
                *(vector_##T *)(void *)(best + j + c * LANES) = most[c]; \
                if (NAMED) *(places_##T *)(void *)(found + j + c * LANES) = at[c]; \
            } \
        } \
    }
#define ROW_STEPS(name, T, I, ADD, KIND) \
    ROW_STEP(name##_more, T, I, ADD, MORE_##KIND, false) \
    ROW_STEP(name##_less, T, I, ADD, LESS_##KIND, false) \
    ROW_STEP(name##_first_more, T, I, ADD, FIRST_MORE_##KIND, true) \
    ROW_STEP(name##_first_less, T, I, ADD, FIRST_LESS_##KIND, true)

/* A tile: a row of it at a time, in the workspace of the stack. Columns beyond the matrix are computed of zeros. */
#define TILE(name, T, I, ADD, KIND, LOW, HIGH) \
    ROW_STEPS(name, T, I, ADD, KIND) \
    static void name(const job *w, int64_t g, int64_t row, int64_t column) { \
        _Alignas(BYTES) T b[STEP][COLUMNS], best[ROWS][COLUMNS]; \
        _Alignas(BYTES) I found[COLUMNS]; \
        static const size_t size = sizeof(T); \
        void (*const step)(const T *, int64_t, const T(*)[COLUMNS], int, T *, I *) = \
            w->indices ? (w->minimum ? name##_first_less : name##_first_more) \
                       : (w->minimum ? name##_less : name##_more); \
        const trine_tensor *t = w->call->tensor; \
        const int64_t m = w->call->dim[MAX_PLUS_MATMUL_DIM_M], n = w->call->dim[MAX_PLUS_MATMUL_DIM_N], \
                      k = w->call->dim[MAX_PLUS_MATMUL_DIM_K]; \
        const int rows = (int)(m - row < ROWS ? m - row : ROWS), \
                  columns = (int)(n - column < COLUMNS ? n - column : COLUMNS); \
        for (int i = 0; i < rows; i++) \
            for (int j = 0; j < COLUMNS; j++) \
                best[i][j] = w->c && j < columns ? *(const T *)(const void *)place(w->c, g, row + i, column + j, size) \
                             : w->minimum        ? HIGH \
                                                 : LOW; \
        for (int i = 0; w->indices && i < rows; i++) \
            for (int j = 0; j < columns; j++) \
                *(int64_t *)(void *)place(w->indices, g, row + i, column + j, sizeof(int64_t)) = -1; \
        for (int64_t p = 0; p < k; p += STEP) { \
            const int steps = (int)(k - p < STEP ? k - p : STEP); \
            memset(b, 0, sizeof b); \
            for (int q = 0; q < steps; q++) \
                for (int j = 0; j < columns; j++) \
                    b[q][j] = *(const T *)(const void *)place(&t[MAX_PLUS_MATMUL_B], g, p + q, column + j, size); \
            for (int i = 0; i < rows; i++) { \
                const T *a = (const T *)(const void *)place(&t[MAX_PLUS_MATMUL_A], g, row + i, p, size); \
                step(a, t[MAX_PLUS_MATMUL_A].stride[2], (const T(*)[COLUMNS])b, steps, best[i], found); \
                for (int j = 0; w->indices && j < columns; j++) \
                    if (found[j] >= 0) \
                        *(int64_t *)(void *)place(w->indices, g, row + i, column + j, sizeof(int64_t)) = p + found[j]; \
            } \
        } \
        for (int i = 0; i < rows; i++) \
            memcpy(place(&t[MAX_PLUS_MATMUL_D], g, row + i, column, size), best[i], (size_t)columns *size); \
    }
TILE(tile_f32, float, int32_t, ADD_FLOATS, FLOATS, -INFINITY, INFINITY)
TILE(tile_f64, double, int64_t, ADD_FLOATS, FLOATS, -(double)INFINITY, (double)INFINITY)
TILE(tile_i32, int32_t, int32_t, ADD_INTEGERS, INTEGERS, INT32_MIN, INT32_MAX)

static void tiles(const void *context, int64_t first, int64_t last, int thread) {
    const job *w = context;
    (void)thread;
    for (int64_t at = first; at < last; at++) {
        const int64_t g = at / (w->down * w->across), row = at / w->across % w->down * ROWS,
                      column = at % w->across * COLUMNS;
        switch (w->call->type[MAX_PLUS_MATMUL_TYPE_T]) {
        case TRINE_F32: tile_f32(w, g, row, column); break;
        case TRINE_F64: tile_f64(w, g, row, column); break;
        default: tile_i32(w, g, row, column); break;
        }
    }
}

static trine_status launch(const trine_call *call) {
    const trine_max_plus_matmul_args *args = call->args;
    const int64_t m = call->dim[MAX_PLUS_MATMUL_DIM_M], n = call->dim[MAX_PLUS_MATMUL_DIM_N];
    const job w = { .call = call,
                    .c = trine_call_given(call, MAX_PLUS_MATMUL_C),
                    .indices = trine_call_given(call, MAX_PLUS_MATMUL_INDICES),
                    .down = (m + ROWS - 1) / ROWS,
                    .across = (n + COLUMNS - 1) / COLUMNS,
                    .minimum = args->minimum };
    const int64_t tasks = call->dim[MAX_PLUS_MATMUL_DIM_G] * w.down * w.across;
    const double bytes = (double)tasks * ROWS * COLUMNS * ((double)call->dim[MAX_PLUS_MATMUL_DIM_K] / 4 + 8);
    cpu_tasks(call, cpu_team(call, tasks, (int64_t)fmin(bytes, 0x1p62)), tasks, tiles, &w);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MAX_PLUS_MATMUL_DIM_M, ROWS);
    trine_kernel_edge(edges, MAX_PLUS_MATMUL_DIM_N, COLUMNS);
    trine_kernel_edge(edges, MAX_PLUS_MATMUL_DIM_K, STEP);
}

CPU_KERNELS(max_plus_matmul) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
