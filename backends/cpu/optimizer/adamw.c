/* SPDX-License-Identifier: Apache-2.0 */
/* adamw on the CPU: one pass over all the state. */
#include <inttypes.h>

#include "optimizer.h"
#include "spec/places/adamw.h"

/* The step's scalars, computed in float64 and rounded once. */
typedef struct step_scalars {
    float decay, beta1, rest1, beta2, rest2, rate, inverse_root, eps, grad_scale;
} step_scalars;

typedef struct step_data {
    void *param, *m, *v, *copy;
    const void *grad;
    trine_dtype copy_type;
} step_data;

/* The new parameter; *m and *v are replaced. */
INLINE vf step_vector(const step_scalars *s, vf param, vf grad, vf *m, vf *v) {
    const vf g = grad * s->grad_scale;
    *m = vfma(vset(s->beta1), *m, s->rest1 * g);
    *v = vfma(vset(s->beta2), *v, s->rest2 * (g * g));
    const vf denominator = vfma(vsqrt(*v), vset(s->inverse_root), vset(s->eps));
    return vfma(vset(-s->rate), *m / denominator, vfma(vset(-s->decay), param, param));
}

INLINE void step_range(const step_data *d, const step_scalars *s, int64_t first, int64_t last, const int32_t *words,
                       trine_dtype state, trine_dtype type, trine_dtype grad) {
    const bool by_chance = type == TRINE_BF16 && words;
    int64_t i = first;
    if (!by_chance && type == TRINE_BF16 && grad == TRINE_BF16 && state == TRINE_BF16 &&
        (!d->copy || d->copy_type == TRINE_BF16))
        for (; i + 2 * VL <= last; i += 2 * VL) {
            vf p[2], g[2], m[2], v[2];
            vload2(p, d->param, TRINE_BF16, i);
            vload2(g, d->grad, TRINE_BF16, i);
            vload2(m, d->m, TRINE_BF16, i);
            vload2(v, d->v, TRINE_BF16, i);
            for (int j = 0; j < 2; j++) p[j] = step_vector(s, p[j], g[j], &m[j], &v[j]);
            vstore2(d->param, TRINE_BF16, i, p);
            vstore2(d->m, TRINE_BF16, i, m);
            vstore2(d->v, TRINE_BF16, i, v);
            if (d->copy) vstore2(d->copy, TRINE_BF16, i, p);
        }
    for (; i + VL <= last; i += VL) {
        vf m = vload(d->m, state, i), v = vload(d->v, state, i);
        const vf p = step_vector(s, vload(d->param, type, i), vload(d->grad, grad, i), &m, &v);
        vstore(d->param, type, i, by_chance ? optimizer_by_chance(p, words + (i - first)) : p);
        vstore(d->m, state, i, m);
        vstore(d->v, state, i, v);
        if (d->copy) vstore(d->copy, d->copy_type, i, p);
    }
    if (i < last) {
        const int rest = (int)(last - i);
        vf m = vloadn(d->m, state, i, rest, 0), v = vloadn(d->v, state, i, rest, 0);
        const vf p = step_vector(s, vloadn(d->param, type, i, rest, 0), vloadn(d->grad, grad, i, rest, 0), &m, &v);
        vstoren(d->param, type, i, rest, by_chance ? optimizer_by_chance(p, words + (i - first)) : p);
        vstoren(d->m, state, i, rest, m);
        vstoren(d->v, state, i, rest, v);
        if (d->copy) vstoren(d->copy, d->copy_type, i, rest, p);
    }
}

#include "step_blocks.h"

/* That an element's update touches. */
static int64_t bytes_of(const trine_call *call) {
    return (int64_t)(2 * vsize(call->tensor[ADAMW_PARAM].dtype) + 4 * vsize(call->tensor[ADAMW_M].dtype));
}

static trine_status launch(const trine_call *call) {
    const trine_adamw_args *args = call->args;
    const trine_tensor *tensor = call->tensor;
    const int64_t n = call->dim[ADAMW_DIM_N];
    const int64_t step =
        optimizer_given(call, ADAMW_STEP_TENSOR) ? *(const int64_t *)tensor[ADAMW_STEP_TENSOR].data : args->step;
    if (step < 1)
        return call->host->error(TRINE_ERR_ARGUMENT, "adamw: step_tensor is %" PRId64 ", but must be at least 1", step);
    const double steps = (double)step, lr = optimizer_scalar(call, ADAMW_LR_TENSOR, args->lr);
    const step_scalars s = {
        .decay = (float)(lr * args->weight_decay),
        .beta1 = args->beta1,
        .rest1 = (float)(1.0 - args->beta1),
        .beta2 = args->beta2,
        .rest2 = (float)(1.0 - args->beta2),
        .rate = (float)(lr / -expm1(steps * log(args->beta1))), /* 1 - beta^t without cancellation */
        .inverse_root = (float)(1 / sqrt(-expm1(steps * log(args->beta2)))),
        .eps = args->eps,
        .grad_scale = optimizer_scalar(call, ADAMW_GRAD_SCALE, 1),
    };
    const step_data d = { tensor[ADAMW_PARAM].data, tensor[ADAMW_M].data,
                          tensor[ADAMW_V].data,     optimizer_given(call, ADAMW_COPY) ? tensor[ADAMW_COPY].data : NULL,
                          tensor[ADAMW_GRAD].data,  tensor[ADAMW_COPY].dtype };
    const trine_dtype type = tensor[ADAMW_PARAM].dtype, state = tensor[ADAMW_M].dtype;
    update u = { .s = &s, .d = &d, .n = n, .type = type, .state = state, .grad = tensor[ADAMW_GRAD].dtype };
    const int64_t blocks = (n + OPTIMIZER_BLOCK - 1) / OPTIMIZER_BLOCK;
    u.by_chance =
        optimizer_chances(call, ADAMW_PARAM, ADAMW_PHILOX, args->stochastic, args->seed, args->stream, &u.chances);
    if (optimizer_scalar(call, ADAMW_FOUND_INF, 0) != 0)
        optimizer_skip(call, ADAMW_PARAM, ADAMW_COPY);
    else
        cpu_shares(call, cpu_team(call, blocks, n * bytes_of(call)), blocks, update_blocks, &u);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ADAMW_DIM_N, VL);
    trine_kernel_edge(edges, ADAMW_DIM_N, 2 * VL);
    trine_kernel_edge(edges, ADAMW_DIM_N, OPTIMIZER_BLOCK);
    cpu_team_edge(edges, ADAMW_DIM_N, bytes_of(call));
}

CPU_KERNELS(adamw) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
