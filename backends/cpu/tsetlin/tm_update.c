/* SPDX-License-Identifier: Apache-2.0 */
/* tm_update on the CPU: a task has a class, and goes through the examples that concern it. What its clauses include is
 * kept as bits beside the states. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/philox.h"
#include "backends/cpu/tsetlin/bits.h"
#include "spec/places/tm_update.h"

enum { RUN = 4 * VL /* words at a time */, LITERAL_BYTES = 4 /* the work on one as memory, for cpu_team() */ };

typedef struct machine {
    const trine_tensor *literals, *states, *include; /* include: NULL if absent */
    const int32_t *labels;
    int64_t e, c, j, l, w, row; /* row: bytes of a clause's bits */
    int32_t threshold, low, high;
    uint64_t unlikely; /* words below it are of probability 1/s */
    bool boost;
    uint8_t *bits, *yes; /* in the workspace: [c][j][row], and whether clauses hold */
    dropout random;
} machine;

INLINE uint32_t word_of(const machine *a, uint64_t block, int64_t i) {
    uint32_t words[4];
    trine_philox((uint64_t)a->random.key[1] << 32 | a->random.key[0],
                 (uint64_t)a->random.offset[1] << 32 | a->random.offset[0], block + (uint64_t)i / 4, words);
    return words[i % 4];
}

/* Words first .. first + RUN - 1 of those from `block` on. */
INLINE void words_of(const machine *a, uint64_t block, int64_t first, uint32_t words[RUN]) {
    vu c[4];
    float ordered[RUN];
    philox_blocks(&a->random, block + (uint64_t)first / 4, c);
    philox_order(c, ordered);
    memcpy(words, ordered, sizeof ordered);
}

INLINE int32_t state_at(const void *states, int64_t k, trine_dtype S) {
    return S == TRINE_I8 ? ((const int8_t *)states)[k] : ((const int16_t *)states)[k];
}

INLINE void state_put(void *states, int64_t k, int32_t x, trine_dtype S) {
    if (S == TRINE_I8)
        ((int8_t *)states)[k] = (int8_t)x;
    else
        ((int16_t *)states)[k] = (int16_t)x;
}

INLINE void *states_of(const machine *a, int64_t class, int64_t q) {
    const int64_t at = class * a->states->stride[0] + q * a->states->stride[1];
    return (char *)a->states->data + at * (int64_t)trine_dtype_size(a->states->dtype);
}

INLINE void read_bits(const machine *a, const void *states, uint8_t *bits, int64_t first, int64_t last, trine_dtype S) {
    for (int64_t at = first; at < last; at += 8) {
        int byte = 0;
        for (int64_t k = at; k < at + 8 && k < a->l; k++) byte |= (state_at(states, k, S) >= 0) << (k - at);
        bits[at / 8] = (uint8_t)byte;
    }
}

INLINE bool literal_at(const uint8_t *literals, int64_t k) { return literals[k / 8] >> k % 8 & 1; }

/* Feedback to a clause: of literals first .. first + count - 1, type I. */
INLINE void feed_some(const machine *a, void *states, const uint8_t *literals, bool yes, const uint32_t *words,
                      int64_t first, int count, trine_dtype S) {
    for (int i = 0; i < count; i++) {
        const int32_t state = state_at(states, first + i, S);
        const bool unlikely = words[i] < a->unlikely, strong = yes && literal_at(literals, first + i),
                   up = strong && (a->boost || !unlikely) && state < a->high,
                   down = !strong && unlikely && state > a->low;
        state_put(states, first + i, state + up - down, S);
    }
}

INLINE void feed_clause(const machine *a, void *states, uint8_t *bits, const uint8_t *literals, bool yes, bool second,
                        uint64_t block, trine_dtype S) {
    if (second) {
        for (int64_t k = 0; yes && k < a->l; k++) {
            const int32_t state = state_at(states, k, S);
            const bool up = !literal_at(literals, k) && state < 0 && state < a->high;
            state_put(states, k, state + up, S);
        }
    } else {
        for (int64_t k = 0; k < a->l; k += RUN) {
            uint32_t words[RUN];
            words_of(a, block, k, words);
            feed_some(a, states, literals, yes, words, k, (int)(k + RUN < a->l ? RUN : a->l - k), S);
        }
    }
    read_bits(a, states, bits, 0, a->l, S);
}

