/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_counts on the CPU: a task is a sentence. An n-gram matches if fewer of the same came before it than a reference
 * has, so that nothing need be remembered: each token is held against those before it and those of the references. */
#include <trine/text.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/ngram_counts.h"

enum { MOST = 4 /* orders */ };

typedef struct sentence {
    const void *tokens;
    int64_t length;
} sentence;

INLINE int64_t token(const void *tokens, int64_t i, bool wide) {
    return wide ? ((const int64_t *)tokens)[i] : ((const int32_t *)tokens)[i];
}

/* How many tokens agree from places i and j on, up to `most`. */
INLINE int64_t agree(const sentence *a, int64_t i, const sentence *b, int64_t j, int64_t most, bool wide) {
    if (a->length - i < most) most = a->length - i;
    if (b->length - j < most) most = b->length - j;
    int64_t n = 0;
    while (n < most && token(a->tokens, i + n, wide) == token(b->tokens, j + n, wide)) n++;
    return n;
}

/* Adds to counts[n-1] how often the n-gram at place i of a is at the places before `end` of b. */
INLINE void count(const sentence *a, int64_t i, const sentence *b, int64_t end, int64_t most, int64_t *counts,
                  bool wide) {
    const int64_t first = token(a->tokens, i, wide);
    int64_t j = 0;
    while (j < end) {
        if (!wide && j + VL <= end &&
            !vany(*(const vi_any *)(const void *)((const int32_t *)b->tokens + j) == viset((int32_t)first))) {
            j += VL;
            continue;
        }
        const int64_t stop = !wide && j + VL < end ? j + VL : end;
        for (; j < stop; j++) {
            if (token(b->tokens, j, wide) != first) continue;
            const int64_t n = agree(a, i, b, j, most, wide);
            for (int64_t k = 0; k < n; k++) counts[k]++;
        }
    }
}

static int64_t length_of(const trine_tensor *t, int64_t at, int64_t room) {
    if (t == NULL) return room;
    const int64_t x = token(t->data, at, t->dtype == TRINE_I64);
    return x < 0 ? 0 : x < room ? x : room;
}

static sentence reference_of(const trine_call *call, int64_t s, int64_t r) {
    const trine_tensor *t = &call->tensor[NGRAM_COUNTS_REFERENCES],
                       *lengths = trine_call_given(call, NGRAM_COUNTS_REFERENCE_LENGTHS);
    return (sentence){ (const char *)t->data +
                           (s * t->stride[0] + r * t->stride[1]) * (int64_t)trine_dtype_size(t->dtype),
                       length_of(lengths, lengths ? s * lengths->stride[0] + r : 0, t->shape[2]) };
}

INLINE void put_matches(const trine_call *call, const sentence *own, int64_t s, int64_t *matches, bool wide) {
    const int64_t r = call->dim[NGRAM_COUNTS_DIM_R], k = call->dim[NGRAM_COUNTS_DIM_K];
    for (int64_t i = 0; k > 0 && i < own->length; i++) {
        int64_t before[MOST] = { 0 }, most[MOST] = { 0 };
        for (int64_t j = 0; j < r; j++) {
            const sentence other = reference_of(call, s, j);
            int64_t there[MOST] = { 0 };
            count(own, i, &other, other.length, k, there, wide);
            for (int n = 0; n < MOST; n++) most[n] = there[n] > most[n] ? there[n] : most[n];
        }
        if (most[0] == 0) continue;
        count(own, i, own, i, k, before, wide);
        for (int64_t n = 0; n < k && i + n < own->length; n++) matches[n] += before[n] < most[n];
    }
}

static void sentences(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_tensor *tokens = &call->tensor[NGRAM_COUNTS_CANDIDATES],
                       *lengths = trine_call_given(call, NGRAM_COUNTS_LENGTHS),
                       *matches = &call->tensor[NGRAM_COUNTS_MATCHES], *totals = &call->tensor[NGRAM_COUNTS_TOTALS];
    const int64_t k = call->dim[NGRAM_COUNTS_DIM_K], r = call->dim[NGRAM_COUNTS_DIM_R];
    (void)thread;
    for (int64_t s = first; s < last; s++) {
        const sentence own = { (const char *)tokens->data +
                                   s * tokens->stride[0] * (int64_t)trine_dtype_size(tokens->dtype),
                               length_of(lengths, lengths ? s * lengths->stride[0] : 0, tokens->shape[1]) };
        int64_t found[MOST] = { 0 }, best = 0, off = INT64_MAX;
        if (tokens->dtype == TRINE_I64)
            put_matches(call, &own, s, found, true);
        else
            put_matches(call, &own, s, found, false);
        for (int64_t n = 0; n < k; n++) {
            ((int32_t *)matches->data)[s * matches->stride[0] + n] = (int32_t)found[n];
            ((int32_t *)totals->data)[s * totals->stride[0] + n] = (int32_t)(own.length > n ? own.length - n : 0);
        }
        for (int64_t j = 0; j < r; j++) {
            const int64_t size = reference_of(call, s, j).length,
                          away = size > own.length ? size - own.length : own.length - size;
            if (away < off || (away == off && size < best)) best = size, off = away;
        }
        ((int32_t *)call->tensor[NGRAM_COUNTS_SIZES].data)[s] = (int32_t)own.length;
        ((int32_t *)call->tensor[NGRAM_COUNTS_CLOSEST].data)[s] = (int32_t)best;
    }
}

/* What a sentence costs, in bytes of memory that took as long. */
static int64_t sentence_bytes(const trine_call *call) {
    const double l = (double)call->dim[NGRAM_COUNTS_DIM_L],
                 all = l * (l / 2 + (double)call->dim[NGRAM_COUNTS_DIM_R] * (double)call->dim[NGRAM_COUNTS_DIM_M]);
    return all < 0x1p30 ? 4 * (int64_t)all + 64 : (int64_t)1 << 32;
}

static trine_status launch(const trine_call *call) {
    const int64_t s = call->dim[NGRAM_COUNTS_DIM_S], each = sentence_bytes(call);
    cpu_tasks(call, cpu_team(call, s, s > INT64_MAX / each ? INT64_MAX : s * each), s, sentences, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, NGRAM_COUNTS_DIM_M, VL);
    trine_kernel_edge(edges, NGRAM_COUNTS_DIM_L, VL);
    cpu_team_edge(edges, NGRAM_COUNTS_DIM_S, sentence_bytes(call));
}

CPU_KERNELS(ngram_counts) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
