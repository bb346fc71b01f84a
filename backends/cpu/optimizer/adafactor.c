/* SPDX-License-Identifier: Apache-2.0 */
/* adafactor on the CPU: sums of squares in float64 by blocks of rows, which depend on the shape alone, then the root
 * mean square of the updates, then the updates. */
#include <inttypes.h>

#include "optimizer.h"
#include "spec/places/adafactor.h"

enum { BLOCKS = 64, LEAST_ROWS = 16, COLUMNS = 64 /* that a thread adds up */ };

typedef double vd __attribute__((vector_size(VB)));
typedef float vf_half __attribute__((vector_size(VB / 2)));

typedef struct job {
    const trine_tensor *param, *grad, *copy;   /* copy: NULL: absent */
    float *row_var, *col_var;                  /* row_var: NULL: absent */
    double *columns, *rows, *params, *updates; /* sums: of each block and column, row, block and block */
    float *row, *col;                          /* 1/sqrt of each one's part of the variance */
    int64_t r, c, pitch, height, blocks;
    double w;
    float grad_scale, limit, decay, factor;
    bool by_chance;
    dropout chances;
} job;

static job shape_of(const trine_call *call) {
    job a = { .r = call->dim[ADAFACTOR_DIM_R], .c = call->dim[ADAFACTOR_DIM_C] };
    a.pitch = cpu_round_up(a.c, COLUMNS);
    a.height = (a.r + BLOCKS - 1) / BLOCKS > LEAST_ROWS ? (a.r + BLOCKS - 1) / BLOCKS : LEAST_ROWS;
    a.blocks = (a.r + a.height - 1) / a.height;
    return a;
}

static size_t workspace(const trine_call *call) {
    const job a = shape_of(call);
    return sizeof(double) * (size_t)(a.blocks * a.pitch + a.r + 2 * a.blocks) + sizeof(float) * (size_t)(a.pitch + a.r);
}

INLINE void widen(vd out[2], vf a) {
    vf_half half[2];
    memcpy(half, &a, sizeof a);
    out[0] = __builtin_convertvector(half[0], vd);
    out[1] = __builtin_convertvector(half[1], vd);
}
INLINE double sum_of(vd a, vd b) {
    const vd all = a + b;
    double sum = 0;
    for (int i = 0; i < VL / 2; i++) sum += all[i];
    return sum;
}
INLINE int count_at(const job *a, int64_t j) { return a->c - j < VL ? (int)(a->c - j) : VL; }
INLINE int64_t place(const trine_tensor *t, int64_t i, int64_t j) { return i * t->stride[0] + j; }
INLINE vf load_at(const trine_tensor *t, trine_dtype type, const job *a, int64_t i, int64_t j) {
    return optimizer_load(t->data, type, place(t, i, j), count_at(a, j));
}
/* Beyond the row 0, whatever scale. */
INLINE vf gradient(const job *a, trine_dtype grad, int64_t i, int64_t j) {
    const vf g = vproduct(load_at(a->grad, grad, a, i, j), vset(a->grad_scale));
    return vsel(viota() < count_at(a, j), g, vzero());
}

INLINE void square_block(const job *a, int64_t block, trine_dtype grad, trine_dtype type) {
    double *column = a->columns + block * a->pitch;
    const int64_t end = (block + 1) * a->height < a->r ? (block + 1) * a->height : a->r;
    vd params[2] = { { 0 } };
    memset(column, 0, (size_t)a->pitch * sizeof *column);
    for (int64_t i = block * a->height; i < end; i++) {
        vd row[2] = { { 0 } };
        for (int64_t j = 0; j < a->c; j += VL) {
            vd g[2], p[2], sum[2];
            widen(g, gradient(a, grad, i, j));
            widen(p, load_at(a->param, type, a, i, j));
            memcpy(sum, column + j, sizeof sum);
            for (int k = 0; k < 2; k++) {
                row[k] += g[k] * g[k];
                sum[k] += g[k] * g[k];
                params[k] += p[k] * p[k];
            }
            memcpy(column + j, sum, sizeof sum);
        }
        a->rows[i] = sum_of(row[0], row[1]);
    }
    a->params[block] = sum_of(params[0], params[1]);
}

