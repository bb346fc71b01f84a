/* SPDX-License-Identifier: Apache-2.0 */
/* Device side that recurrent cells share: a block has a head of a sequence, and takes its steps one after the other. */
#ifndef TRINE_SIMT_RECURRENT_CELLS_INL_H
#define TRINE_SIMT_RECURRENT_CELLS_INL_H

#include "cells.h"
#include "backends/simt/core/math.h"

/* The steps of a block: `room` of those behind the last of packed sequences. Where offsets are astray the room is all
 * steps, and no sequence has any. */
struct cell_task {
    int64_t sequence, head, batch, first, steps;
    bool room, astray;

    DEVICE int64_t at(const cell_tensor &t, int64_t k, int gate) const {
        return batch * t.batch + (first + k) * t.step + gate * t.gate + head * t.head;
    }
    /* The row of a step in the workspace. */
    template <class Params> DEVICE int64_t row(const Params &p, int64_t k) const {
        return (batch * p.t + first + k) * p.h + head;
    }
    DEVICE float *state(const cell_tensor &t) const {
        return t.data ? (float *)t.data + sequence * t.batch + head * t.head : nullptr;
    }
};

/* All threads of a block ask together. */
template <class Params> DEVICE cell_task cell_task_of(const Params &p) {
    cell_task a = { block_index() / p.h, block_index() % p.h, 0, 0, p.t, false, false };
    if (!p.cu) {
        a.batch = a.sequence;
        return a;
    }
    float bad = p.cu[0] != 0 || p.cu[p.count] > p.t ? 1.0f : 0.0f;
    for (int64_t i = thread_index(); i < p.count; i += SIMT_THREADS)
        if (p.cu[i + 1] < p.cu[i]) bad = 1.0f;
    a.astray = group_sum<SIMT_THREADS>(bad) > 0;
    a.room = a.sequence == p.count;
    a.first = a.astray ? 0 : p.cu[a.sequence];
    a.steps = a.room ? p.t - a.first : a.astray ? 0 : p.cu[a.sequence + 1] - a.first;
    return a;
}

/* The room behind the last sequence: 0, or NaN if offsets are astray. */
template <class T> DEVICE void cell_clear(const cell_task &a, const cell_tensor &t, int gates, int64_t d) {
    if (!t.data) return;
    for (int64_t k = 0; k < a.steps; k++)
        for (int q = 0; q < gates; q++)
            for (int64_t j = thread_index(); j < d; j += SIMT_THREADS)
                store_one<T>(t.data, a.at(t, k, q) + j, a.astray ? not_a_number() : 0.0f);
}

/* Rows of d floats of a head of a sequence: in shared memory if they are held. */
template <int ROWS, class Params> DEVICE float *cell_rows(const Params &p) {
    alignas(16) SHARED float held[ROWS * CELL_HELD];
    return p.scratch_size > 0 ? p.scratch + block_index() * p.scratch_size : held;
}

#endif
