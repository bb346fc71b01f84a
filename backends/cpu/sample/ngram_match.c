/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_match on the CPU. At each place where an occurrence may end, the tokens before it are held against the last
 * ones of the sequence, from the last on: the longest agreement is taken, and of equals the latest or the first. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/ngram_match.h"

typedef struct sequence {
    const void *tokens;
    int64_t length, most, least; /* most, least: of the n-gram */
    bool first;
} sequence;

INLINE int64_t token(const void *tokens, int64_t i, bool wide) {
    return wide ? ((const int64_t *)tokens)[i] : ((const int32_t *)tokens)[i];
}

/* The length of the longest n-gram and where its occurrence ends. */
INLINE void match(const sequence *s, int64_t *end_out, bool wide) {
    const int64_t length = s->length, last = length > 0 ? token(s->tokens, length - 1, wide) : 0;
    int64_t best = s->least - 1, end = -1;
    for (int64_t k = 1; k < length; k++) {
        const int64_t e = s->first ? k : length - k;
        if (token(s->tokens, e - 1, wide) != last) continue;
        const int64_t most = e < s->most ? e : s->most;
        int64_t n = 1;
        while (n < most && token(s->tokens, e - 1 - n, wide) == token(s->tokens, length - 1 - n, wide)) n++;
        if (n > best && n <= s->most) best = n, end = e;
        if (best == s->most) break;
    }
    *end_out = end;
}

INLINE void write_draft(const sequence *s, int64_t from, int64_t count, int64_t m, void *to, bool wide) {
    for (int64_t j = 0; j < m; j++) {
        const int64_t x = j < count ? token(s->tokens, from + j, wide) : -1;
        if (wide)
            ((int64_t *)to)[j] = x;
        else
            ((int32_t *)to)[j] = (int32_t)x;
    }
}

INLINE void one_row(const trine_call *call, const sequence *s, int64_t i, bool wide) {
    const trine_tensor *draft = &call->tensor[NGRAM_MATCH_DRAFT];
    const int64_t m = call->dim[NGRAM_MATCH_DIM_M];
    int64_t end, count = 0;
    match(s, &end, wide);
    if (end >= 0) count = s->length - end < m ? s->length - end : m;
    write_draft(s, end, count, m, (char *)draft->data + i * draft->stride[0] * (wide ? 8 : 4), wide);
    ((int32_t *)call->tensor[NGRAM_MATCH_COUNTS].data)[i] = (int32_t)count;
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_ngram_match_args *args = call->args;
    const trine_tensor *tokens = &call->tensor[NGRAM_MATCH_TOKENS],
                       *lengths = trine_call_given(call, NGRAM_MATCH_LENGTHS);
    const bool wide = tokens->dtype == TRINE_I64;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const int64_t all = call->dim[NGRAM_MATCH_DIM_S],
                      told = lengths ? token(lengths->data, i, lengths->dtype == TRINE_I64) : all;
        const sequence s = { .tokens = (const char *)tokens->data + i * tokens->stride[0] * (wide ? 8 : 4),
                             .length = told < 0     ? 0
                                       : told > all ? all
                                                    : told,
                             .most = args->n_max,
                             .least = args->n_min,
                             .first = args->first };
        if (wide)
            one_row(call, &s, i, true);
        else
            one_row(call, &s, i, false);
    }
}

static int64_t row_bytes(const trine_call *call) {
    return call->dim[NGRAM_MATCH_DIM_S] * (int64_t)trine_dtype_size(call->type[NGRAM_MATCH_TYPE_I]);
}

static trine_status launch(const trine_call *call) {
    const int64_t b = call->dim[NGRAM_MATCH_DIM_B];
    cpu_shares(call, cpu_team(call, b, b * row_bytes(call)), b, rows, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    cpu_team_edge(edges, NGRAM_MATCH_DIM_B, row_bytes(call));
}

CPU_KERNELS(ngram_match) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