/* The product of the roots, or the limit, and the gradient. */
INLINE vf update_at(const job *a, trine_dtype grad, int64_t i, int64_t j) {
    const vf scale = vset(a->row[i]) * vload(a->col, TRINE_F32, j);
    return gradient(a, grad, i, j) * vsel(scale > vset(a->limit), vset(a->limit), scale);
}

INLINE void norm_block(const job *a, int64_t block, trine_dtype grad) {
    const int64_t end = (block + 1) * a->height < a->r ? (block + 1) * a->height : a->r;
    vd sum[2] = { { 0 } };
    for (int64_t i = block * a->height; i < end; i++)
        for (int64_t j = 0; j < a->c; j += VL) {
            vd u[2];
            widen(u, vsel(viota() < count_at(a, j), update_at(a, grad, i, j), vzero()));
            for (int k = 0; k < 2; k++) sum[k] += u[k] * u[k];
        }
    a->updates[block] = sum_of(sum[0], sum[1]);
}

INLINE void update_block(const job *a, int64_t block, trine_dtype grad, trine_dtype type) {
    const int64_t end = (block + 1) * a->height < a->r ? (block + 1) * a->height : a->r;
    int32_t buffer[DROPOUT_BUFFER];
    const int32_t *words = NULL;
    for (int64_t i = block * a->height; i < end; i++)
        for (int64_t j = 0; j < a->c; j += VL) {
            const vf p = load_at(a->param, type, a, i, j), u = update_at(a, grad, i, j);
            const vf after = vfma(vset(-a->factor), u, vfma(vset(-a->decay), p, p));
            vf rounded = after;
            if (type == TRINE_BF16 && a->by_chance) {
                const int64_t rest = a->c - j;
                if (j % DROPOUT_RUN == 0)
                    words = optimizer_words(&a->chances, (uint64_t)(i * a->c + j),
                                            rest < DROPOUT_RUN ? (int)rest : DROPOUT_RUN, buffer);
                rounded = optimizer_by_chance(after, words + j % DROPOUT_RUN);
            }
            optimizer_store(a->param->data, type, place(a->param, i, j), count_at(a, j), rounded);
            if (a->copy) optimizer_store(a->copy->data, a->copy->dtype, place(a->copy, i, j), count_at(a, j), after);
        }
}

INLINE void square_of_grad(const job *a, int64_t block, trine_dtype grad) {
    FOR_TYPE(a->param->dtype, square_block, a, block, grad);
}
INLINE void update_of_grad(const job *a, int64_t block, trine_dtype grad) {
    FOR_TYPE(a->param->dtype, update_block, a, block, grad);
}

static void square_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const job *a = context;
    (void)thread;
    for (int64_t block = first; block < last; block++) FOR_TYPE(a->grad->dtype, square_of_grad, a, block);
}
static void norm_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const job *a = context;
    (void)thread;
    for (int64_t block = first; block < last; block++) FOR_TYPE(a->grad->dtype, norm_block, a, block);
}
static void update_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const job *a = context;
    (void)thread;
    for (int64_t block = first; block < last; block++) FOR_TYPE(a->grad->dtype, update_of_grad, a, block);
}

INLINE double next_variance(const job *a, double before, double sum, int64_t count) {
    return (1 - a->w) * before + a->w * (count > 0 ? sum / (double)count : 0);
}

/* Of COLUMNS columns each. */
static void column_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const job *a = context;
    (void)thread;
    for (int64_t j = first * COLUMNS; j < last * COLUMNS && j < a->c; j++) {
        double sum = 0;
        for (int64_t block = 0; block < a->blocks; block++) sum += a->columns[block * a->pitch + j];
        const double variance = next_variance(a, a->col_var[j], sum, a->r);
        a->col_var[j] = (float)variance;
        a->col[j] = (float)(1 / sqrt(variance));
    }
}

/* The sums of the rows make way for the variances, which are not rounded yet. */
static void find_rows(const job *a, double eps1) {
    double mean = 0;
    for (int64_t i = 0; i < a->r && a->row_var; i++) {
        a->rows[i] = next_variance(a, a->row_var[i], a->rows[i], a->c);
        a->row_var[i] = (float)a->rows[i];
        mean += a->rows[i] / (double)a->r;
    }
    if (mean <= eps1) mean = eps1;
    for (int64_t i = 0; i < a->r; i++) a->row[i] = a->row_var ? (float)(1 / sqrt(a->rows[i] / mean)) : 1;
}

