/* SPDX-License-Identifier: Apache-2.0 */
/* tm_clauses on devices: a block has some examples and a class, a thread every 256th of its clauses, whose bits it
 * reads once for all of these examples.
 *
 * NOTES. Floor: literals, include and the outputs once; or the ANDs of 32 literals. */
#include "tm_clauses.h"
#include "backends/simt/core/simt.h"

struct clause_state {
    uint32_t any, missing[TM_EXAMPLES];
};

template <class Word>
DEVICE void clause_add(clause_state &state, const uint8_t *include, const uint8_t *literals, int64_t row, int count,
                       int64_t at) {
    const uint32_t bits = *(const Word *)(include + at);
    state.any |= bits;
#pragma unroll
    for (int i = 0; i < TM_EXAMPLES; i++)
        if (i < count) state.missing[i] |= bits & ~(uint32_t)*(const Word *)(literals + i * row + at);
}

ENTRY(tm_clauses, SIMT_THREADS, clauses_params) {
    const int64_t first = block_index() / p.c * TM_EXAMPLES, of_class = block_index() % p.c;
    const int64_t left = p.e - first;
    const int count = left < TM_EXAMPLES ? (int)left : (int)TM_EXAMPLES;
    const uint8_t *const literals = (const uint8_t *)p.literals.data + first * p.literals.row;
    uint32_t votes[TM_EXAMPLES] = {};
    for (int64_t q = thread_index(); q < p.j; q += SIMT_THREADS) {
        const uint8_t *const include = p.include + of_class * p.include_stride[0] + q * p.include_stride[1];
        clause_state state = {};
        int64_t at = 0;
        for (; p.words && at + 4 <= p.w; at += 4)
            clause_add<uint32_t>(state, include, literals, p.literals.row, count, at);
        for (; at < p.w; at++) clause_add<uint8_t>(state, include, literals, p.literals.row, count, at);
        const uint32_t weight = p.weights.data
                                    ? (uint32_t)((const int32_t *)p.weights.data)[of_class * p.weights.row + q]
                                    : 1 - (uint32_t)(q % 2) * 2;
#pragma unroll
        for (int i = 0; i < TM_EXAMPLES; i++) {
            const bool yes = state.any ? state.missing[i] == 0 : p.empty;
            if (yes) votes[i] += weight;
            if (p.clauses && i < count)
                p.clauses[(first + i) * p.clauses_stride[0] + of_class * p.clauses_stride[1] + q] = yes;
        }
    }
    for (int i = 0; i < count; i++) {
        uint32_t own = 0;
#pragma unroll
        for (int k = 0; k < TM_EXAMPLES; k++) own = k == i ? votes[k] : own;
        int32_t vote = (int32_t)group_sum<SIMT_THREADS>(own);
        if (p.threshold > 0 && vote > p.threshold) vote = p.threshold;
        if (p.threshold > 0 && vote < -p.threshold) vote = -p.threshold;
        if (thread_index() == 0) ((int32_t *)p.votes.data)[(first + i) * p.votes.row + of_class] = vote;
    }
}
