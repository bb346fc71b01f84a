/* SPDX-License-Identifier: Apache-2.0 */
/* chain on devices: a block has a row, or a piece of one where the program does not ask where rows end, and a thread
 * every 256th element of it. The program's steps are taken one by one from the kernel's parameters, the same for all
 * threads; registers of an element lie in shared memory, where a step's number finds them.
 *
 * NOTES. Floor: each tensor once. Each step costs some ten instructions besides its own, and two or three accesses of
 * shared memory: of more than about ten steps these are the limit, not memory. */
#include "chain.h"
#include "chain_do.h"

/* ------------------------------------------------------------------------------------------------- rows and tensors */

DEVICE float chain_load(const chain_view &v, int64_t at) {
    switch (v.type) {
    case CHAIN_F32: return load_one<f32>(v.data, at);
    case CHAIN_BF16: return load_one<bf16>(v.data, at);
    case CHAIN_F16: return load_one<f16>(v.data, at);
    case CHAIN_I8: return ((const int8_t *)v.data)[at];
    case CHAIN_U8: return ((const uint8_t *)v.data)[at];
    default: return (float)((const int32_t *)v.data)[at];
    }
}

DEVICE void chain_store(const chain_view &v, int64_t at, float x) {
    switch (v.type) {
    case CHAIN_F32: store_one<f32>(v.data, at, x); break;
    case CHAIN_BF16: store_one<bf16>(v.data, at, x); break;
    default: store_one<f16>(v.data, at, x);
    }
}

/* Where element j of a block's row is. */
struct chain_row {
    int64_t place[CHAIN_AROUND];

    DEVICE chain_row(const chain_params &p, int64_t row) {
#pragma unroll
        for (int d = CHAIN_AROUND - 1; d >= 0; d--) {
            place[d] = row % p.outer[d];
            row /= p.outer[d];
        }
    }
    DEVICE int64_t at(const chain_view &v, int64_t j) const {
        int64_t sum = j * v.step;
#pragma unroll
        for (int d = 0; d < CHAIN_AROUND; d++) sum += place[d] * v.stride[d];
        return sum;
    }
};

/* What a block has in shared memory: registers of each thread's element; values of the row, and constants behind them;
 * each thread's reductions, and of sums the last few terms, so that none passes through more additions than
 * spec/norm/norm.h allows. */
struct chain_memory {
    float element[CHAIN_REGISTERS][SIMT_THREADS];
    float uniform[CHAIN_UNIFORM];
    float total[CHAIN_REDUCTIONS][SIMT_THREADS], part[CHAIN_REDUCTIONS][SIMT_THREADS];
};

struct chain_step_of {
    uint32_t op, to, a, b, c;
    DEVICE chain_step_of(const uint32_t (&word)[2])
        : op(word[0] & 255), to(word[0] >> 8 & 255), a(word[0] >> 16 & 255), b(word[0] >> 24), c(word[1]) {}
    DEVICE bool reduces() const { return op >= CHAIN_SUM_ROW && op <= CHAIN_MIN_ROW; }
};

DEVICE float chain_get(const chain_memory &m, uint32_t operand) {
    return operand < CHAIN_ROW ? m.element[operand][thread_index()] : m.uniform[operand - CHAIN_ROW];
}

DEVICE float chain_run(const chain_memory &m, const chain_step_of &s, float n) {
    return chain_do(s.op, chain_get(m, s.a), s.op >= CHAIN_ADD ? chain_get(m, s.b) : 0,
                    s.op == CHAIN_FMA || s.op == CHAIN_SELECT ? chain_get(m, s.c) : 0, n);
}

DEVICE float chain_nothing(uint32_t op) {
    return op == CHAIN_SUM_ROW ? 0.0f : op == CHAIN_MAX_ROW ? -infinity() : infinity();
}

/* Takes up the thread's element number `turn`. */
DEVICE void chain_take(chain_memory &m, const chain_step_of &s, int which, int64_t turn) {
    const int thread = thread_index();
    float &total = m.total[which][thread], &part = m.part[which][thread];
    const float x = chain_get(m, s.a);
    if (s.op == CHAIN_MAX_ROW) {
        total = chain_larger(total, x);
    } else if (s.op == CHAIN_MIN_ROW) {
        total = chain_smaller(total, x);
    } else {
        part += x;
        if (turn % 4 != 3) return;
        total += part;
        part = 0;
    }
}

/* All steps on one element. */
DEVICE void chain_element(const chain_params &p, chain_memory &m, const chain_phase &phase, const chain_row &row,
                          int64_t j, int64_t turn) {
    int which = 0;
    for (int i = phase.first; i < phase.end; i++) {
        const chain_step_of s(p.step[i]);
        if (s.op == CHAIN_LOAD) {
            m.element[s.to][thread_index()] = chain_load(p.view[s.a], row.at(p.view[s.a], j));
        } else if (s.op == CHAIN_STORE) {
            const chain_view &v = p.view[CHAIN_INPUTS + s.to];
            if (v.data) chain_store(v, row.at(v, j), chain_get(m, s.a));
        } else if (s.reduces()) {
            chain_take(m, s, which++, turn);
        } else {
            m.element[s.to][thread_index()] = chain_run(m, s, 0);
        }
    }
}

/* What the block's threads have reduced, as values of the row. */
DEVICE void chain_finish(const chain_params &p, chain_memory &m, const chain_phase &phase) {
    const int thread = thread_index();
    int which = 0;
    for (int i = phase.first; i < phase.end; i++) {
        const chain_step_of s(p.step[i]);
        if (!s.reduces()) continue;
        float x = m.total[which][thread];
        if (s.op == CHAIN_SUM_ROW)
            x = group_sum<SIMT_THREADS>(x + m.part[which][thread]);
        else if (s.op == CHAIN_MAX_ROW)
            x = group_combine<SIMT_THREADS>(x, chain_most());
        else
            x = group_combine<SIMT_THREADS>(x, chain_least());
        if (thread == 0) m.uniform[s.to - CHAIN_ROW] = x;
        which++;
    }
}

ENTRY(chain, SIMT_THREADS, chain_params) {
    SHARED chain_memory m;
    const int thread = thread_index();
    const int64_t number = block_index(), line = number / p.pieces, first = (number - line * p.pieces) * p.length,
                  end = first + p.length < p.n ? first + p.length : p.n;
    const chain_row row(p, line);
    if (thread < CHAIN_CONSTANTS) m.uniform[CHAIN_CONSTANT - CHAIN_ROW + thread] = p.constant[thread];
    for (int k = 0; k < p.phases; k++) {
        const chain_phase phase = p.phase[k];
        sync_block();
        for (int i = phase.row; i < phase.first && thread == 0; i++) {
            const chain_step_of s(p.step[i]);
            m.uniform[s.to - CHAIN_ROW] = chain_run(m, s, (float)p.n);
        }
        int which = 0;
        for (int i = phase.first; i < phase.end; i++) {
            const chain_step_of s(p.step[i]);
            if (!s.reduces()) continue;
            m.total[which][thread] = chain_nothing(s.op);
            m.part[which++][thread] = 0;
        }
        sync_block();
        int64_t turn = 0;
        for (int64_t j = first + thread; j < end; j += SIMT_THREADS) chain_element(p, m, phase, row, j, turn++);
        chain_finish(p, m, phase);
    }
}
