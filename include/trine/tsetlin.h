/* SPDX-License-Identifier: Apache-2.0 */
/* Tsetlin machines: classes by votes of clauses, which are conjunctions of bits, and how these learn. */
#ifndef TRINE_TSETLIN_H
#define TRINE_TSETLIN_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_tm_clauses_args {
    size_t struct_size;           /* sizeof(trine_tm_clauses_args) */
    const trine_tensor *literals; /* in e w, u8: bits */
    const trine_tensor *include;  /* in c j w, u8: bits */
    const trine_tensor *weights;  /* in, optional c j, i32; NULL: 1, -1, 1, -1, ... */
    const trine_tensor *votes;    /* out e c, i32 */
    const trine_tensor *clauses;  /* out, optional e c j, u8: 1 where a clause holds */
    int32_t threshold;            /* of votes; 0: none */
    int32_t empty;                /* of a clause that includes nothing: 0, as in inference, or 1, as in training */
} trine_tm_clauses_args;

/* What the clauses of a Tsetlin machine say of examples, and how they vote.
 *
 *     clause[i,p,q] = all bits that include[p,q] has are in literals[i]; of one that has none: empty
 *     votes[i,p]    = sum over q of weights[p,q] clause[i,p,q], at least -threshold and at most threshold
 *
 * Bit l % 8 of byte l / 8 is literal l: of k features these are the k features and then their k negations, as a rule.
 * Bits beyond the last literal are 0 in include, whatever they are in literals. Without weights, clauses of even number
 * vote for their class and those of odd number against it. The class of an example is that of most votes: topk finds
 * it. tm_update makes include of its automata if asked for.
 *
 * Sums are modulo 2^32, as those of i32 are, and are cut at the threshold afterwards.
 *
 * Source: Granmo 2018, "The Tsetlin Machine", section 3; Berge et al. 2019 for text; Phoulady et al. 2020 for weights.
 *
 * Shapes: literals is e w, include is c j w, weights is c j, votes is e c, clauses is e c j. The last dimension is
 * contiguous, leading strides are free.
 * Types: literals, include and clauses are u8, weights and votes i32.
 * Parameters: threshold >= 0; 0 means none. empty 0 or 1.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none; results are exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no
 * kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_tm_clauses(trine_queue *queue, const trine_tm_clauses_args *args);

typedef struct trine_tm_update_args {
    size_t struct_size;           /* sizeof(trine_tm_update_args) */
    const trine_tensor *literals; /* in e w, u8: bits */
    const trine_tensor *labels;   /* in e, i32 */
    const trine_tensor *states;   /* in and out c j l: i8 or i16 */
    const trine_tensor *include;  /* out, optional c j w, u8: the bits of literals that clauses include afterwards */
    int32_t threshold;            /* of votes; 0: 1 */
    float specificity;            /* s; 0: 1 */
    int32_t depth;                /* states of each action; 0: as many as the type has */
    int32_t boost;                /* 1: true literals of true clauses are strengthened always, not with (s - 1)/s */
    uint64_t seed;
    uint64_t offset; /* of the random numbers: another one for each call */
} trine_tm_update_args;

/* One pass of a Tsetlin machine's learning over examples, in their order.
 *
 * States are the automata of literals: one that is not negative includes its literal in its clause. They stay within
 * -depth .. depth - 1, and those that are not there only come nearer. For example i, whose label is class y, first
 * class y is told to vote for it, and then another class z, which is drawn, to vote against it. Of a class that is
 * told, all clauses are evaluated, one that includes nothing being true, and vote as in tm_clauses without weights: v,
 * between -threshold and threshold. Then each clause is given feedback with this probability:
 *
 *     (threshold - v) / (2 threshold) in class y,  (threshold + v) / (2 threshold) in class z
 *
 * It is of type I if the clause's number is even in class y, or odd in class z, else of type II.
 *
 * Type I, for each literal by itself: if the clause is true and so is the literal, the state grows by 1 with
 * probability (s - 1)/s, or always with boost; otherwise it falls by 1 with probability 1/s. Type II: if the clause is
 * true, the state of each literal that is false and not included grows by 1.
 *
 * Random numbers are words of Philox4x32-10, key = seed, whose counters are of the block's number and offset as in
 * trine_dropout(). With i the example, role 0 in class y and 1 in class z, and j clauses of l literals:
 *
 *     class z:      word i % 4 of block 2^63 + floor(i/4); z = floor(word (c - 1) / 2^32), and one more if z >= y
 *     clause q:     word q % 4 of block 2^62 + (2 i + role) ceil(j/4) + floor(q/4)
 *     its literal k: word k % 4 of block ((2 i + role) j + q) ceil(l/4) + floor(k/4)
 *
 * A clause is given feedback if word 2 threshold < 2^32 (threshold -+ v), and what has probability 1/s happens if the
 * literal's word is below floor(2^32/s). With one class there is no z. So results are the same bits on every device,
 * and calls with other offsets are independent.
 *
 * An example whose label is not in [0, c) is passed over. Bit k % 8 of byte k / 8 is literal k, as in tm_clauses.
 *
 * Source: Granmo 2018, "The Tsetlin Machine", sections 3 and 4, tables 2 and 3; many classes as in section 6.
 *
 * Shapes: literals is e w, labels is e, states is c j l with l <= 8 w, include is c j w. The last dimension is
 * contiguous, leading strides are free.
 * Types: states are i8 or i16, literals and include u8, labels i32.
 * Parameters: 0 <= threshold < 2^30, 0 means 1; specificity is 0, which means 1, or from 1 on; depth from 0 to 2^15, 0
 * and what the type has not mean 128 of i8 and 32768 of i16.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none; results are exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no
 * kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_tm_update(trine_queue *queue, const trine_tm_update_args *args);

#ifdef __cplusplus
}
#endif

#endif
