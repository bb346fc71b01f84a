/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_quantized on the CPU: a block of 256 elements at a time, whose moments are floats in between. */
#include <inttypes.h>

#include "optimizer.h"
#include "spec/optimizer/dynamic_codes.h"
#include "spec/places/adamw_quantized.h"

typedef struct step_scalars {
    float decay, beta1, rest1, beta2, rest2, rate, inverse_root, eps, grad_scale;
} step_scalars;

/* Numbers from 2^-23 to 1 by their exponent and the first 7 bits behind it. */
enum { PLACE_FIRST = (127 - 23) << 7, PLACES = 23 * 128 + 1 };

typedef struct update {
    const trine_tensor *param, *grad, *copy; /* copy: NULL: absent */
    uint8_t *m, *v;
    float *m_most, *v_most;
    step_scalars s;
    dynamic_codes codes;
    float both[DYNAMIC_BLOCK]; /* values of codes with a sign */
    uint8_t least_positive[PLACES], least[PLACES];
    int64_t n;
    bool by_chance;
    dropout chances;
} update;

typedef struct moments {
    float m[DYNAMIC_BLOCK], v[DYNAMIC_BLOCK];
    vf m_most, v_most;
} moments;

INLINE vf larger(vf a, vf b) { return vsel((a != a) | (a >= b), a, b); }

INLINE void step_vector(const update *u, moments *a, int64_t first, int i, int count, const int32_t *words,
                        trine_dtype type, trine_dtype grad) {
    const step_scalars *s = &u->s;
    const vf g = vproduct(optimizer_load(u->grad->data, grad, first + i, count), vset(s->grad_scale));
    const vf m = vproduct(vset(s->beta1), vload(a->m, TRINE_F32, i)) + vproduct(vset(s->rest1), g);
    const vf v = vproduct(vset(s->beta2), vload(a->v, TRINE_F32, i)) + vproduct(vset(s->rest2), vproduct(g, g));
    const vf param = optimizer_load(u->param->data, type, first + i, count);
    const vf p = vfma(vset(-s->rate), m / vfma(vsqrt(v), vset(s->inverse_root), vset(s->eps)),
                      vfma(vset(-s->decay), param, param));
    optimizer_store(u->param->data, type, first + i, count,
                    type == TRINE_BF16 && words ? optimizer_by_chance(p, words + i) : p);
    if (u->copy) optimizer_store(u->copy->data, u->copy->dtype, first + i, count, p);
    vstore(a->m, TRINE_F32, i, m);
    vstore(a->v, TRINE_F32, i, v);
    const vi inside = viota() < count;
    a->m_most = larger(a->m_most, vsel(inside, vabs(m), vzero()));
    a->v_most = larger(a->v_most, vsel(inside, v, vzero()));
}

INLINE float most_of(vf a) {
    vf most = a;
    for (int half = VL / 2; half > 0; half /= 2) most = larger(most, vupper(most, half));
    return most[0];
}

/* The code of a share x <= 1 without a sign: that of the least number with the same exponent and 7 bits behind it, of
 * which no two middles share all, or the one after. Below 2^-23 it is 0. */
INLINE int code_of(float x, const uint8_t *least, const float *middle) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int32_t place = (bits >> 16) - PLACE_FIRST;
    const int code = least[place < 0 ? 0 : place];
    return code + (x > middle[code]);
}

static void encode(const update *u, const moments *a, int64_t first, int count, float m_most, float v_most) {
    const bool m_counts = m_most > 0 && m_most < INFINITY, v_counts = v_most > 0 && v_most < INFINITY;
    float share[DYNAMIC_BLOCK];
    uint8_t *m = u->m + first, *v = u->v + first;
    for (int i = 0; i < DYNAMIC_BLOCK; i++) share[i] = fabsf(a->m[i]) / m_most;
    for (int i = 0; i < count && m_counts; i++) {
        int k = code_of(share[i], u->least_positive, u->codes.positive_middle);
        k -= a->m[i] < 0 && k > DYNAMIC_ZERO;
        m[i] = (uint8_t)(DYNAMIC_ZERO + (a->m[i] < 0 ? -k : k));
    }
    for (int i = 0; i < DYNAMIC_BLOCK; i++) share[i] = a->v[i] / v_most;
    for (int i = 0; i < count && v_counts; i++) v[i] = (uint8_t)code_of(share[i], u->least, u->codes.middle);
    if (!m_counts) memset(m, DYNAMIC_ZERO, (size_t)count);
    if (!v_counts) memset(v, 0, (size_t)count);
}

INLINE void step_block(const update *u, int64_t block, trine_dtype type, trine_dtype grad) {
    const int64_t first = block * DYNAMIC_BLOCK;
    const int count = u->n - first < DYNAMIC_BLOCK ? (int)(u->n - first) : DYNAMIC_BLOCK;
    moments a = { .m_most = vzero(), .v_most = vzero() };
    for (int i = 0; i < count; i++) a.m[i] = u->both[u->m[first + i]] * u->m_most[block];
    for (int i = 0; i < count; i++) a.v[i] = u->codes.value[u->v[first + i]] * u->v_most[block];
    int32_t buffer[DROPOUT_BUFFER];
    const int32_t *words =
        type == TRINE_BF16 && u->by_chance ? optimizer_words(&u->chances, (uint64_t)first, count, buffer) : NULL;
    for (int i = 0; i < count; i += VL)
        step_vector(u, &a, first, i, count - i < VL ? count - i : VL, words, type, grad);
    u->m_most[block] = most_of(a.m_most);
    u->v_most[block] = most_of(a.v_most);
    encode(u, &a, first, count, u->m_most[block], u->v_most[block]);
}

