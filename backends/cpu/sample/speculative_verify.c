/* SPDX-License-Identifier: Apache-2.0 */
/* speculative_verify on the CPU. Probabilities become whole numbers as they are read; sums of those do not depend on
 * their order. */
#include "weights.h"
#include "spec/places/speculative_verify.h"

enum { BITS = 40 };

INLINE uint64_t weight_of(float p) { return p > 0 ? (uint64_t)(int64_t)((p < 1 ? p : 1) * 0x1p40f) : 0; }

/* Of the draft and the target at one place: the draft's probs are NULL if it has none or does not count, and then all
 * of its weight is at `token`, -1: at none. */
typedef struct place {
    const float *target, *draft;
    int64_t token;
} place;

INLINE uint64_t draft_weight(const place *p, int64_t j) {
    return p->draft ? weight_of(p->draft[j]) : p->token == j ? UINT64_C(1) << BITS : 0;
}
INLINE uint64_t left_weight(const place *p, int64_t j) {
    const uint64_t a = weight_of(p->target[j]), b = draft_weight(p, j);
    return a > b ? a - b : 0;
}

static int64_t draw(place p, int64_t v, uint64_t random) {
    uint64_t sum = 0;
    for (int64_t j = 0; j < v; j++) sum += left_weight(&p, j);
    if (sum == 0) {
        p = (place){ p.target, NULL, -1 };
        for (int64_t j = 0; j < v; j++) sum += left_weight(&p, j);
    }
    if (sum == 0) return -1;
    uint64_t at = weights_place(random, sum);
    int64_t j = 0;
    for (uint64_t w; (w = left_weight(&p, j)) <= at; j++) at -= w;
    return j;
}

static const float *probs_at(const trine_tensor *t, int64_t i, int64_t k) {
    return (const float *)t->data + i * t->stride[0] + k * t->stride[1];
}
static int64_t get(const trine_tensor *t, int64_t at) {
    return t->dtype == TRINE_I32 ? ((const int32_t *)t->data)[at] : ((const int64_t *)t->data)[at];
}
static void put(const trine_tensor *t, int64_t at, int64_t value) {
    if (t->dtype == TRINE_I32)
        ((int32_t *)t->data)[at] = (int32_t)value;
    else
        ((int64_t *)t->data)[at] = value;
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_speculative_verify_args *args = call->args;
    const trine_tensor *proposed = &call->tensor[SPECULATIVE_VERIFY_DRAFT_TOKENS],
                       *target = &call->tensor[SPECULATIVE_VERIFY_TARGET_PROBS],
                       *draft = &call->tensor[SPECULATIVE_VERIFY_DRAFT_PROBS],
                       *tokens = &call->tensor[SPECULATIVE_VERIFY_TOKENS];
    const int64_t g = call->dim[SPECULATIVE_VERIFY_DIM_G], v = call->dim[SPECULATIVE_VERIFY_DIM_V];
    const bool has_draft = call->present >> SPECULATIVE_VERIFY_DRAFT_PROBS & 1;
    uint64_t key[2];
    (void)thread;
    weights_key(args->seed, args->offset,
                call->present >> SPECULATIVE_VERIFY_PHILOX & 1 ? &call->tensor[SPECULATIVE_VERIFY_PHILOX] : NULL, key);
    for (int64_t i = first; i < last; i++) {
        const uint64_t block = (uint64_t)i * (uint64_t)(g + 1);
        const int64_t to = i * tokens->stride[0];
        place p = { .token = -1 };
        int64_t k = 0;
        for (; k < g; k++) {
            const int64_t token = get(proposed, i * proposed->stride[0] + k);
            p = (place){ probs_at(target, i, k), has_draft ? probs_at(draft, i, k) : NULL, token };
            if (token < 0 || token >= v) break;
            const uint64_t random = weights_random(key, block + (uint64_t)k, 0);
            if (weights_place(random, draft_weight(&p, token)) >= weight_of(p.target[token])) break;
            put(tokens, to + k, token);
        }
        if (k == g) p = (place){ probs_at(target, i, g), NULL, -1 };
        put(&call->tensor[SPECULATIVE_VERIFY_ACCEPTED], i, k);
        put(tokens, to + k, draw(p, v, weights_random(key, block + (uint64_t)k, 2)));
        while (++k <= g) put(tokens, to + k, -1);
    }
}

static trine_status launch(const trine_call *call) {
    const int64_t b = call->dim[SPECULATIVE_VERIFY_DIM_B],
                  bytes = 4 * b * call->dim[SPECULATIVE_VERIFY_DIM_V] * (int64_t)sizeof(float);
    cpu_shares(call, cpu_team(call, b, bytes), b, rows, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    cpu_team_edge(edges, SPECULATIVE_VERIFY_DIM_B, 4 * call->dim[SPECULATIVE_VERIFY_DIM_V] * (int64_t)sizeof(float));
}

CPU_KERNELS(speculative_verify) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
