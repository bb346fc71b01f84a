/* SPDX-License-Identifier: Apache-2.0 */
/* What recurrent cells share on the CPU: a task is a head of a sequence, all of whose steps it takes in their order.
 * Matrices are copied to f32 first, so that products are sums of rows of whole vectors; who takes a task does not
 * matter to it. */
#ifndef TRINE_CPU_RECURRENT_CELLS_H
#define TRINE_CPU_RECURRENT_CELLS_H

#include <inttypes.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec_math.h"

#define CELL_UNUSED __attribute__((unused))
/* In front of a loop of up to 4 turns, whose numbers stay in registers. */
#define UNROLLED _Pragma("GCC unroll 4")

enum {
    CELL_GATES = 4,
    CELL_STATES = 4,
    CELL_BLOCK = 4,   /* vectors of a product that are summed at a time */
    CELL_TOGETHER = 4 /* sequences at most that share what is read of a matrix */
};

/* A tensor by its strides: of a batch, a step, a gate and a head; NULL: absent. */
typedef struct cell_tensor {
    char *data;
    trine_dtype dtype;
    int64_t batch, step, gate, head;
} cell_tensor;

typedef struct cells {
    const trine_call *call;
    int products; /* of a step, for the count of threads */
    int together; /* sequences of a task */
    const int32_t *cu;
    int64_t b, t, h, d, count;
    int64_t width; /* of rows in the workspace: d in whole vectors */
    cell_tensor wx, r, bias, y, gates, state[CELL_STATES], start[CELL_STATES], last[CELL_STATES];
    cell_tensor dy, dwx, dr, dbias, dlast[CELL_STATES], dstart[CELL_STATES];
    float *matrices;    /* of each head, in the workspace */
    float *scratch;     /* of each task */
    float *dg, *before; /* of a gradient: of each step, `saved` rows of each head, and h before it */
} cells;

/* Strides of [b] t [gates] h d, of [s] h d, and of the like. */
static inline cell_tensor cell_tensor_of(const trine_call *call, int tensor, bool gated) {
    const trine_tensor *t = trine_call_given(call, tensor);
    if (t == NULL) return (cell_tensor){ 0 };
    cell_tensor c = { .data = t->data, .dtype = t->dtype, .head = t->stride[t->rank - 2] };
    c.batch = t->stride[0];
    if (t->rank > 3) c.step = t->stride[1];
    if (gated) c.gate = t->stride[t->rank - 3];
    return c;
}

/* Row of a head in a step of a sequence; in a sequence's states. */
INLINE void *cell_row(const cells *a, const cell_tensor *t, int64_t i, int64_t k, int gate, int64_t head) {
    const int64_t at =
        (a->cu ? (a->cu[i] + k) * t->step : i * t->batch + k * t->step) + gate * t->gate + head * t->head;
    return t->data + at * (int64_t)vsize(t->dtype);
}
static inline float *cell_state(const cell_tensor *t, int64_t i, int64_t head) {
    return t->data ? (float *)t->data + i * t->batch + head * t->head : NULL;
}
static inline int64_t cell_steps(const cells *a, int64_t i) { return a->cu ? a->cu[i + 1] - a->cu[i] : a->t; }
/* The number of a step among all. */
static inline int64_t cell_step(const cells *a, int64_t i, int64_t k) { return (a->cu ? a->cu[i] : i * a->t) + k; }

INLINE vf cell_get(const void *row, trine_dtype T, int64_t j, int m) {
    return m == VL ? vload(row, T, j) : vloadn(row, T, j, m, 0);
}
INLINE void cell_put(void *row, trine_dtype T, int64_t j, int m, vf x) {
    if (m == VL)
        vstore(row, T, j, x);
    else
        vstoren(row, T, j, m, x);
}

/* Does a step for each vector of a row: j .. j+m-1, m being VL but in the last. */
#define CELL_EACH(n, j, m, ...) \
    do { \
        for (int64_t j = 0; j < (n); j += VL) { \
            const int m = (n) - j < VL ? (int)((n) - j) : VL; \
            __VA_ARGS__; \
        } \
    } while (0)

/* out = sum over rows i of x[i] matrix[i], for n of both, of `columns` in whole vectors; `more`: and of what is there.
 * Each element is a sum of its own, whatever stands beside it. */
