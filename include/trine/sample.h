/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing tokens, and guessing them, the same ones on every device. */
#ifndef TRINE_SAMPLE_H
#define TRINE_SAMPLE_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_sample_args {
    size_t struct_size;                /* sizeof(trine_sample_args) */
    const trine_tensor *logits;        /* in r v */
    const trine_tensor *counts;        /* in, optional r v */
    const trine_tensor *temperatures;  /* in, optional r */
    const trine_tensor *top_ks;        /* in, optional r */
    const trine_tensor *top_ps;        /* in, optional r */
    const trine_tensor *min_ps;        /* in, optional r */
    const trine_tensor *philox;        /* in, optional 2 */
    const trine_tensor *tokens;        /* out r */
    const trine_tensor *probabilities; /* out, optional r */
    float temperature;                 /* what logits are divided by; 0: the largest is taken */
    int32_t top_k;                     /* candidates at most; 0: all */
    float top_p;                       /* share of the probability that candidates have together; 0 means 1 */
    float min_p;                       /* least probability of a candidate, as a share of the largest */
    float repetition_penalty;          /* 0 means 1 */
    float presence_penalty;            /* taken from tokens that are there */
    float frequency_penalty;           /* taken from a token as often as it is there */
    uint64_t seed;                     /* key of the generator */
    uint64_t offset;                   /* high half of its counter: another for every call */
} trine_sample_args;

/* Draws a token from each row of logits.
 *
 *     l' = (l > 0 ? l / repetition_penalty : l repetition_penalty) - frequency_penalty c - presence_penalty   if c > 0
 *     z  = l' / temperature
 *     w  = floor(2^40 exp(z - max z))
 *
 * c is counts[i,j], how often token j is already there, and l' = l without counts or where it is not. Then, each step
 * on what the one before has left: of the top_k largest z (of equals those with the smaller token); of these the w that
 * are at least min_p 2^40; of these the fewest, from the largest z on, that have top_p of the sum of w. tokens[i] is
 * one of them with probability w / sum w, which is probabilities[i]: the first whose w, added to the w of smaller
 * tokens, is more than floor(u sum w / 2^64), where u is word 0 and, as its high half, word 1 of Philox4x32-10 with key
 * = seed and counter (lo32(i), hi32(i), lo32(offset), hi32(offset)). With philox its element 0 is the key, and its
 * element 1 is added to offset.
 *
 * At temperature 0, or below, it is the token with the largest l', the first of equals, and its probability 1. Of a row
 * with a NaN in z, or with no z above -Inf, it is -1, and its probability NaN; where some are +Inf, it is one of these.
 *
 * The token is one and the same on every device and for any number of threads, since everything that decides is pinned.
 * l' and z are f32, rounded after each operation, quotients being products with 1/repetition_penalty and 1/temperature
 * rounded to f32; exp is a polynomial that spec/sample/sample.c has, within 2 2^-24 of itself; w and all sums are whole
 * numbers. A token of which w is 0, e^-27.7 of the largest, is never drawn.
 *
 * temperatures, top_ks, top_ps and min_ps stand in place of their parameters, with a number for each row: where those
 * of top_ps and min_ps are not in [0, 1] the nearest number that is counts, and NaN for none; top_ks of 0 or less mean
 * all.
 *
 * Source: Holtzman et al. 2020, section 3 (top_p); Keskar et al. 2019, section 4.1 (repetition); Salmon et al. 2011,
 * section 3.3 (Philox).
 *
 * Shapes: logits and counts are r v with 1 <= v <= 2^23; temperatures, top_ks, top_ps, min_ps, tokens and probabilities
 * r, philox 2. The last dimension is contiguous, leading strides are free.
 * Types: logits are f32, bf16 or f16; counts and top_ks i32; temperatures, top_ps, min_ps and probabilities f32; philox
 * i64; tokens i32 or i64.
 * Parameters: temperature >= 0, top_k >= 0, 0 <= top_p <= 1, 0 <= min_p <= 1, 2^-20 <= repetition_penalty <= 2^20.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none, tokens and probabilities are exact by the definition above.
 * Deterministic: the same bits for any number of threads, and on every device.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range, or given beside the tensor that stands in its place; an output that overlaps another
 * tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_sample(trine_queue *queue, const trine_sample_args *args);

typedef struct trine_speculative_verify_args {
    size_t struct_size;               /* sizeof(trine_speculative_verify_args) */
    const trine_tensor *draft_tokens; /* in b g */
    const trine_tensor *target_probs; /* in b g+1 v */
    const trine_tensor *draft_probs;  /* in, optional b g v */
    const trine_tensor *philox;       /* in, optional 2 */
    const trine_tensor *accepted;     /* out b */
    const trine_tensor *tokens;       /* out b g+1 */
    uint64_t seed;                    /* key of the generator */
    uint64_t offset;                  /* high half of its counter: another for every call */
} trine_speculative_verify_args;