INLINE void feed_class(const machine *a, int64_t class, int64_t example, int role, trine_dtype S) {
    const uint8_t *literals = (const uint8_t *)a->literals->data + example * a->literals->stride[0];
    uint8_t *bits = a->bits + class * a->j * a->row, *yes = a->yes + class * a->j;
    int64_t vote = 0;
    for (int64_t q = 0; q < a->j; q++) {
        yes[q] = bits_within(bits + q * a->row, literals, (a->l + 7) / 8);
        vote += yes[q] ? 1 - q % 2 * 2 : 0;
    }
    vote = vote > a->threshold ? a->threshold : vote < -a->threshold ? -a->threshold : vote;
    const uint64_t share = (uint64_t)(role ? a->threshold + vote : a->threshold - vote),
                   turn = 2 * (uint64_t)example + (uint64_t)role, blocks = ((uint64_t)a->l + 3) / 4,
                   clauses = (1ull << 62) + turn * (((uint64_t)a->j + 3) / 4);
    for (int64_t first = 0; first < a->j; first += RUN) {
        uint32_t words[RUN];
        words_of(a, clauses, first, words);
        for (int64_t q = first; q < first + RUN && q < a->j; q++)
            if ((uint64_t)words[q - first] * 2 * (uint64_t)a->threshold < share << 32)
                feed_clause(a, states_of(a, class, q), bits + q * a->row, literals, yes[q], q % 2 != role,
                            (turn * (uint64_t)a->j + (uint64_t)q) * blocks, S);
    }
}

INLINE void learn(const machine *a, int64_t class, trine_dtype S) {
    uint8_t *bits = a->bits + class * a->j * a->row;
    for (int64_t q = 0; q < a->j; q++) read_bits(a, states_of(a, class, q), bits + q * a->row, 0, a->l, S);
    for (int64_t i = 0; i < a->e; i++) {
        const int64_t label = a->labels[i];
        if (label < 0 || label >= a->c) continue;
        if (label == class) {
            feed_class(a, class, i, 0, S);
        } else {
            const int64_t other = (int64_t)((uint64_t)word_of(a, 1ull << 63, i) * (uint64_t)(a->c - 1) >> 32);
            if (other + (other >= label) == class) feed_class(a, class, i, 1, S);
        }
    }
    for (int64_t q = 0; a->include && q < a->j; q++) {
        uint8_t *to = (uint8_t *)a->include->data + class * a->include->stride[0] + q * a->include->stride[1];
        const int64_t used = (a->l + 7) / 8;
        for (int64_t k = 0; k < a->w; k++) to[k] = k < used ? bits[q * a->row + k] : 0;
    }
}

static void classes(const void *context, int64_t first, int64_t last, int thread) {
    const machine *a = context;
    (void)thread;
    for (int64_t class = first; class < last; class ++)
        if (a->states->dtype == TRINE_I8)
            learn(a, class, TRINE_I8);
        else
            learn(a, class, TRINE_I16);
}

static int64_t row_of(const trine_call *call) { return cpu_round_up((call->dim[TM_UPDATE_DIM_L] + 7) / 8, 8); }

static size_t workspace(const trine_call *call) {
    return (size_t)(call->dim[TM_UPDATE_DIM_C] * call->dim[TM_UPDATE_DIM_J] * (row_of(call) + 1));
}

static trine_status launch(const trine_call *call) {
    const trine_tm_update_args *args = call->args;
    const trine_tensor *states = &call->tensor[TM_UPDATE_STATES];
    const int32_t most = states->dtype == TRINE_I8 ? 128 : 32768,
                  depth = args->depth > 0 && args->depth < most ? args->depth : most;
    const int64_t c = call->dim[TM_UPDATE_DIM_C], j = call->dim[TM_UPDATE_DIM_J];
    const machine a = { .literals = &call->tensor[TM_UPDATE_LITERALS],
                        .states = states,
                        .include = trine_call_given(call, TM_UPDATE_INCLUDE),
                        .labels = call->tensor[TM_UPDATE_LABELS].data,
                        .e = call->dim[TM_UPDATE_DIM_E],
                        .c = c,
                        .j = j,
                        .l = call->dim[TM_UPDATE_DIM_L],
                        .w = call->dim[TM_UPDATE_DIM_W],
                        .row = row_of(call),
                        .threshold = args->threshold,
                        .low = -depth,
                        .high = depth - 1,
                        .unlikely = (uint64_t)(0x1p32 / (double)args->specificity),
                        .boost = args->boost,
                        .bits = call->workspace,
                        .yes = (uint8_t *)call->workspace + c * j * row_of(call),
                        .random = dropout_of(0, args->seed, args->offset) };
    cpu_tasks(call, cpu_team(call, c, (a.e + 1) * j * a.l * LITERAL_BYTES), c, classes, &a);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, TM_UPDATE_DIM_J, RUN);
    trine_kernel_edge(edges, TM_UPDATE_DIM_L, RUN);
    trine_kernel_edge(edges, TM_UPDATE_DIM_L, 8 * BITS_STEP);
    cpu_team_edge(edges, TM_UPDATE_DIM_C,
                  call->dim[TM_UPDATE_DIM_E] * call->dim[TM_UPDATE_DIM_J] * call->dim[TM_UPDATE_DIM_L] * LITERAL_BYTES);
}

CPU_KERNELS(tm_update) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
