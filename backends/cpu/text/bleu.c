/* SPDX-License-Identifier: Apache-2.0 */
/* bleu on the CPU: scores of sentences by shares, and one of sums that are whole numbers. */
#include <trine/text.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec_math.h"
#include "spec/places/bleu.h"

enum { MOST = 16 /* orders */, ORDER_BYTES = 128 /* what an order of a sentence costs */ };

typedef struct counts {
    int64_t matches[MOST], totals[MOST], size, closest;
} counts;

/* What is added, or counts for nothing. */
static float amount_of(const trine_bleu_args *a) {
    if (a->amount > 0) return a->amount;
    return a->smoothing == TRINE_BLEU_SMOOTH_FLOOR ? 0.1f : a->smoothing == TRINE_BLEU_SMOOTH_ADD ? 1 : 5;
}

static float log_of(float x) { return vlog(vset(x))[0]; }

static float score_of(const trine_bleu_args *a, const counts *c, int64_t k) {
    const float amount = amount_of(a);
    float sum = 0, halves = 1;
    int64_t n = 0;
    if (k == 0 || c->matches[0] == 0 || c->size == 0) return 0;
    for (; n < k; n++) {
        const bool added = a->smoothing == TRINE_BLEU_SMOOTH_ADD && n > 0;
        const int64_t whole = a->missing == TRINE_BLEU_SHORT_ONE && c->totals[n] < 1 ? 1 : c->totals[n];
        if (whole == 0 && !added && a->missing == TRINE_BLEU_SHORT_SKIP) break;
        if (whole == 0 && !added) return 0;
        float matches = (float)c->matches[n], total = (float)whole;
        if (added) {
            matches += amount, total += amount;
        } else if (c->matches[n] == 0) {
            halves *= 0.5f;
            matches = a->smoothing == TRINE_BLEU_SMOOTH_FLOOR ? amount
                      : a->smoothing == TRINE_BLEU_SMOOTH_EXP ? halves
                      : a->smoothing == TRINE_BLEU_SMOOTH_LENGTH && c->size > 1
                          ? halves * log_of((float)c->size) / amount
                          : 0;
            if (matches == 0) return 0;
        }
        sum += log_of(matches / total);
    }
    if (n == 0) return 0;
    const float past = c->closest > c->size ? 1 - (float)c->closest / (float)c->size : 0;
    return vexp(vset(sum / (float)n + past))[0];
}

static void add(counts *c, const trine_call *call, int64_t s, bool whole) {
    const trine_bleu_args *args = call->args;
    const trine_tensor *matches = &call->tensor[BLEU_MATCHES], *totals = &call->tensor[BLEU_TOTALS];
    const int32_t *m = (const int32_t *)matches->data + s * matches->stride[0],
                  *t = (const int32_t *)totals->data + s * totals->stride[0],
                  size = ((const int32_t *)call->tensor[BLEU_SIZES].data)[s],
                  closest = ((const int32_t *)call->tensor[BLEU_CLOSEST].data)[s],
                  least = whole && args->missing == TRINE_BLEU_SHORT_ONE ? 1 : 0;
    for (int64_t n = 0; n < call->dim[BLEU_DIM_K]; n++) {
        c->matches[n] += m[n] > 0 ? m[n] : 0;
        c->totals[n] += t[n] > least ? t[n] : least;
    }
    c->size += size > 0 ? size : 0;
    c->closest += closest > 0 ? closest : 0;
}

static void sentences(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    (void)thread;
    for (int64_t s = first; s < last; s++) {
        counts c = { 0 };
        add(&c, call, s, false);
        ((float *)call->tensor[BLEU_SCORES].data)[s] = score_of(call->args, &c, call->dim[BLEU_DIM_K]);
    }
}

static trine_status launch(const trine_call *call) {
    const int64_t s = call->dim[BLEU_DIM_S], k = call->dim[BLEU_DIM_K];
    if (trine_call_given(call, BLEU_SCORES))
        cpu_shares(call, cpu_team(call, s, s * k * ORDER_BYTES), s, sentences, call);
    if (!trine_call_given(call, BLEU_CORPUS)) return TRINE_OK;
    counts all = { 0 };
    for (int64_t i = 0; i < s; i++) add(&all, call, i, true);
    ((float *)call->tensor[BLEU_CORPUS].data)[0] = score_of(call->args, &all, k);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    cpu_team_edge(edges, BLEU_DIM_S, call->dim[BLEU_DIM_K] * ORDER_BYTES);
}

CPU_KERNELS(bleu) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
