/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cross_entropy and its gradient as products, cross-entropies and sums of chunks of tokens: the logits of one
 * chunk are in the workspace, in f32, and become their own gradients, or those of the products' type beside them. */
#ifndef TRINE_COMPOSED_LINEAR_CROSS_ENTROPY_H
#define TRINE_COMPOSED_LINEAR_CROSS_ENTROPY_H

#include <trine/ops.h>

#include <trine/matmul.h>

#include <trine/reduce.h>

#include <trine/loss.h>

#include <trine/elementwise.h>

#include "backends/composed/nested.h"

/* A call of either op. Optional tensors that are absent are NULL; their places in the workspace are from its
 * beginning. */
typedef struct head {
    const trine_call *call;
    int t_symbol; /* the place of t among the op's symbols */
    int64_t t, k, v;
    const trine_tensor *x, *weight, *labels, *bias, *loss, *lse, *dloss, *dx, *dweight, *dbias, *class_weight;
    bool backward; /* lse is given, and there is no loss */
    float label_smoothing, z_loss, logit_scale;
    int32_t ignore_index_set;
    int64_t ignore_index;
    int64_t rows, chunks; /* all chunks have so many tokens, but the last */
    struct {
        size_t logits, gradient, dweight, bias, sums, dbias, nested;
    } at;
    size_t nested_size, size;
    bool too_large; /* more bytes than an address can tell */
} head;

/* Tokens of a chunk. Its logits, in f32, are about half as large as x and weight together would be; fewer tokens than
 * 256 make products slow, since each reads the whole weight, and adds to the whole of its gradient. */
enum { HEAD_LEAST_ROWS = 256, HEAD_ROW_STEP = 64 };

static inline int64_t head_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

static inline void head_chunks(head *h) {
    const int64_t wanted = (int64_t)(0.5 * ((double)h->k + (double)h->t * (double)h->k / (double)(h->v + !h->v))),
                  most = wanted > HEAD_LEAST_ROWS ? head_up(wanted, HEAD_ROW_STEP) : HEAD_LEAST_ROWS;
    h->chunks = h->t > most ? (h->t + most - 1) / most : 1;
    h->rows = h->chunks > 1 ? head_up((h->t + h->chunks - 1) / h->chunks, HEAD_ROW_STEP) : h->t;
    if (h->chunks > 1) h->chunks = (h->t + h->rows - 1) / h->rows;
}

static inline bool head_gradient(const head *h) { return h->dx || h->dweight || h->dbias; }
/* Are products of the gradient of a narrower type than the logits'? */
static inline bool head_narrow(const head *h) { return h->x->dtype != TRINE_F32 && (h->dx || h->dweight); }
/* Do they come in that type, or are they cast, since the bias's is a sum of what they were before? */
static inline bool head_narrow_at_once(const head *h) { return head_narrow(h) && !h->dbias; }
/* Is the gradient of the weight added up in the workspace? */
static inline bool head_adds_up(const head *h) { return h->dweight && h->chunks > 1 && h->dweight->dtype != TRINE_F32; }

/* ------------------------------------------------------------------------------------------------------------ steps */

/* Where a place of the workspace is; NULL while there is none, when sizes are asked for. */
static inline void *head_place(const head *h, size_t at) {
    return h->call->workspace ? (char *)h->call->workspace + at : NULL;
}

/* Rows [first, first + count) of a tensor. */
static inline trine_tensor head_rows(const trine_tensor *t, int64_t first, int64_t count) {
    trine_tensor part = *t;
    if (part.data) part.data = (char *)part.data + first * part.stride[0] * (int64_t)trine_dtype_size(part.dtype);
    part.shape[0] = count;
    return part;
}

static inline trine_status head_step(head *h, bool run, trine_op op, const void *args) {
    return nested_step(h->call, run, op, args, h->at.nested, &h->nested_size);
}

static inline trine_status head_cast(head *h, bool run, const trine_tensor *x, const trine_tensor *y) {
    const trine_cast_args args = { .struct_size = sizeof args, .x = x, .y = y };
    return head_step(h, run, TRINE_OP_CAST, &args);
}

