/* SPDX-License-Identifier: Apache-2.0 */
/* tm_update on devices: a block has a class and goes through the examples that concern it, 32 threads of it through its
 * clauses by turns.
 *
 * NOTES. Floor: the states of a class once for each of its examples, from a cache. */
#include "tm_update.h"
#include "backends/simt/core/philox.h"

struct either {
    DEVICE uint32_t operator()(uint32_t a, uint32_t b) const { return a | b; }
};

DEVICE four update_words(const update_params &p, uint64_t block) {
    return philox(p.random, (uint32_t)block, (uint32_t)(block >> 32));
}
DEVICE uint32_t update_word(const four &words, int64_t i) {
    const uint32_t low = i & 1 ? words.word[1] : words.word[0], high = i & 1 ? words.word[3] : words.word[2];
    return i & 2 ? high : low;
}

template <class State> DEVICE State *update_states(const update_params &p, int64_t of_class, int64_t q) {
    return (State *)p.states + of_class * p.states_stride[0] + q * p.states_stride[1];
}

/* A clause's states k to k + 3, those behind the last -1 and not written; and the literals beside them as bits. */
template <class State> DEVICE packed<State, 4> update_load(const update_params &p, const State *states, int64_t k) {
    if (p.whole && k + 4 <= p.l) return *(const packed<State, 4> *)(states + k);
    packed<State, 4> v;
#pragma unroll
    for (int i = 0; i < 4; i++) v.v[i] = k + i < p.l ? states[k + i] : (State)-1;
    return v;
}
template <class State>
DEVICE void update_store(const update_params &p, State *states, int64_t k, const packed<State, 4> &v) {
    if (p.whole && k + 4 <= p.l) {
        *(packed<State, 4> *)(states + k) = v;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (k + i < p.l) states[k + i] = v.v[i];
}
DEVICE uint32_t update_literals(const uint8_t *literals, int64_t k) { return literals[k / 8] >> k % 8; }

/* Feedback to a clause by the threads of a team, the literals of a block of words at a time. */
template <class State>
DEVICE void update_feed(const update_params &p, State *states, const uint8_t *literals, bool holds, bool second,
                        uint64_t block) {
    if (second && !holds) return;
    for (int64_t k = 4 * (thread_index() % TM_TEAM); k < p.l; k += 4 * TM_TEAM) {
        const four words = second ? four{} : update_words(p, block + (uint64_t)k / 4);
        const uint32_t bits = update_literals(literals, k);
        packed<State, 4> v = update_load(p, states, k);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int32_t state = v.v[i];
            const bool literal = bits >> i & 1, unlikely = words.word[i] < p.unlikely, strong = holds && literal;
            const bool up = second ? !literal && state < 0 : strong && (p.boost || !unlikely),
                       down = !second && !strong && unlikely;
            v.v[i] = (State)(state + (up && state < p.high ? 1 : 0) - (down && state > p.low ? 1 : 0));
        }
        update_store(p, states, k, v);
    }
}

template <class State, int THREADS>
DEVICE void update_class(const update_params &p, int64_t of_class, int64_t example, int role) {
    constexpr int TEAMS = THREADS / TM_TEAM;
    const int lane = thread_index() % TM_TEAM, team = thread_index() / TM_TEAM;
    const uint8_t *const literals = (const uint8_t *)p.literals.data + example * p.literals.row;
    uint8_t *const all = p.holds + of_class * p.j;
    int32_t votes = 0;
    for (int64_t base = 0; base < p.j; base += TEAMS) {
        const int64_t q = base + team;
        uint32_t missing = 0;
        if (q < p.j) {
            const State *const states = update_states<State>(p, of_class, q);
#pragma unroll 4
            for (int64_t k = 4 * lane; k < p.l; k += 4 * TM_TEAM) {
                const packed<State, 4> v = update_load(p, states, k);
                uint32_t included = 0;
#pragma unroll
                for (int i = 0; i < 4; i++) included |= (uint32_t)(v.v[i] >= 0) << i;
                missing |= included & ~update_literals(literals, k);
            }
        }
        missing = group_combine<TM_TEAM>(missing, either());
        if (q < p.j && lane == 0) {
            all[q] = missing == 0;
            if (missing == 0) votes += q % 2 ? -1 : 1;
        }
    }
    votes = group_sum<THREADS>(votes);
    const int32_t vote = votes > p.threshold ? p.threshold : votes < -p.threshold ? -p.threshold : votes;
    const uint64_t share = (uint64_t)(role ? p.threshold + vote : p.threshold - vote),
                   turn = 2 * (uint64_t)example + (uint64_t)role, blocks = ((uint64_t)p.l + 3) / 4,
                   clauses = ((uint64_t)1 << 62) + turn * (((uint64_t)p.j + 3) / 4);
    sync_block();
    for (int64_t q = team; q < p.j; q += TEAMS) {
        const uint32_t word = update_word(update_words(p, clauses + (uint64_t)q / 4), q % 4);
        if ((uint64_t)word * 2 * (uint64_t)p.threshold < share << 32)
            update_feed(p, update_states<State>(p, of_class, q), literals, all[q] != 0, q % 2 != role,
                        (turn * (uint64_t)p.j + (uint64_t)q) * blocks);
    }
    sync_block();
}

template <class State, int THREADS> DEVICE void update_learn(const update_params &p) {
    const int64_t of_class = block_index();
    for (int64_t i = 0; i < p.e; i++) {
        const int64_t label = p.labels[i];
        if (label < 0 || label >= p.c) continue;
        if (label == of_class) {
            update_class<State, THREADS>(p, of_class, i, 0);
            continue;
        }
        const uint32_t word = update_word(update_words(p, ((uint64_t)1 << 63) + (uint64_t)i / 4), i % 4);
        const int64_t other = (int64_t)((uint64_t)word * (uint64_t)(p.c - 1) >> 32);
        if (other + (other >= label) == of_class) update_class<State, THREADS>(p, of_class, i, 1);
    }
    for (int64_t at = thread_index(); p.include && at < p.j * p.w; at += THREADS) {
        const int64_t q = at / p.w, byte = at % p.w;
        const State *const states = update_states<State>(p, of_class, q);
        uint32_t bits = 0;
        for (int64_t k = 8 * byte; k < 8 * byte + 8 && k < p.l; k++) bits |= (uint32_t)(states[k] >= 0) << k % 8;
        p.include[of_class * p.include_stride[0] + q * p.include_stride[1] + byte] = (uint8_t)bits;
    }
}

#define TM_UPDATE(type, State, THREADS) \
    ENTRY(tm_update_##type##_##THREADS, THREADS, update_params) { update_learn<State, THREADS>(p); }
TM_UPDATE(i8, int8_t, 256)
TM_UPDATE(i8, int8_t, 1024)
TM_UPDATE(i16, int16_t, 256)
TM_UPDATE(i16, int16_t, 1024)
