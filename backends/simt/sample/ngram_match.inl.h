/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_match on devices. A block has a sequence, and a thread the places where an occurrence may end: the tokens
 * before each are held against the last ones of the sequence, from the last on. The longest agreement is taken, and of
 * equals the latest or the first, so that it does not matter who looks at which.
 *
 * NOTES. Floor: tokens once, and so they are read, but for those before a token that equals the last one. */
#include "ngram_match.h"
#include "backends/simt/core/simt.h"

struct ngram_match_better {
    bool first;
    DEVICE ngram_match_best operator()(const ngram_match_best &a, const ngram_match_best &b) const {
        if (a.length != b.length) return a.length > b.length ? a : b;
        return (a.end < b.end) == first ? a : b;
    }
};

template <class I>
DEVICE ngram_match_best ngram_match_find(const ngram_match_params &p, const I *tokens, int64_t length) {
    const ngram_match_better better = { p.first };
    ngram_match_best best = { 0, 0 };
    const I last = length > 0 ? tokens[length - 1] : 0;
#pragma unroll 4
    for (int64_t end = 1 + thread_index(); end < length; end += NGRAM_THREADS) {
        if (tokens[end - 1] != last) continue;
        int64_t n = 1;
        while (n < p.most && n < end && tokens[end - 1 - n] == tokens[length - 1 - n]) n++;
        if (n >= p.least && n <= p.most) best = better(best, ngram_match_best{ n, end });
    }
    return group_combine<NGRAM_THREADS>(best, better);
}

template <class I> DEVICE void ngram_match_row(const ngram_match_params &p) {
    const int64_t row = block_index(), told = p.lengths ? load_integer(p.lengths, p.long_lengths, row) : p.s,
                  length = told < 0     ? 0
                           : told > p.s ? p.s
                                        : told;
    const I *const tokens = (const I *)p.tokens.data + row * p.tokens.row;
    const ngram_match_best best = ngram_match_find(p, tokens, length);
    const int64_t left = best.length > 0 ? length - best.end : 0, count = left < p.m ? left : p.m;
    I *const draft = (I *)p.draft.data + row * p.draft.row;
    for (int64_t j = thread_index(); j < p.m; j += NGRAM_THREADS) draft[j] = j < count ? tokens[best.end + j] : (I)-1;
    if (thread_index() == 0) p.counts[row] = (int32_t)count;
}

ENTRY(ngram_match, NGRAM_THREADS, ngram_match_params) {
    if (p.wide)
        ngram_match_row<int64_t>(p);
    else
        ngram_match_row<int32_t>(p);
}