#define HEAD_TRY(call) \
    do { \
        const trine_status status_ = (call); \
        if (status_ != TRINE_OK) return status_; \
    } while (0)

/* The bias as products to f32 take it. */
static inline trine_tensor head_bias(const head *h) {
    return h->bias && h->bias->dtype == TRINE_F32 ? *h->bias
                                                  : trine_tensor_1d(head_place(h, h->at.bias), TRINE_F32, h->v);
}

/* Loss and lse of a chunk, and its logits' gradient. */
static inline trine_status head_loss(head *h, bool run, int64_t first, const trine_tensor *logits,
                                     const trine_tensor *dlogits) {
    const int64_t count = logits->shape[0];
    const trine_tensor labels = head_rows(h->labels, first, count);
    const bool gradient = head_gradient(h);
    trine_tensor loss, lse, dloss;
    if (h->lse) lse = head_rows(h->lse, first, count);
    if (h->dloss) dloss = head_rows(h->dloss, first, count);
    if (h->backward) {
        const trine_cross_entropy_backward_args args = { .struct_size = sizeof args,
                                                         .logits = logits,
                                                         .labels = &labels,
                                                         .lse = &lse,
                                                         .dloss = &dloss,
                                                         .dlogits = dlogits,
                                                         .label_smoothing = h->label_smoothing,
                                                         .z_loss = h->z_loss,
                                                         .logit_scale = h->logit_scale == 0 ? -0.0f : h->logit_scale,
                                                         .ignore_index_set = h->ignore_index_set,
                                                         .ignore_index = h->ignore_index,
                                                         .class_weight = h->class_weight };
        return head_step(h, run, TRINE_OP_CROSS_ENTROPY_BACKWARD, &args);
    }
    loss = head_rows(h->loss, first, count);
    const trine_cross_entropy_args args = { .struct_size = sizeof args,
                                            .logits = logits,
                                            .labels = &labels,
                                            .loss = &loss,
                                            .lse = h->lse ? &lse : NULL,
                                            .label_smoothing = h->label_smoothing,
                                            .z_loss = h->z_loss,
                                            .logit_scale = h->logit_scale == 0 ? -0.0f : h->logit_scale,
                                            .ignore_index_set = h->ignore_index_set,
                                            .ignore_index = h->ignore_index,
                                            .dloss = gradient && h->dloss ? &dloss : NULL,
                                            .dlogits = gradient ? dlogits : NULL,
                                            .class_weight = h->class_weight };
    return head_step(h, run, TRINE_OP_CROSS_ENTROPY, &args);
}

/* Gradients of a chunk from its logits', as they come and as products take them. Those of weight and bias are sums over
 * chunks. */
static inline trine_status head_gradients(head *h, bool run, int64_t chunk, const trine_tensor *dlogits,
                                          const trine_tensor *g) {
    const int64_t first = chunk * h->rows, count = g->shape[0];
    const trine_tensor x = head_rows(h->x, first, count);
    if (h->dbias) {
        const trine_tensor sums =
            trine_tensor_1d(head_place(h, h->at.sums + (size_t)(chunk * h->v) * sizeof(float)), TRINE_F32, h->v);
        const trine_reduce_sum_args args = { .struct_size = sizeof args, .x = dlogits, .column_sums = &sums };
        HEAD_TRY(head_step(h, run, TRINE_OP_REDUCE_SUM, &args));
    }
    if (head_narrow(h) && !head_narrow_at_once(h)) HEAD_TRY(head_cast(h, run, dlogits, g));
    if (h->dx) {
        const trine_tensor dx = head_rows(h->dx, first, count);
        const trine_matmul_args args = { .struct_size = sizeof args, .a = g, .b = h->weight, .d = &dx };
        HEAD_TRY(head_step(h, run, TRINE_OP_MATMUL, &args));
    }
    if (h->dweight) {
        const trine_tensor transposed = trine_tensor_transpose(g),
                           sum = head_adds_up(h) ? trine_tensor_2d(head_place(h, h->at.dweight), TRINE_F32, h->v, h->k)
                                                 : *h->dweight;
        const trine_matmul_args args = { .struct_size = sizeof args,
                                         .a = &transposed,
                                         .b = &x,
                                         .c = chunk > 0 ? &sum : NULL,
                                         .beta = chunk > 0,
                                         .d = &sum };
        HEAD_TRY(head_step(h, run, TRINE_OP_MATMUL, &args));
        if (head_adds_up(h) && chunk == h->chunks - 1) HEAD_TRY(head_cast(h, run, &sum, h->dweight));
    }
    return TRINE_OK;
}

