/* SPDX-License-Identifier: Apache-2.0 */
/* tm_update: the table and the reference. */
#include <stdlib.h>
#include <trine/tsetlin.h>

#include "mixed.h"

#define ARGS trine_tm_update_args

/* Exact: integers, and comparisons of random words with integers. */

typedef struct machine {
    const double *literals; /* of the example */
    double *states;         /* of the class */
    int64_t j, l, example;
    int role; /* 0: the example's class; 1: the other one */
    double unlikely, low, high;
    int64_t threshold;
    bool boost;
    uint64_t seed, offset;
} machine;

static bool literal(const machine *m, int64_t k) { return (int)m->literals[k / 8] >> k % 8 & 1; }

static bool holds(const machine *m, int64_t q) {
    for (int64_t k = 0; k < m->l; k++)
        if (m->states[q * m->l + k] >= 0 && !literal(m, k)) return false;
    return true;
}

static uint32_t word(const machine *m, uint64_t block, int64_t i) {
    uint32_t words[4];
    trine_philox(m->seed, m->offset, block + (uint64_t)i / 4, words);
    return words[i % 4];
}

static void feed_clause(const machine *m, int64_t q, bool yes, uint64_t block) {
    for (int64_t k = 0; k < m->l; k++) {
        double *state = m->states + q * m->l + k;
        int step = 0;
        if (q % 2 != m->role) {
            step = yes && !literal(m, k) && *state < 0;
        } else {
            const bool unlikely = word(m, block, k) < m->unlikely;
            step = yes && literal(m, k) ? m->boost || !unlikely : -unlikely;
        }
        if (step > 0 && *state < m->high) (*state)++;
        if (step < 0 && *state > m->low) (*state)--;
    }
}

static void feed_class(const machine *m, bool *yes) {
    int64_t vote = 0;
    for (int64_t q = 0; q < m->j; q++) {
        yes[q] = holds(m, q);
        vote += yes[q] ? (q % 2 ? -1 : 1) : 0;
    }
    vote = vote > m->threshold ? m->threshold : vote < -m->threshold ? -m->threshold : vote;
    const uint64_t share = (uint64_t)(m->role ? m->threshold + vote : m->threshold - vote);
    const uint64_t turn = 2 * (uint64_t)m->example + (uint64_t)m->role, blocks = ((uint64_t)m->l + 3) / 4,
                   clauses = (1ull << 62) + turn * (((uint64_t)m->j + 3) / 4);
    for (int64_t q = 0; q < m->j; q++)
        if ((uint64_t)word(m, clauses, q) * 2 * (uint64_t)m->threshold < share << 32)
            feed_clause(m, q, yes[q], (turn * (uint64_t)m->j + (uint64_t)q) * blocks);
}

static void put_include(trine_ref *ref) {
    const int64_t w = trine_ref_dim(ref, "w"), l = trine_ref_dim(ref, "l"),
                  count = trine_ref_dim(ref, "c") * trine_ref_dim(ref, "j");
    double *include = trine_ref_value(ref, "include");
    for (int64_t q = 0; include && q < count; q++)
        for (int64_t at = 0; at < w; at++) {
            int byte = 0;
            for (int64_t k = 8 * at; k < 8 * at + 8 && k < l; k++)
                byte |= (trine_ref_value(ref, "states")[q * l + k] >= 0) << k % 8;
            include[q * w + at] = byte;
        }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t e = trine_ref_dim(ref, "e"), w = trine_ref_dim(ref, "w"), c = trine_ref_dim(ref, "c");
    const double most = trine_ref_type(ref, "S") == TRINE_I8 ? 128 : 32768,
                 depth = args->depth > 0 && args->depth < most ? args->depth : most;
    machine m = { .j = trine_ref_dim(ref, "j"),
                  .l = trine_ref_dim(ref, "l"),
                  .low = -depth,
                  .high = depth - 1,
                  .unlikely = floor(0x1p32 / (double)args->specificity),
                  .threshold = args->threshold,
                  .boost = args->boost,
                  .seed = args->seed,
                  .offset = args->offset };
    bool *yes = malloc((size_t)m.j + 1);
    for (int64_t i = 0; yes && i < e; i++) {
        const double label = trine_ref_value(ref, "labels")[i];
        if (label < 0 || label >= (double)c) continue;
        int64_t class = (int64_t)label;
        m.literals = trine_ref_value(ref, "literals") + i * w;
        m.example = i;
        for (m.role = 0; m.role < (c > 1 ? 2 : 1); m.role++) {
            if (m.role) {
                const int64_t other = (int64_t)((uint64_t)word(&m, 1ull << 63, i) * (uint64_t)(c - 1) >> 32);
                class = other + (other >= class);
            }
            m.states = trine_ref_value(ref, "states") + class * m.j * m.l;
            feed_class(&m, yes);
        }
    }
    free(yes);
    put_include(ref);
}

