/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of texts, which are token ids. */
#ifndef TRINE_TEXT_H
#define TRINE_TEXT_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_ngram_counts_args {
    size_t struct_size;                    /* sizeof(trine_ngram_counts_args) */
    const trine_tensor *candidates;        /* in s l: a sentence in each row */
    const trine_tensor *lengths;           /* in, optional s: tokens of each; NULL: l */
    const trine_tensor *references;        /* in s r m: r references of each sentence */
    const trine_tensor *reference_lengths; /* in, optional s r: tokens of each; NULL: m */
    const trine_tensor *matches;           /* out s k, i32: of n-grams of 1 .. k tokens, those that a reference has */
    const trine_tensor *totals;            /* out s k, i32: all of them */
    const trine_tensor *sizes;             /* out s, i32: tokens of the candidate */
    const trine_tensor *closest;           /* out s, i32: tokens of the reference that is the closest in length */
} trine_ngram_counts_args;

/* The n-grams of sentences, and those that references have too: what BLEU is made of.
 *
 *     matches[s,n-1] = sum over distinct g of min(count of g in candidate s, max over r of count of g in reference r)
 *     totals[s,n-1]  = max(0, L - n + 1),  L = sizes[s] = lengths[s]
 *     closest[s]     = the reference_lengths[s,r] for which |reference_lengths[s,r] - L| is least
 *
 * g are the runs of n tokens. Of lengths as close the smaller is taken; without references, r = 0, it is 0. A length
 * below 0 is 0, and one beyond the row is the row's. What lies behind a sentence is not read, and any id is a token.
 *
 * Source: Papineni et al. 2002, section 2; the closest length as NLTK's and sacreBLEU's.
 *
 * Shapes: candidates is s l, lengths s, references s r m, reference_lengths s r, matches and totals s k with k from 0
 * to 4, sizes and closest s. The last dimension is contiguous, leading strides are free.
 * Types: candidates and references are i32 or i64, the same; lengths and reference_lengths i32 or i64, the same;
 * matches, totals, sizes and closest i32.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: exact.
 * Deterministic: the same bits for any number of threads. Each token is held against those before it and those of all
 * references: time grows with l (l/2 + r m).
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; rows of more than 2^31 - 1 tokens; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device
 * has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_ngram_counts(trine_queue *queue, const trine_ngram_counts_args *args);

/* What becomes of an order of which nothing matches. */
enum {
    TRINE_BLEU_SMOOTH_NONE = 0,  /* the score is 0: NLTK's method 0, sacreBLEU's none */
    TRINE_BLEU_SMOOTH_FLOOR = 1, /* amount, 0.1, counts for 0 matches: NLTK's method 1, sacreBLEU's floor */
    TRINE_BLEU_SMOOTH_ADD = 2,   /* amount, 1, is added from n = 2 on: NLTK's method 2, sacreBLEU's add-k */
    TRINE_BLEU_SMOOTH_EXP = 3,   /* 1/2, 1/4, ... count for 0 matches: NLTK's method 3, sacreBLEU's exp */
    TRINE_BLEU_SMOOTH_LENGTH = 4 /* those times ln L / amount, 5, if L > 1: NLTK's method 4 */
};

/* What becomes of an order for which a sentence is too short. */
enum {
    TRINE_BLEU_SHORT_ZERO = 0, /* the score is 0: sacreBLEU's */
    TRINE_BLEU_SHORT_SKIP = 1, /* the orders before it count alone: sacreBLEU's effective_order */
    TRINE_BLEU_SHORT_ONE = 2   /* its total is 1: NLTK's */
};

typedef struct trine_bleu_args {
    size_t struct_size;          /* sizeof(trine_bleu_args) */
    const trine_tensor *matches; /* in s k, i32: those of ngram_counts, as are: */
    const trine_tensor *totals;  /* in s k, i32 */
    const trine_tensor *sizes;   /* in s, i32 */
    const trine_tensor *closest; /* in s, i32 */
    const trine_tensor *scores;  /* out, optional s, f32: of each sentence */
    const trine_tensor *corpus;  /* out, optional 1, f32: of all */
    int32_t smoothing;           /* TRINE_BLEU_SMOOTH_* */
    int32_t missing;             /* TRINE_BLEU_SHORT_* */
    float amount;                /* of smoothing; 0: 0.1 of floor, 1 of add, 5 of length */
} trine_bleu_args;

/* BLEU, of sentences and of a corpus, from 0 to 1.
 *
 *     score = B exp(1/k sum over n of ln p_n),  p_n = matches[n-1] / totals[n-1]
 *     B     = 1 if c >= r, else exp(1 - r/c), 0 if c = 0;  c = sizes, r = closest
 *
 * The corpus is scored by sums of matches, totals, sizes and closest over all sentences, each smoothed as a sentence
 * is. A score is 0 where nothing of the first order matches, or where k is 0. smoothing changes p_n:
 *
 *     floor     p_n = amount / totals[n-1]                    if nothing matches
 *     add       p_n = (matches[n-1] + amount) / (totals[n-1] + amount) for n > 1
 *     exp       p_n = 2^-i / totals[n-1]                      if nothing matches, for the i-th such n
 *     length    p_n = 2^-i ln(c) / (amount totals[n-1])       likewise, and c > 1
 *
 * missing is for orders whose total is 0: the score is then 0, or that of the n before the first such order, 1/k being
 * one over their number, or else, with TRINE_BLEU_SHORT_ONE, all totals below 1 are 1 before anything is added to them,
 * those of sentences before they are summed up. A number below 0 counts as 0.
 *
 * Source: Papineni et al. 2002; Chen and Cherry 2014 for the smoothing, which has the names of sacreBLEU (Post 2018).
 *
 * Shapes: matches and totals are s k, sizes, closest and scores s, corpus 1. The last dimension is contiguous, leading
 * strides are free. Of scores and corpus at least one is given.
 * Types: matches, totals, sizes and closest are i32, scores and corpus f32. Sums over sentences are exact; logarithms
 * and the rest are f32, rounded as the bound says.
 * Parameters: amount is finite and not below 0.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: of the score, (12 + 5 |ln p_n|) 2^-24 for each order that counts, over their number, 2^-24 of k times
 * the mean of |ln p_n|, and 6 r/c + 16 of 2^-24, times 1.1; a score below 2^-125 may be 0; spec/text/bleu.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; neither scores nor corpus; rank, sizes, strides, element types
 * or parameters that the above does not admit; k > 16; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED
 * (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_bleu(trine_queue *queue, const trine_bleu_args *args);

#ifdef __cplusplus
}
#endif

#endif
