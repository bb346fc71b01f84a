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

/* What differs between chains of f32 and of f64: threads of a block, and how many terms a thread sums up before it adds
 * them to others, so that none passes through more additions than spec/norm/norm.h allows. */
template <class Real> struct chain_width {
    static constexpr int THREADS = SIMT_THREADS, PIECE = CHAIN_PIECE, TERMS = 4;
    static DEVICE float number_of(const chain_steps &p, int i) { return p.numbers.f32[i]; }
};
template <> struct chain_width<double> {
    static constexpr int THREADS = CHAIN_WIDE_THREADS, PIECE = CHAIN_WIDE_PIECE, TERMS = 8;
    static DEVICE double number_of(const chain_steps &p, int i) { return p.numbers.f64[i]; }
};

template <class Real> DEVICE Real chain_load(const void *row, int type, int64_t at) {
    switch (type) {
    case CHAIN_F32: return load_one<f32>(row, at);
    case CHAIN_BF16: return load_one<bf16>(row, at);
    case CHAIN_F16: return load_one<f16>(row, at);
    case CHAIN_I8: return ((const int8_t *)row)[at];
    case CHAIN_U8: return ((const uint8_t *)row)[at];
    default: return (float)((const int32_t *)row)[at];
    }
}
template <> DEVICE double chain_load<double>(const void *row, int type, int64_t at) {
    switch (type) {
    case CHAIN_F64: return ((const double *)row)[at];
    case CHAIN_F32: return load_one<f32>(row, at);
    default: return ((const int32_t *)row)[at];
    }
}

DEVICE void chain_store(void *row, int type, int64_t at, float x) {
    switch (type) {
    case CHAIN_F32: store_one<f32>(row, at, x); break;
    case CHAIN_BF16: store_one<bf16>(row, at, x); break;
    default: store_one<f16>(row, at, x);
    }
}
DEVICE void chain_store(void *row, int type, int64_t at, double x) {
    if (type == CHAIN_F64)
        ((double *)row)[at] = x;
    else
        store_one<f32>(row, at, (float)x);
}

/* One value of a row: chains of f32 have it in that. */
DEVICE void chain_store_row(void *at, int, float x) { store_one<f32>(at, 0, x); }
DEVICE void chain_store_row(void *at, int type, double x) { chain_store(at, type, 0, x); }

DEVICE int chain_size(int type) {
    if (type == CHAIN_F64) return 8;
    return type == CHAIN_F32 || type == CHAIN_I32 ? 4 : type == CHAIN_BF16 || type == CHAIN_F16 ? 2 : 1;
}

/* What a block has in shared memory: registers of each thread's element; values of the row, and constants behind them;
 * each thread's reductions, and of sums the last few terms. */
template <class Real> struct chain_memory {
    static constexpr int THREADS = chain_width<Real>::THREADS;
    void *row[CHAIN_VIEWS]; /* where the block's row begins in each tensor; NULL: absent */
    Real element[CHAIN_REGISTERS][THREADS];
    Real uniform[CHAIN_UNIFORM];
    Real total[CHAIN_REDUCTIONS][THREADS], part[CHAIN_REDUCTIONS][THREADS];
};

struct chain_step_of {
    uint32_t op, to, a, b, c;
    DEVICE chain_step_of(const chain_steps &p, int i)
        : op(p.step[i] & 255), to(p.step[i] >> 8 & 255), a(p.step[i] >> 16 & 255), b(p.step[i] >> 24), c(p.c[i]) {}
    DEVICE bool reduces() const { return op >= CHAIN_SUM_ROW && op <= CHAIN_MIN_ROW; }
};

template <class Real> DEVICE Real chain_get(const chain_memory<Real> &m, uint32_t operand) {
    return operand < CHAIN_ROW ? m.element[operand][thread_index()] : m.uniform[operand - CHAIN_ROW];
}

template <class Real> DEVICE Real chain_run(const chain_memory<Real> &m, const chain_step_of &s, Real n) {
    return chain_do(s.op, chain_get(m, s.a), s.op >= CHAIN_ADD ? chain_get(m, s.b) : Real(0),
                    s.op == CHAIN_FMA || s.op == CHAIN_SELECT ? chain_get(m, s.c) : Real(0), n);
}

DEVICE float chain_nothing(uint32_t op) {
    return op == CHAIN_SUM_ROW ? 0.0f : op == CHAIN_MAX_ROW ? -infinity() : infinity();
}