/* Which tokens of a draft stand, and the one that follows them: rejection sampling, after which the tokens are
 * distributed as if the target alone had drawn them.
 *
 *     P = floor(2^40 target_probs[i,k]),  Q = floor(2^40 draft_probs[i,k]),  both of numbers bounded to [0, 1]
 *
 * Draft token x at place k stands if those before it do and floor(u Q[x] / 2^64) < P[x], which has the probability
 * min(1, P[x]/Q[x]). accepted[i] is how many stand; tokens[i] begins with them. Behind them is one more: drawn from
 * max(P - Q, 0) at the place of the first that does not stand, or from P there if that is 0 for all tokens; from P at
 * place g if all stand; -1 if P is 0 everywhere too. What is behind that is -1. Without draft_probs Q is 2^40 at the
 * draft's token and 0 elsewhere, as of tokens that were looked up. A draft token that is not in [0, v) does not stand.
 *
 * u is word 0 and, as its high half, word 1 of Philox4x32-10 with key = seed and counter (lo32(c), hi32(c),
 * lo32(offset), hi32(offset)), c = (g+1) i + k; a draw's u are words 2 and 3. A draw's token is the first whose weight,
 * added to those of smaller tokens, is more than floor(u sum / 2^64). With philox its element 0 is the key, and its
 * element 1 is added to offset. All numbers are whole: the tokens are the same on every device.
 *
 * Source: Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2.
 *
 * Shapes: draft_tokens is b g, target_probs b g+1 v, draft_probs b g v with 1 <= v <= 2^23, accepted b, tokens b g+1,
 * philox 2. The last dimension is contiguous, leading strides are free.
 * Types: target_probs and draft_probs are f32; draft_tokens, accepted and tokens i32 or i64, the same; philox i64.
 * Ranges: probabilities of a place have a sum of 1, or nothing is said about how tokens are distributed; NaN counts as
 * 0.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none, the result is exact by the definition above.
 * Deterministic: the same bits for any number of threads, and on every device.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; seed given beside philox; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no
 * kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_speculative_verify(trine_queue *queue, const trine_speculative_verify_args *args);

typedef struct trine_ngram_match_args {
    size_t struct_size;          /* sizeof(trine_ngram_match_args) */
    const trine_tensor *tokens;  /* in b s */
    const trine_tensor *lengths; /* in, optional b: tokens of each sequence */
    const trine_tensor *draft;   /* out b m */
    const trine_tensor *counts;  /* out b */
    int32_t n_max;               /* tokens of the longest n-gram; 0: 3 */
    int32_t n_min;               /* tokens of the shortest; 0: 1 */
    int32_t first;               /* 1: the first occurrence; 0: the latest */
} trine_ngram_match_args;

/* A draft of what follows a sequence of tokens: what followed its last tokens where they stood before. Speculative
 * decoding by n-grams, or prompt lookup.
 *
 *     t = tokens[i], L = lengths[i], n the largest in [n_min, n_max] for which there is an e in [n, L) with
 *     t[e-n .. e-1] = t[L-n .. L-1];  e the largest such one, or the smallest with first
 *     counts[i]  = min(m, L - e)
 *     draft[i,j] = t[e+j] for j < counts[i], -1 for others
 *
 * Where there is no such n, counts[i] is 0. An occurrence ends before the sequence does, so that a token at least
 * follows; it may overlap the last tokens, and so may what follows it. Without lengths all s tokens count; a length
 * above s is s, one below 0 is 0. If n_min is above n_max nothing is found.
 *
 * Source: Saxena 2023 (prompt lookup decoding). With first this is what transformers' PromptLookupCandidateGenerator
 * and vLLM's n-gram proposer draft; what stood latest is the better guess in long sequences. draft and counts are what
 * speculative_verify takes, without draft_probs: a token of -1 does not stand.
 *
 * Shapes: tokens is b s, lengths b, draft b m, counts b. The last dimension is contiguous, leading strides are free.
 * Types: tokens and draft are i32 or i64, the same; lengths i32 or i64; counts i32.
 * Parameters: n_max >= 0, 0 standing for 3; n_min >= 0, 0 standing for 1. The time grows with n_max where a sequence
 * repeats itself.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none, the result is exact.
 * Deterministic: the same bits for any number of threads, and on every device.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; m > 2^31 - 1; a parameter out of range; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the
 * device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_ngram_match(trine_queue *queue, const trine_ngram_match_args *args);

#ifdef __cplusplus
}
#endif

#endif
