/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_counts on devices: a block has a sentence, a thread every 128th of its tokens. An n-gram matches if fewer of
 * the same came before it than a reference has.
 *
 * NOTES. Floor: l (l/2 + r m) comparisons of a sentence, whose tokens all threads of a warp read at once. */
#include "ngram_counts.h"
#include "backends/simt/core/simt.h"

template <class I> struct ngram_sentence {
    const I *token;
    int64_t length;
};

DEVICE int64_t ngram_length(const simt_rows &lengths, bool wide, int64_t at, int64_t room) {
    if (!lengths.data) return room;
    const int64_t x = load_integer(lengths.data, wide, at);
    return x < 0 ? 0 : x < room ? x : room;
}

template <class I> DEVICE ngram_sentence<I> ngram_reference(const ngram_params &p, int64_t s, int64_t r) {
    return { (const I *)p.references.data + s * p.references.batch + r * p.references.row,
             ngram_length(p.reference_lengths, p.wide, s * p.reference_lengths.row + r, p.m) };
}

/* Adds how often the n-grams at place i of a are at the places before `end` of b. */
template <class I>
DEVICE void ngram_count(const ngram_params &p, const ngram_sentence<I> &a, int64_t i, const ngram_sentence<I> &b,
                        int64_t end, int32_t (&counts)[NGRAM_MOST]) {
    const I first = a.token[i];
    for (int64_t j = 0; j < end; j++) {
        if (b.token[j] != first) continue;
        bool same = true;
#pragma unroll
        for (int n = 0; n < NGRAM_MOST; n++) {
            same = same && n < p.k && i + n < a.length && j + n < b.length && b.token[j + n] == a.token[i + n];
            counts[n] += same ? 1 : 0;
        }
    }
}

template <class I> DEVICE void ngram_counts(const ngram_params &p) {
    const int64_t s = block_index();
    const int thread = thread_index();
    const ngram_sentence<I> own = { (const I *)p.candidates.data + s * p.candidates.row,
                                    ngram_length(p.lengths, p.wide, s * p.lengths.row, p.l) };
    int32_t matches[NGRAM_MOST] = {};
    for (int64_t i = thread; i < own.length; i += NGRAM_THREADS) {
        int32_t before[NGRAM_MOST] = {}, most[NGRAM_MOST] = {};
        for (int64_t r = 0; r < p.r; r++) {
            const ngram_sentence<I> other = ngram_reference<I>(p, s, r);
            int32_t there[NGRAM_MOST] = {};
            ngram_count(p, own, i, other, other.length, there);
#pragma unroll
            for (int n = 0; n < NGRAM_MOST; n++) most[n] = there[n] > most[n] ? there[n] : most[n];
        }
        if (most[0] == 0) continue;
        ngram_count(p, own, i, own, i, before);
#pragma unroll
        for (int n = 0; n < NGRAM_MOST; n++) matches[n] += before[n] < most[n] ? 1 : 0;
    }
#pragma unroll
    for (int n = 0; n < NGRAM_MOST; n++) matches[n] = group_sum<NGRAM_THREADS>(matches[n]);
    if (thread != 0) return;
    for (int n = 0; n < p.k; n++) {
        ((int32_t *)p.matches.data)[s * p.matches.row + n] = matches[n];
        ((int32_t *)p.totals.data)[s * p.totals.row + n] = (int32_t)(own.length > n ? own.length - n : 0);
    }
    int64_t best = 0, off = INT64_MAX;
    for (int64_t r = 0; r < p.r; r++) {
        const int64_t size = ngram_length(p.reference_lengths, p.wide, s * p.reference_lengths.row + r, p.m),
                      away = size > own.length ? size - own.length : own.length - size;
        if (away < off || (away == off && size < best)) best = size, off = away;
    }
    p.sizes[s] = (int32_t)own.length;
    p.closest[s] = (int32_t)best;
}

ENTRY(ngram_counts_i32, NGRAM_THREADS, ngram_params) { ngram_counts<int32_t>(p); }
ENTRY(ngram_counts_i64, NGRAM_THREADS, ngram_params) { ngram_counts<int64_t>(p); }