INLINE void block_of_grad(const update *u, int64_t block, trine_dtype type, trine_dtype grad) {
    step_block(u, block, type, grad);
}
INLINE void block_of_param(const update *u, int64_t block, trine_dtype type) {
    FOR_TYPE(u->grad->dtype, block_of_grad, u, block, type);
}
static void update_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const update *u = context;
    (void)thread;
    for (int64_t block = first; block < last; block++) FOR_TYPE(u->param->dtype, block_of_param, u, block);
}

/* That an element's update touches. */
static int64_t bytes_of(const trine_call *call) {
    return (int64_t)(2 * vsize(call->tensor[ADAMW_QUANTIZED_PARAM].dtype)) + 4;
}

/* For each place the code of its least number. */
static void fill_places(uint8_t *least, const float *middle, int middles) {
    int code = 0;
    for (int32_t place = 0; place < PLACES; place++) {
        const int32_t bits = (PLACE_FIRST + place) << 16;
        float x;
        memcpy(&x, &bits, sizeof x);
        while (code < middles && x > middle[code]) code++;
        least[place] = (uint8_t)(code < middles ? code : middles - 1);
    }
}

static void fill(update *u, const trine_call *call, double lr, double steps) {
    const trine_adamw_quantized_args *args = call->args;
    u->s = (step_scalars){
        .decay = (float)(lr * args->weight_decay),
        .beta1 = args->beta1,
        .rest1 = (float)(1.0 - args->beta1),
        .beta2 = args->beta2,
        .rest2 = (float)(1.0 - args->beta2),
        .rate = (float)(lr / -expm1(steps * log(args->beta1))), /* 1 - beta^t without cancellation */
        .inverse_root = (float)(1 / sqrt(-expm1(steps * log(args->beta2)))),
        .eps = args->eps,
        .grad_scale = optimizer_scalar(call, ADAMW_QUANTIZED_GRAD_SCALE, 1),
    };
    dynamic_fill(&u->codes);
    fill_places(u->least_positive, u->codes.positive_middle, DYNAMIC_POSITIVE - 1);
    fill_places(u->least, u->codes.middle, DYNAMIC_UNSIGNED - 1);
    for (int k = 0; k < DYNAMIC_POSITIVE; k++) {
        if (k <= DYNAMIC_ZERO) u->both[DYNAMIC_ZERO - k] = -u->codes.positive[k];
        u->both[DYNAMIC_ZERO + k] = u->codes.positive[k];
    }
}

static trine_status launch(const trine_call *call) {
    const trine_adamw_quantized_args *args = call->args;
    const trine_tensor *tensor = call->tensor;
    const int64_t n = call->dim[ADAMW_QUANTIZED_DIM_N], blocks = (n + DYNAMIC_BLOCK - 1) / DYNAMIC_BLOCK;
    const int64_t step = optimizer_given(call, ADAMW_QUANTIZED_STEP_TENSOR)
                             ? *(const int64_t *)tensor[ADAMW_QUANTIZED_STEP_TENSOR].data
                             : args->step;
    if (step < 1)
        return call->host->error(TRINE_ERR_ARGUMENT,
                                 "adamw_quantized: step_tensor is %" PRId64 ", but must be at least 1", step);
    if (optimizer_scalar(call, ADAMW_QUANTIZED_FOUND_INF, 0) != 0) {
        optimizer_skip(call, ADAMW_QUANTIZED_PARAM, ADAMW_QUANTIZED_COPY);
        return TRINE_OK;
    }
    update u = { .param = &tensor[ADAMW_QUANTIZED_PARAM],
                 .grad = &tensor[ADAMW_QUANTIZED_GRAD],
                 .copy = optimizer_given(call, ADAMW_QUANTIZED_COPY) ? &tensor[ADAMW_QUANTIZED_COPY] : NULL,
                 .m = tensor[ADAMW_QUANTIZED_M].data,
                 .v = tensor[ADAMW_QUANTIZED_V].data,
                 .m_most = tensor[ADAMW_QUANTIZED_M_MOST].data,
                 .v_most = tensor[ADAMW_QUANTIZED_V_MOST].data,
                 .n = n };
    u.by_chance = optimizer_chances(call, ADAMW_QUANTIZED_PARAM, ADAMW_QUANTIZED_PHILOX, args->stochastic, args->seed,
                                    args->stream, &u.chances);
    fill(&u, call, optimizer_scalar(call, ADAMW_QUANTIZED_LR_TENSOR, args->lr), (double)step);
    cpu_shares(call, cpu_team(call, blocks, n * bytes_of(call)), blocks, update_blocks, &u);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ADAMW_QUANTIZED_DIM_N, VL);
    trine_kernel_edge(edges, ADAMW_QUANTIZED_DIM_N, DYNAMIC_BLOCK);
    cpu_team_edge(edges, ADAMW_QUANTIZED_DIM_N, bytes_of(call));
}

CPU_KERNELS(adamw_quantized) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
