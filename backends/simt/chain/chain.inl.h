/* SPDX-License-Identifier: Apache-2.0 */
/* chain on devices: a block has a row, or a piece of one where the program does not ask where rows end, and a thread
 * every 256th element of it. The program's steps are taken one by one from the kernel's parameters, the same for all
 * threads; registers of an element lie in shared memory, where a step's number finds them.
 *
 * NOTES. Floor: each tensor once. Each step costs some ten instructions besides its own, and two or three accesses of
 * shared memory: of more than about ten steps these are the limit, not memory. */
#include "chain.h"
#include "chain_do.h"
#include "chain_item.h"

/* ------------------------------------------------------------------------------------------------- rows and tensors */

DEVICE float chain_load(const void *row, int type, int64_t at) {
    switch (type) {
    case CHAIN_F32: return load_one<f32>(row, at);
    case CHAIN_BF16: return load_one<bf16>(row, at);
    case CHAIN_F16: return load_one<f16>(row, at);
    case CHAIN_I8: return ((const int8_t *)row)[at];
    case CHAIN_U8: return ((const uint8_t *)row)[at];
    default: return (float)((const int32_t *)row)[at];
    }
}

DEVICE void chain_store(void *row, int type, int64_t at, float x) {
    switch (type) {
    case CHAIN_F32: store_one<f32>(row, at, x); break;
    case CHAIN_BF16: store_one<bf16>(row, at, x); break;
    default: store_one<f16>(row, at, x);
    }
}

DEVICE int chain_size(int type) {
    return type == CHAIN_F32 || type == CHAIN_I32 ? 4 : type == CHAIN_BF16 || type == CHAIN_F16 ? 2 : 1;
}

/* What a block has in shared memory: registers of each thread's element; values of the row, and constants behind them;
 * each thread's reductions, and of sums the last few terms, so that none passes through more additions than
 * spec/norm/norm.h allows. */
struct chain_memory {
    void *row[CHAIN_VIEWS]; /* where the block's row begins in each tensor; NULL: absent */
    float element[CHAIN_REGISTERS][SIMT_THREADS];
    float uniform[CHAIN_UNIFORM];
    float total[CHAIN_REDUCTIONS][SIMT_THREADS], part[CHAIN_REDUCTIONS][SIMT_THREADS];
};

struct chain_step_of {
    uint32_t op, to, a, b, c;
    DEVICE chain_step_of(const chain_steps &p, int i)
        : op(p.step[i] & 255), to(p.step[i] >> 8 & 255), a(p.step[i] >> 16 & 255), b(p.step[i] >> 24), c(p.c[i]) {}
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
DEVICE void chain_element(const chain_steps &p, chain_memory &m, const chain_phase &phase, int64_t j, int64_t turn) {
    int which = 0;
    for (int i = phase.first; i < phase.end; i++) {
        const chain_step_of s(p, i);
        if (s.op == CHAIN_LOAD) {
            m.element[s.to][thread_index()] = chain_load(m.row[s.a], p.type[s.a], p.along[s.a] ? j : 0);
        } else if (s.op == CHAIN_STORE) {
            void *row = m.row[CHAIN_INPUTS + s.to];
            if (row) chain_store(row, p.type[CHAIN_INPUTS + s.to], j, chain_get(m, s.a));
        } else if (s.reduces()) {
            chain_take(m, s, which++, turn);
        } else {
            m.element[s.to][thread_index()] = chain_run(m, s, 0);
        }
    }
}

/* What the block's threads have reduced, as values of the row. */
DEVICE void chain_finish(const chain_steps &p, chain_memory &m, const chain_phase &phase) {
    const int thread = thread_index();
    int which = 0;
    for (int i = phase.first; i < phase.end; i++) {
        const chain_step_of s(p, i);
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

/* All phases on elements first .. end-1 of the block's row, which has n. */
DEVICE void chain_phases(const chain_steps &p, chain_memory &m, int64_t first, int64_t end, int64_t n) {
    const int thread = thread_index();
    if (thread < CHAIN_CONSTANTS) m.uniform[CHAIN_CONSTANT - CHAIN_ROW + thread] = p.constant[thread];
    for (int k = 0; k < p.phases; k++) {
        const chain_phase phase = p.phase[k];
        sync_block();
        for (int i = phase.row; i < phase.first && thread == 0; i++) {
            const chain_step_of s(p, i);
            void *row = m.row[CHAIN_ROW_VIEWS + s.to % CHAIN_ROW_OUTPUTS];
            if (s.op != CHAIN_STORE_ROW)
                m.uniform[s.to - CHAIN_ROW] = chain_run(m, s, (float)n);
            else if (row)
                store_one<f32>(row, 0, chain_get(m, s.a));
        }
        int which = 0;
        for (int i = phase.first; i < phase.end; i++) {
            const chain_step_of s(p, i);
            if (!s.reduces()) continue;
            m.total[which][thread] = chain_nothing(s.op);
            m.part[which++][thread] = 0;
        }
        sync_block();
        int64_t turn = 0;
        for (int64_t j = first + thread; j < end; j += SIMT_THREADS) chain_element(p, m, phase, j, turn++);
        chain_finish(p, m, phase);
    }
}

ENTRY(chain, SIMT_THREADS, chain_params) {
    SHARED chain_memory m;
    const int t = thread_index();
    const int64_t number = block_index(), first = number % p.pieces * p.length,
                  end = first + p.length < p.n ? first + p.length : p.n;
    if (t < CHAIN_VIEWS) {
        int64_t line = number / p.pieces, at = 0;
#pragma unroll
        for (int d = CHAIN_AROUND - 1; d >= 0; d--) {
            at += line % p.outer[d] * p.view[t].stride[d];
            line /= p.outer[d];
        }
        m.row[t] = p.view[t].data ? (char *)p.view[t].data + at * chain_size(p.steps.type[t]) : nullptr;
    }
    chain_phases(p.steps, m, first, end, p.n);
}

/* The same of many calls. */
ENTRY(chain_list, SIMT_THREADS, chain_list_params) {
    SHARED chain_memory m;
    const int t = thread_index();
    const uint32_t *item = chain_item_of(p.list, block_index());
    const uint32_t number = (uint32_t)block_index() - item[0], n = item[1],
                   length = p.steps.by_rows ? n : (uint32_t)CHAIN_PIECE,
                   pieces = p.steps.by_rows ? 1 : (n + CHAIN_PIECE - 1) / CHAIN_PIECE, first = number % pieces * length,
                   end = first + length < n ? first + length : n;
    if (t < CHAIN_VIEWS) {
        m.row[t] = nullptr;
        if (p.list.tensors >> t & 1) {
            int place = 0;
            for (int i = 0; i < t; i++) place += p.list.tensors >> i & 1;
            const uint32_t *size = item + 2, *tensor = size + p.list.outer + place * (2 + p.list.outer);
            uint32_t line = number / pieces;
            int64_t at = 0;
            for (int d = p.list.outer - 1; d >= 0; d--) {
                at += (int64_t)(line % size[d]) * (int32_t)tensor[2 + d];
                line /= size[d];
            }
            m.row[t] = (char *)chain_address(tensor) + at * chain_size(p.steps.type[t]);
        }
    }
    chain_phases(p.steps, m, first, end, n);
}