/* Takes up the thread's element number `turn`. */
template <class Real> DEVICE void chain_take(chain_memory<Real> &m, const chain_step_of &s, int which, int64_t turn) {
    const int thread = thread_index();
    Real &total = m.total[which][thread], &part = m.part[which][thread];
    const Real x = chain_get(m, s.a);
    if (s.op == CHAIN_MAX_ROW) {
        total = chain_larger(total, x);
    } else if (s.op == CHAIN_MIN_ROW) {
        total = chain_smaller(total, x);
    } else {
        part += x;
        if (turn % chain_width<Real>::TERMS != chain_width<Real>::TERMS - 1) return;
        total += part;
        part = 0;
    }
}

/* All steps on one element. */
template <class Real>
DEVICE void chain_element(const chain_steps &p, chain_memory<Real> &m, const chain_phase &phase, int64_t j,
                          int64_t turn) {
    int which = 0;
    for (int i = phase.first; i < phase.end; i++) {
        const chain_step_of s(p, i);
        if (s.op == CHAIN_LOAD) {
            m.element[s.to][thread_index()] = chain_load<Real>(m.row[s.a], p.type[s.a], p.along[s.a] ? j : 0);
        } else if (s.op == CHAIN_STORE) {
            void *row = m.row[CHAIN_INPUTS + s.to];
            if (row) chain_store(row, p.type[CHAIN_INPUTS + s.to], j, chain_get(m, s.a));
        } else if (s.reduces()) {
            chain_take(m, s, which++, turn);
        } else {
            m.element[s.to][thread_index()] = chain_run(m, s, Real(0));
        }
    }
}

/* What the block's threads have reduced, as values of the row. */
template <class Real> DEVICE void chain_finish(const chain_steps &p, chain_memory<Real> &m, const chain_phase &phase) {
    const int thread = thread_index();
    int which = 0;
    for (int i = phase.first; i < phase.end; i++) {
        const chain_step_of s(p, i);
        if (!s.reduces()) continue;
        Real x = m.total[which][thread];
        if (s.op == CHAIN_SUM_ROW)
            x = group_sum<chain_width<Real>::THREADS>(x + m.part[which][thread]);
        else if (s.op == CHAIN_MAX_ROW)
            x = group_combine<chain_width<Real>::THREADS>(x, chain_most());
        else
            x = group_combine<chain_width<Real>::THREADS>(x, chain_least());
        if (thread == 0) m.uniform[s.to - CHAIN_ROW] = x;
        which++;
    }
}

/* All phases on elements first .. end-1 of the block's row, which has n. */
template <class Real>
DEVICE void chain_phases(const chain_steps &p, chain_memory<Real> &m, int64_t first, int64_t end, int64_t n) {
    const int thread = thread_index();
    if (thread < CHAIN_CONSTANTS)
        m.uniform[CHAIN_CONSTANT - CHAIN_ROW + thread] = chain_width<Real>::number_of(p, thread);
    for (int k = 0; k < p.phases; k++) {
        const chain_phase phase = p.phase[k];
        sync_block();
        for (int i = phase.row; i < phase.first && thread == 0; i++) {
            const chain_step_of s(p, i);
            void *row = m.row[CHAIN_ROW_VIEWS + s.to % CHAIN_ROW_OUTPUTS];
            if (s.op != CHAIN_STORE_ROW)
                m.uniform[s.to - CHAIN_ROW] = chain_run(m, s, (Real)n);
            else if (row)
                chain_store_row(row, p.type[CHAIN_ROW_VIEWS + s.to], chain_get(m, s.a));
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
        for (int64_t j = first + thread; j < end; j += chain_width<Real>::THREADS)
            chain_element(p, m, phase, j, turn++);
        chain_finish(p, m, phase);
    }
}

template <class Real> DEVICE void chain_block(const chain_params &p) {
    SHARED chain_memory<Real> m;
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
template <class Real> DEVICE void chain_list_block(const chain_list_params &p) {
    constexpr uint32_t PIECE = chain_width<Real>::PIECE;
    SHARED chain_memory<Real> m;
    const int t = thread_index();
    const uint32_t *item = chain_item_of(p.list, block_index());
    const uint32_t number = (uint32_t)block_index() - item[0], n = item[1], length = p.steps.by_rows ? n : PIECE,
                   pieces = p.steps.by_rows ? 1 : (n + PIECE - 1) / PIECE, first = number % pieces * length,
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

ENTRY(chain, SIMT_THREADS, chain_params) { chain_block<float>(p); }
ENTRY(chain_list, SIMT_THREADS, chain_list_params) { chain_list_block<float>(p); }
ENTRY(chain_f64, CHAIN_WIDE_THREADS, chain_params) { chain_block<double>(p); }
ENTRY(chain_list_f64, CHAIN_WIDE_THREADS, chain_list_params) { chain_list_block<double>(p); }
