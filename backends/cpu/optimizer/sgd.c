/* SPDX-License-Identifier: Apache-2.0 */
/* sgd on the CPU: one pass over all the state. */
#include "optimizer.h"
#include "spec/places/sgd.h"

typedef struct job {
    const trine_tensor *param, *grad, *moment, *update, *copy; /* NULL: absent; but grad */
    float decay, momentum, part, rate, grad_scale;
    int64_t r, c, blocks; /* blocks: of a row */
    bool nesterov, skips, by_chance;
    dropout chances;
} job;

/* Elements at .. end-1 of a row, of which as many as words are made for at once. */
enum { BLOCK = DROPOUT_RUN };

INLINE int64_t place(const trine_tensor *t, int64_t i, int64_t j) { return i * t->stride[0] + j; }

INLINE vf moment_of(const job *b, vf m, vf g) { return vfma(vset(b->momentum), m, b->part * g); }

/* What the step is along; *m, which may be absent, is replaced. */
INLINE vf update_of(const job *b, vf g, vf *m) {
    if (!b->moment) return g;
    *m = moment_of(b, *m, g);
    return b->nesterov ? moment_of(b, *m, g) : *m;
}

INLINE void step_range(const job *b, int64_t i, int64_t at, int64_t end, const int32_t *words, trine_dtype grad,
                       trine_dtype type) {
    for (int64_t j = at; j < end; j += VL) {
        const int count = end - j < VL ? (int)(end - j) : VL;
        const vf g = optimizer_load(b->grad->data, grad, place(b->grad, i, j), count) * b->grad_scale;
        vf m = vzero();
        if (b->moment) m = optimizer_load(b->moment->data, b->moment->dtype, place(b->moment, i, j), count);
        const vf u = update_of(b, g, &m);
        if (b->moment) optimizer_store(b->moment->data, b->moment->dtype, place(b->moment, i, j), count, m);
        if (b->update) optimizer_store(b->update->data, TRINE_F32, place(b->update, i, j), count, u);
        if (!b->param) continue;
        const vf p = optimizer_load(b->param->data, type, place(b->param, i, j), count),
                 after = vfma(vset(-b->rate), u, vfma(vset(-b->decay), p, p));
        optimizer_store(b->param->data, type, place(b->param, i, j), count,
                        type == TRINE_BF16 && words ? optimizer_by_chance(after, words + (j - at)) : after);
        if (b->copy) optimizer_store(b->copy->data, b->copy->dtype, place(b->copy, i, j), count, after);
    }
}

INLINE void range_of_grad(const job *b, int64_t i, int64_t at, int64_t end, const int32_t *words, trine_dtype type,
                          trine_dtype grad) {
    step_range(b, i, at, end, words, grad, type);
}
INLINE void range_of_param(const job *b, int64_t i, int64_t at, int64_t end, const int32_t *words, trine_dtype type) {
    FOR_TYPE(b->grad->dtype, range_of_grad, b, i, at, end, words, type);
}

static void some(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    int32_t buffer[DROPOUT_BUFFER];
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        const int64_t i = k / b->blocks, at = k % b->blocks * BLOCK, end = at + BLOCK < b->c ? at + BLOCK : b->c;
        const int32_t *words =
            b->by_chance ? optimizer_words(&b->chances, (uint64_t)(i * b->c + at), (int)(end - at), buffer) : NULL;
        if (b->skips)
            for (int64_t j = at; j < end; j += VL)
                optimizer_store(b->update->data, TRINE_F32, place(b->update, i, j), end - j < VL ? (int)(end - j) : VL,
                                vzero());
        else
            FOR_TYPE(b->param ? b->param->dtype : TRINE_F32, range_of_param, b, i, at, end, words);
    }
}

/* That an element's update touches. */
static int64_t bytes_of(const trine_call *call) {
    const size_t moment = optimizer_given(call, SGD_MOMENT) ? vsize(call->tensor[SGD_MOMENT].dtype) : 0;
    return (int64_t)(3 * vsize(call->tensor[SGD_GRAD].dtype) + 2 * moment);
}

static trine_status launch(const trine_call *call) {
    const trine_sgd_args *args = call->args;
    const double lr = (double)optimizer_scalar(call, SGD_LR_TENSOR, args->lr);
    job b = { .param = trine_call_given(call, SGD_PARAM),
              .grad = &call->tensor[SGD_GRAD],
              .moment = trine_call_given(call, SGD_MOMENT),
              .update = trine_call_given(call, SGD_UPDATE),
              .copy = trine_call_given(call, SGD_COPY),
              .decay = (float)(lr * (double)args->weight_decay),
              .momentum = args->momentum,
              .part = (float)(1.0 - (double)args->dampening),
              .rate = (float)(lr * (double)args->scale),
              .grad_scale = optimizer_scalar(call, SGD_GRAD_SCALE, 1),
              .r = call->dim[SGD_DIM_R],
              .c = call->dim[SGD_DIM_C],
              .nesterov = args->nesterov,
              .skips = optimizer_scalar(call, SGD_FOUND_INF, 0) != 0 };
    b.blocks = (b.c + BLOCK - 1) / BLOCK;
    b.by_chance =
        b.param && !b.skips &&
        optimizer_chances(call, SGD_PARAM, SGD_PHILOX, args->stochastic, args->seed, args->stream, &b.chances);
    if (b.skips && b.copy) optimizer_skip(call, SGD_PARAM, SGD_COPY);
    if (b.skips && !b.update) return TRINE_OK;
    cpu_shares(call, cpu_team(call, b.r * b.blocks, b.r * b.c * bytes_of(call)), b.r * b.blocks, some, &b);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, SGD_DIM_C, VL);
    trine_kernel_edge(edges, SGD_DIM_C, BLOCK);
    cpu_team_edge(edges, SGD_DIM_R, call->dim[SGD_DIM_C] * bytes_of(call));
}

CPU_KERNELS(sgd) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