INLINE void cell_product_of(const float *matrix, const float *const *x, int n, int vectors, int64_t rows,
                            int64_t columns, int64_t j, bool more, float *const *out) {
    vf sum[CELL_TOGETHER][CELL_BLOCK] = { 0 };
    if (more) {
        UNROLLED for (int s = 0; s < n; s++) {
            UNROLLED for (int v = 0; v < vectors; v++) sum[s][v] = vload(out[s], TRINE_F32, j + (int64_t)v * VL);
        }
    }
    for (int64_t i = 0; i < rows; i++) {
        UNROLLED for (int v = 0; v < vectors; v++) {
            const vf m = vload(matrix + i * columns, TRINE_F32, j + (int64_t)v * VL);
            UNROLLED for (int s = 0; s < n; s++) sum[s][v] = vfma(vset(x[s][i]), m, sum[s][v]);
        }
    }
    UNROLLED for (int s = 0; s < n; s++) {
        UNROLLED for (int v = 0; v < vectors; v++) vstore(out[s], TRINE_F32, j + (int64_t)v * VL, sum[s][v]);
    }
}
INLINE void cell_product_all(const float *matrix, const float *const *x, int n, int vectors, int64_t rows,
                             int64_t columns, bool more, float *const *out) {
    int64_t j = 0;
    for (; j + (int64_t)vectors * VL <= columns; j += (int64_t)vectors * VL)
        cell_product_of(matrix, x, n, vectors, rows, columns, j, more, out);
    for (; j < columns; j += VL) cell_product_of(matrix, x, n, 1, rows, columns, j, more, out);
}
static inline void cell_product(const float *matrix, const float *const *x, int n, int64_t rows, int64_t columns,
                                bool more, float *const *out) {
    if (n == 1)
        cell_product_all(matrix, x, 1, 4, rows, columns, more, out);
    else if (n == 2)
        cell_product_all(matrix, x, 2, 4, rows, columns, more, out);
    else if (n == 3)
        cell_product_all(matrix, x, 3, 2, rows, columns, more, out);
    else
        cell_product_all(matrix, x, 4, 2, rows, columns, more, out);
}

/* Offsets that are none are told of before anything is written. */
static inline trine_status cell_check(const cells *a) {
    const char *op = a->call->plan->spec->name;
    if (a->cu == NULL) return TRINE_OK;
    if (a->cu[0] != 0)
        return a->call->host->error(TRINE_ERR_ARGUMENT, "%s: cu_seqlens[0] is %d, but must be 0", op, (int)a->cu[0]);
    for (int64_t i = 0; i < a->count; i++)
        if (a->cu[i + 1] < a->cu[i])
            return a->call->host->error(TRINE_ERR_ARGUMENT,
                                        "%s: cu_seqlens[%" PRId64 "] is %d, below cu_seqlens[%" PRId64 "] = %d", op,
                                        i + 1, (int)a->cu[i + 1], i, (int)a->cu[i]);
    if (a->cu[a->count] <= a->t) return TRINE_OK;
    return a->call->host->error(TRINE_ERR_ARGUMENT,
                                "%s: cu_seqlens[%" PRId64 "] is %d, but there are %" PRId64 " steps", op, a->count,
                                (int)a->cu[a->count], a->t);
}

/* The room behind the last of packed sequences is 0. */
static inline void cell_clear(const cells *a, const cell_tensor *t, int gates) {
    if (a->cu == NULL || t->data == NULL) return;
    for (int64_t k = a->cu[a->count]; k < a->t; k++)
        for (int q = 0; q < gates; q++)
            for (int64_t head = 0; head < a->h; head++)
                memset(t->data + (k * t->step + q * t->gate + head * t->head) * (int64_t)vsize(t->dtype), 0,
                       (size_t)a->d * vsize(t->dtype));
}

static inline int64_t cell_width(int64_t d) { return cpu_round_up(d, VL); }

static inline cells cells_of(const trine_call *call, int64_t b, int64_t t, int64_t h, int64_t d, int64_t sequences,
                             const trine_tensor *cu) {
    cells a = { .call = call, .cu = cu ? cu->data : NULL, .b = b, .t = t, .h = h, .d = d, .width = cell_width(d) };
    a.count = cu ? sequences : b;
    return a;
}

/* Sequences of a head that a task has: results do not depend on it. */
static inline int cell_together(const cells *a) {
    const int64_t threads = ((const cpu_queue *)a->call->queue)->threads, even = a->count * a->h / threads;
    return even > CELL_TOGETHER ? CELL_TOGETHER : even < 1 ? 1 : (int)even;
}
/* The sequences of a task, from i on, their head, and how many steps the longest has. */
typedef struct cell_task {
    int64_t i, head, steps;
    int n;
} cell_task;
static inline cell_task cell_task_of(const cells *a, int64_t number, int together) {
    cell_task k = { .i = number / a->h * together, .head = number % a->h };
    k.n = a->count - k.i < together ? (int)(a->count - k.i) : together;
    for (int s = 0; s < k.n; s++) k.steps = cell_steps(a, k.i + s) > k.steps ? cell_steps(a, k.i + s) : k.steps;
    return k;
}
static inline int64_t cell_tasks(const cells *a, int together) { return (a->count + together - 1) / together * a->h; }

static inline int cell_team(const cells *a, int64_t tasks) {
    return cpu_team(a->call, tasks, a->count * a->h * a->t * a->d * (a->d + 8) * a->products);
}

#endif