static double root_mean(const job *a, const double *sums) {
    double sum = 0;
    for (int64_t block = 0; block < a->blocks; block++) sum += sums[block];
    return sqrt(sum / (double)(a->r * a->c));
}

static job job_of(const trine_call *call) {
    const trine_tensor *tensor = call->tensor;
    job a = shape_of(call);
    a.param = &tensor[ADAFACTOR_PARAM];
    a.grad = &tensor[ADAFACTOR_GRAD];
    a.copy = optimizer_given(call, ADAFACTOR_COPY) ? &tensor[ADAFACTOR_COPY] : NULL;
    a.row_var = optimizer_given(call, ADAFACTOR_ROW_VAR) ? tensor[ADAFACTOR_ROW_VAR].data : NULL;
    a.col_var = tensor[ADAFACTOR_COL_VAR].data;
    a.columns = call->workspace;
    a.rows = a.columns + a.blocks * a.pitch;
    a.params = a.rows + a.r;
    a.updates = a.params + a.blocks;
    a.col = (float *)(a.updates + a.blocks);
    a.row = a.col + a.pitch;
    a.grad_scale = optimizer_scalar(call, ADAFACTOR_GRAD_SCALE, 1);
    return a;
}

/* That an element's update touches. */
static int64_t bytes_of(const trine_call *call) {
    return (int64_t)(3 * vsize(call->tensor[ADAFACTOR_PARAM].dtype)) + 4;
}

static trine_status launch(const trine_call *call) {
    const trine_adafactor_args *args = call->args;
    const int64_t step = optimizer_given(call, ADAFACTOR_STEP_TENSOR)
                             ? *(const int64_t *)call->tensor[ADAFACTOR_STEP_TENSOR].data
                             : args->step;
    if (step < 1)
        return call->host->error(TRINE_ERR_ARGUMENT, "adafactor: step_tensor is %" PRId64 ", but must be at least 1",
                                 step);
    if (optimizer_scalar(call, ADAFACTOR_FOUND_INF, 0) != 0) {
        optimizer_skip(call, ADAFACTOR_PARAM, ADAFACTOR_COPY);
        return TRINE_OK;
    }
    const double lr = optimizer_scalar(call, ADAFACTOR_LR_TENSOR, args->lr), least = 1 / sqrt((double)step);
    const trine_dtype type = call->tensor[ADAFACTOR_PARAM].dtype;
    const double eps1 = args->eps1 != 0     ? args->eps1
                        : type == TRINE_F32 ? 0x1p-23
                        : type == TRINE_F16 ? 0x1p-10
                                            : 0x1p-7;
    job a = job_of(call);
    a.w = pow((double)step, args->beta2_decay);
    a.limit = (float)(1 / eps1);
    a.by_chance = optimizer_chances(call, ADAFACTOR_PARAM, ADAFACTOR_PHILOX, args->stochastic, args->seed, args->stream,
                                    &a.chances);
    a.decay = (float)(lr * args->weight_decay);
    const int team = cpu_team(call, a.blocks, a.r * a.c * bytes_of(call));
    cpu_shares(call, team, a.blocks, square_blocks, &a);
    const double size = root_mean(&a, a.params);
    const double rate = (least < lr ? least : lr) * (size > args->eps2 ? size : args->eps2);
    cpu_shares(call, team, a.pitch / COLUMNS, column_blocks, &a);
    find_rows(&a, eps1);
    cpu_shares(call, team, a.blocks, norm_blocks, &a);
    const double over = root_mean(&a, a.updates) / args->clip;
    a.factor = (float)(rate / (over > 1 ? over : 1));
    cpu_shares(call, team, a.blocks, update_blocks, &a);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, ADAFACTOR_DIM_C, VL);
    trine_kernel_edge(edges, ADAFACTOR_DIM_C, COLUMNS);
    trine_kernel_edge(edges, ADAFACTOR_DIM_R, LEAST_ROWS);
    trine_kernel_edge(edges, ADAFACTOR_DIM_R, (int64_t)LEAST_ROWS * BLOCKS);
}

CPU_KERNELS(adafactor) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
