/* SPDX-License-Identifier: Apache-2.0 */
/* lion on the CPU: one pass over all the state. */
#include "optimizer.h"
#include "spec/places/lion.h"

/* The step's scalars, computed in float64 and rounded once. */
typedef struct step_scalars {
    float decay, beta1, rest1, beta2, rest2, rate, grad_scale;
} step_scalars;

typedef struct step_data {
    void *param, *m, *copy;
    const void *grad;
    trine_dtype copy_type;
} step_data;

/* The new parameter; *m is replaced. Each operation of what the sign is of is rounded. */
INLINE vf step_vector(const step_scalars *s, vf param, vf grad, vf *m) {
    const vf g = vproduct(grad, vset(s->grad_scale));
    const vf c = vproduct(vset(s->beta1), *m) + vproduct(vset(s->rest1), g);
    const vf sign = vsel(c > vzero(), vset(1), vsel(c < vzero(), vset(-1), vsel(c == vzero(), vzero(), c)));
    *m = vfma(vset(s->beta2), *m, s->rest2 * g);
    return vfma(vset(-s->rate), sign, vfma(vset(-s->decay), param, param));
}

INLINE void step_range(const step_data *d, const step_scalars *s, int64_t first, int64_t last, const int32_t *words,
                       trine_dtype state, trine_dtype type, trine_dtype grad) {
    const bool by_chance = type == TRINE_BF16 && words;
    int64_t i = first;
    if (!by_chance && type == TRINE_BF16 && grad == TRINE_BF16 && state == TRINE_BF16 &&
        (!d->copy || d->copy_type == TRINE_BF16))
        for (; i + 2 * VL <= last; i += 2 * VL) {
            vf p[2], g[2], m[2];
            vload2(p, d->param, TRINE_BF16, i);
            vload2(g, d->grad, TRINE_BF16, i);
            vload2(m, d->m, TRINE_BF16, i);
            for (int j = 0; j < 2; j++) p[j] = step_vector(s, p[j], g[j], &m[j]);
            vstore2(d->param, TRINE_BF16, i, p);
            vstore2(d->m, TRINE_BF16, i, m);
            if (d->copy) vstore2(d->copy, TRINE_BF16, i, p);
        }
    for (; i + VL <= last; i += VL) {
        vf m = vload(d->m, state, i);
        const vf p = step_vector(s, vload(d->param, type, i), vload(d->grad, grad, i), &m);
        vstore(d->param, type, i, by_chance ? optimizer_by_chance(p, words + (i - first)) : p);
        vstore(d->m, state, i, m);
        if (d->copy) vstore(d->copy, d->copy_type, i, p);
    }
    if (i < last) {
        const int rest = (int)(last - i);
        vf m = vloadn(d->m, state, i, rest, 0);
        const vf p = step_vector(s, vloadn(d->param, type, i, rest, 0), vloadn(d->grad, grad, i, rest, 0), &m);
        vstoren(d->param, type, i, rest, by_chance ? optimizer_by_chance(p, words + (i - first)) : p);
        vstoren(d->m, state, i, rest, m);
        if (d->copy) vstoren(d->copy, d->copy_type, i, rest, p);
    }
}

#include "step_blocks.h"

/* That an element's update touches. */
static int64_t bytes_of(const trine_call *call) {
    return (int64_t)(2 * vsize(call->tensor[LION_PARAM].dtype) + 2 * vsize(call->tensor[LION_M].dtype));
}

static trine_status launch(const trine_call *call) {
    const trine_lion_args *args = call->args;
    const trine_tensor *tensor = call->tensor;
    const int64_t n = call->dim[LION_DIM_N], blocks = (n + OPTIMIZER_BLOCK - 1) / OPTIMIZER_BLOCK;
    const double lr = optimizer_scalar(call, LION_LR_TENSOR, args->lr);
    const step_scalars s = {
        .decay = (float)(lr * args->weight_decay),
        .beta1 = args->beta1,
        .rest1 = (float)(1.0 - args->beta1),
        .beta2 = args->beta2,
        .rest2 = (float)(1.0 - args->beta2),
        .rate = (float)lr,
        .grad_scale = optimizer_scalar(call, LION_GRAD_SCALE, 1),
    };
    const step_data d = { tensor[LION_PARAM].data, tensor[LION_M].data,
                          optimizer_given(call, LION_COPY) ? tensor[LION_COPY].data : NULL, tensor[LION_GRAD].data,
                          tensor[LION_COPY].dtype };
    update u = { .s = &s,
                 .d = &d,
                 .n = n,
                 .type = tensor[LION_PARAM].dtype,
                 .state = tensor[LION_M].dtype,
                 .grad = tensor[LION_GRAD].dtype };
    u.by_chance =
        optimizer_chances(call, LION_PARAM, LION_PHILOX, args->stochastic, args->seed, args->stream, &u.chances);
    if (optimizer_scalar(call, LION_FOUND_INF, 0) != 0)
        optimizer_skip(call, LION_PARAM, LION_COPY);
    else
        cpu_shares(call, cpu_team(call, blocks, n * bytes_of(call)), blocks, update_blocks, &u);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, LION_DIM_N, VL);
    trine_kernel_edge(edges, LION_DIM_N, 2 * VL);
    trine_kernel_edge(edges, LION_DIM_N, OPTIMIZER_BLOCK);
    cpu_team_edge(edges, LION_DIM_N, bytes_of(call));
}

CPU_KERNELS(lion) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