static inline trine_status head_chunk(head *h, bool run, int64_t chunk) {
    const int64_t first = chunk * h->rows, count = h->t - first < h->rows ? h->t - first : h->rows;
    const trine_tensor x = head_rows(h->x, first, count), across = trine_tensor_transpose(h->weight),
                       bias = head_bias(h),
                       logits = trine_tensor_2d(head_place(h, h->at.logits), TRINE_F32, count, h->v),
                       narrow = trine_tensor_2d(head_place(h, h->at.gradient), h->x->dtype, count, h->v);
    const trine_tensor *dlogits = head_narrow_at_once(h) ? &narrow : &logits;
    const trine_matmul_args args = {
        .struct_size = sizeof args, .a = &x, .b = &across, .bias = h->bias ? &bias : NULL, .d = &logits
    };
    HEAD_TRY(head_step(h, run, TRINE_OP_MATMUL, &args));
    HEAD_TRY(head_loss(h, run, first, &logits, dlogits));
    return head_gradient(h) ? head_gradients(h, run, chunk, dlogits, head_narrow(h) ? &narrow : &logits) : TRINE_OK;
}

/* The gradient of the bias: the sum of the chunks' sums. */
static inline trine_status head_dbias(head *h, bool run) {
    const trine_tensor sums = trine_tensor_2d(head_place(h, h->at.sums), TRINE_F32, h->chunks, h->v),
                       wide = trine_tensor_1d(head_place(h, h->at.dbias), TRINE_F32, h->v);
    const bool narrow = h->dbias->dtype != TRINE_F32;
    const trine_reduce_sum_args args = { .struct_size = sizeof args,
                                         .x = &sums,
                                         .column_sums = narrow ? &wide : h->dbias };
    HEAD_TRY(head_step(h, run, TRINE_OP_REDUCE_SUM, &args));
    return narrow ? head_cast(h, run, &wide, h->dbias) : TRINE_OK;
}

/* All of the call. Of the sizes the first chunk's, the second's, which adds to the first's, and the last's are
 * enough. */
static inline trine_status head_walk(head *h, bool run) {
    if (h->bias && h->bias->dtype != TRINE_F32) {
        const trine_tensor bias = head_bias(h);
        HEAD_TRY(head_cast(h, run, h->bias, &bias));
    }
    for (int64_t chunk = 0; chunk < h->chunks; chunk++) {
        if (!run && chunk == 2 && h->chunks > 3) chunk = h->chunks - 1;
        HEAD_TRY(head_chunk(h, run, chunk));
    }
    return h->dbias ? head_dbias(h, run) : TRINE_OK;
}

/* ------------------------------------------------------------------------------------------------------- workspace */

/* The place of a matrix. Where x and weight are empty, no tensor of the call bounds its size. */
static inline void head_lay(head *h, bool needed, int64_t rows, int64_t columns, trine_dtype dtype, size_t *at_out) {
    enum { ALIGNMENT = 256 };
    int64_t end;
    *at_out = h->size;
    if (!needed || h->too_large) return;
    h->too_large = __builtin_mul_overflow(rows, columns, &end) ||
                   __builtin_mul_overflow(end, (int64_t)trine_dtype_size(dtype), &end) ||
                   __builtin_add_overflow(end, (int64_t)h->size + ALIGNMENT, &end);
    if (!h->too_large) h->size = (size_t)((end - 1) / ALIGNMENT * ALIGNMENT);
}

