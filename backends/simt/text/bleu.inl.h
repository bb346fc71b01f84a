/* SPDX-License-Identifier: Apache-2.0 */
/* bleu on devices: a thread has a sentence; a block has the corpus, whose sums are whole numbers.
 *
 * NOTES. Floor: the counts once each for scores and corpus. */
#include <trine/text.h>

#include "bleu.h"
#include "backends/simt/core/math.h"

/* A count of order n. */
DEVICE int64_t bleu_count(const simt_rows &rows, int64_t s, int n, int32_t least) {
    const int32_t x = ((const int32_t *)rows.data)[s * rows.row + n];
    return x > least ? x : least;
}

/* The sum of logarithms, order by order. */
struct bleu_score {
    float sum, halves;
    int32_t orders; /* that count */
    bool none, done;

    DEVICE bleu_score() : sum(0), halves(1), orders(0), none(false), done(false) {}

    DEVICE void order(const bleu_params &p, int n, int64_t own, int64_t all, int64_t size) {
        const bool added = p.smoothing == TRINE_BLEU_SMOOTH_ADD && n > 0;
        const int64_t whole = p.missing == TRINE_BLEU_SHORT_ONE && all < 1 ? 1 : all;
        if (n == 0 && own == 0) none = true;
        if (whole == 0 && !added && p.missing == TRINE_BLEU_SHORT_SKIP) done = true;
        if (none || done) return;
        if (whole == 0 && !added) none = true;
        float matches = (float)own, total = (float)whole;
        if (added) {
            matches += p.amount, total += p.amount;
        } else if (own == 0) {
            halves *= 0.5f;
            matches = p.smoothing == TRINE_BLEU_SMOOTH_FLOOR                ? p.amount
                      : p.smoothing == TRINE_BLEU_SMOOTH_EXP                ? halves
                      : p.smoothing == TRINE_BLEU_SMOOTH_LENGTH && size > 1 ? halves * log_of((float)size) / p.amount
                                                                            : 0;
            if (matches == 0) none = true;
        }
        if (none) return;
        sum += log_of(matches / total);
        orders++;
    }

    DEVICE float value(int64_t size, int64_t closest) const {
        if (none || orders == 0 || size == 0) return 0;
        const float past = closest > size ? 1.0f - (float)closest / (float)size : 0.0f;
        return exp_of(sum / (float)orders + past);
    }
};

DEVICE int64_t bleu_whole(int32_t x) { return x > 0 ? x : 0; }

ENTRY(bleu_sentences, SIMT_THREADS, bleu_params) {
    const int64_t s = block_index() * SIMT_THREADS + thread_index();
    if (s >= p.s) return;
    const int64_t size = bleu_whole(p.sizes[s]);
    bleu_score score;
    for (int n = 0; n < p.k; n++)
        score.order(p, n, bleu_count(p.matches, s, n, 0), bleu_count(p.totals, s, n, 0), size);
    p.scores[s] = score.value(size, bleu_whole(p.closest[s]));
}

ENTRY(bleu_corpus, SIMT_THREADS, bleu_params) {
    const int32_t least = p.missing == TRINE_BLEU_SHORT_ONE ? 1 : 0;
    int64_t size = 0, closest = 0;
    for (int64_t s = thread_index(); s < p.s; s += SIMT_THREADS)
        size += bleu_whole(p.sizes[s]), closest += bleu_whole(p.closest[s]);
    size = group_sum<SIMT_THREADS>(size), closest = group_sum<SIMT_THREADS>(closest);
    bleu_score score;
    for (int n = 0; n < p.k; n++) {
        int64_t own = 0, all = 0;
        for (int64_t s = thread_index(); s < p.s; s += SIMT_THREADS)
            own += bleu_count(p.matches, s, n, 0), all += bleu_count(p.totals, s, n, least);
        own = group_sum<SIMT_THREADS>(own), all = group_sum<SIMT_THREADS>(all);
        score.order(p, n, own, all, size);
    }
    if (thread_index() == 0) p.corpus[0] = score.value(size, closest);
}