/* Automata near 0 as a rule, so that clauses include few literals and change, and some at the ends. */
static void prepare(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = trine_ref_dim(ref, "c") * trine_ref_dim(ref, "j") * trine_ref_dim(ref, "l");
    const double most = trine_ref_type(ref, "S") == TRINE_I8 ? 128 : 32768,
                 depth = args->depth > 0 && args->depth < most ? args->depth : most;
    const uint32_t seed = mixed_values(trine_ref_value(ref, "literals"),
                                       trine_ref_dim(ref, "e") * trine_ref_dim(ref, "w")),
                   rare = 4 + seed % 29;
    for (int64_t k = 0; k < count; k++) {
        const uint32_t word = mixed(seed + (uint32_t)k), kind = word >> 8;
        double state = -1 - (double)(word % 3);
        if (kind % rare == 0) state = word % 2;
        if (kind % 37 == 1) state = word % 2 ? depth - 1 : -depth;
        if (kind % 101 == 2) state = word % 2 ? most - 1 : -most;
        trine_ref_value(ref, "states")[k] = state;
    }
}

const trine_spec trine_spec_tm_update = {
    SPEC(tm_update),
    .summary = "One pass of a Tsetlin machine's learning over examples",
    .formula = "for each example in order, its class y and then a drawn class z: v = votes as in tm_clauses, empty = "
               "1, held within -threshold .. threshold; each clause with probability (threshold -+ v) / (2 threshold) "
               "is given feedback, of type I (even in y, odd in z): state + 1 with (s-1)/s, 1 if boost, where clause "
               "and literal are true, else state - 1 with 1/s; or of type II: state + 1 where the clause is true, the "
               "literal false and not included",
    .source = "Granmo 2018, \"The Tsetlin Machine\", sections 3, 4 and 6",
    .tensors = { TENSOR(literals, IN, "u8", "e w"), TENSOR(labels, IN, "i32", "e", .fill = "places c"),
                 TENSOR(states, IN | OUT | EXACT, "S", "c j l", .fill = "derived"),
                 TENSOR(include, OUT | OPTIONAL | EXACT, "u8", "c j w") },
    .params = { PARAM(threshold, I32, .values = "1 5 15 100", .fallback = 1, .min = 0, .max = 0x1p30 - 1,
                      .doc = "of votes"),
                PARAM(specificity, F32, .values = "1 3.9 27 2", .fallback = 1, .min = 1, .doc = "s"),
                PARAM(depth, I32, .values = "0 3 100 1000", .min = 0, .max = 32768,
                      .doc = "states of each action; 0: as many as the type has"),
                PARAM(boost, BOOL, .values = "0 1",
                      .doc = "1: true literals of true clauses are strengthened always, not with (s - 1)/s"),
                PARAM(seed, U64, .values = "0 42 1234567890123456789", .doc = "key of the generator"),
                PARAM(offset, U64, .values = "0 7 4294967296", .doc = "stream of the generator") },
    .types = { "S=i8", "S=i16" },
    .require = { "l <= 8*w" },
    .flops = "4*e*j*l",
    .exact = true,
    .sizes = { "e: 5 0 1 2 30", "c: 2 0 1 3 5", "j: 10 0 1 2 7 33", "l: 7 1 0 2 16 60 130", "w: 1 0 2 8 17" },
    .cases = { "noisy xor: S=i8 e=5000 w=3 c=2 j=10 l=24 threshold=15 specificity=3.9",
               "mnist, 200 clauses: S=i8 e=200 w=196 c=10 j=200 l=1568 threshold=50 specificity=10",
               "imdb, 1000 words: S=i16 e=100 w=250 c=2 j=400 l=2000 threshold=40 specificity=27 +include" },
    .reference = reference,
    .prepare = prepare,
};