/* Lays the workspace out, and finds out what the ops within need. An error if one has no kernel. */
static inline trine_status head_plan(head *h) {
    head_chunks(h);
    const bool narrow_bias = h->bias && h->bias->dtype != TRINE_F32,
               narrow_dbias = h->dbias && h->dbias->dtype != TRINE_F32;
    head_lay(h, true, h->rows, h->v, TRINE_F32, &h->at.logits);
    head_lay(h, head_narrow(h), h->rows, h->v, h->x->dtype, &h->at.gradient);
    head_lay(h, head_adds_up(h), h->v, h->k, TRINE_F32, &h->at.dweight);
    head_lay(h, narrow_bias, 1, h->v, TRINE_F32, &h->at.bias);
    head_lay(h, h->dbias != NULL, h->chunks, h->v, TRINE_F32, &h->at.sums);
    head_lay(h, narrow_dbias, 1, h->v, TRINE_F32, &h->at.dbias);
    if (h->too_large) return TRINE_ERR_MEMORY;
    h->at.nested = h->size;
    const trine_status status = head_walk(h, false);
    h->size += h->nested_size;
    return status;
}

/* TRINE_OK if every label is a class or the ignored one, as far as the host can see them: before a chunk has written
 * anything. */
static inline trine_status head_check_labels(const head *h) {
    const int64_t ignored = h->ignore_index_set ? h->ignore_index : -100;
    if (!h->call->host->readable(h->call)) return TRINE_OK;
    for (int64_t i = 0; i < h->t; i++) {
        const int64_t y = h->labels->dtype == TRINE_I32 ? ((const int32_t *)h->labels->data)[i]
                                                        : ((const int64_t *)h->labels->data)[i];
        if ((y < 0 || y >= h->v) && y != ignored)
            return h->call->host->error(
                TRINE_ERR_ARGUMENT, "%s: labels[%lld] = %lld is neither in [0, v = %lld) nor the ignored label %lld",
                h->call->plan->spec->name, (long long)i, (long long)y, (long long)h->v, (long long)ignored);
    }
    return TRINE_OK;
}

/* --------------------------------------------------------------------------------------------------------- kernels */

/* The self of a kernel: what reads a call of its op. */
typedef struct head_op {
    head (*of)(const trine_call *call);
} head_op;

static inline head head_of_call(const trine_call *call) { return ((const head_op *)call->self)->of(call); }

/* Any other error would be a fault of these steps: the launch returns it. */
static inline const char *head_refuse(const trine_call *call) {
    head h = head_of_call(call);
    const trine_status status = head_plan(&h);
    if (h.too_large) return "the logits of a chunk are larger than any memory";
    return status == TRINE_ERR_UNSUPPORTED ? "an op that it is made of has no kernel for this" : NULL;
}

static inline size_t head_workspace(const trine_call *call) {
    head h = head_of_call(call);
    return head_plan(&h) == TRINE_OK ? h.size : 0;
}

static inline trine_status head_launch(const trine_call *call) {
    head h = head_of_call(call);
    HEAD_TRY(head_check_labels(&h));
    HEAD_TRY(head_plan(&h));
    return head_walk(&h, true);
}

/* Where one chunk becomes two, and where this call's chunks end. */
static inline void head_edges(const trine_call *call, trine_kernel_edges *edges) {
    head h = head_of_call(call);
    head_chunks(&h);
    trine_kernel_edge(edges, h.t_symbol, HEAD_LEAST_ROWS);
    if (h.chunks > 1) trine_kernel_edge(edges, h.t_symbol, h.rows * (h.chunks - 1));
}

#define HEAD_KERNELS(op) \
    const trine_kernel trine_##op##_composed[] = { \
        { .name = "composed", \
          .refuse = head_refuse, \
          .workspace = head_workspace, \
          .launch = head_launch, \
          .edges = head_edges, \
          .self = &(const head_op){ head_of } }, \
        { .name = NULL }, \
    }

#endif
