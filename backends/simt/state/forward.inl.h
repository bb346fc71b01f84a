/* SPDX-License-Identifier: Apache-2.0 */
/* The forward of recurrences of matrices on devices. */
#ifndef TRINE_SIMT_STATE_FORWARD_INL_H
#define TRINE_SIMT_STATE_FORWARD_INL_H

#include "state.inl.h"

enum { STATE_FOUR = STATE_LANES / STATE_COLUMNS };

template <int R> using state_stage_of = state_stage<STATE_STEPS, R * STATE_LANES, STATE_WIDTH>;

/* A staged step; what its outputs are sums of goes to o. */
template <int R, int AT>
DEVICE void state_one(state_tile<R> &s, const state_shape &shape, const state_stage_of<R> &stage, int i,
                      float (&o)[STATE_LANES]) {
    const state_place place = state_place_of();
    const float *const k = stage.k[i], *const q = stage.q[i];
    float w[STATE_COLUMNS], u[STATE_COLUMNS];
    state_correction(shape, s, stage.step[i], k, stage.v[i] + place.column, place.lane, w, u);
    state_advance(s, stage.step[i], k, u, place.lane);
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int c = 0; c < STATE_COLUMNS; c++)
            o[AT + c] = fused(q[r * STATE_LANES + place.lane], s.x[r][c], o[AT + c]);
}

/* Steps i .. i+3 of those that are staged, as far as there are n; their outputs are summed up together, so that the
 * exchanges between threads do not wait for each other. */
template <int R>
DEVICE void state_four(state_tile<R> &s, const state_params &p, const state_task &a, const state_stage_of<R> &stage,
                       int i, int n, int64_t first) {
    const state_shape &shape = p.shape;
    const state_place place = state_place_of();
    float o[STATE_LANES] = {};
    state_one<R, 0>(s, shape, stage, i, o);
    if (i + 1 < n) state_one<R, STATE_COLUMNS>(s, shape, stage, i + 1, o);
    if (i + 2 < n) state_one<R, 2 * STATE_COLUMNS>(s, shape, stage, i + 2, o);
    if (i + 3 < n) state_one<R, 3 * STATE_COLUMNS>(s, shape, stage, i + 3, o);
    const float sum = state_sum_each(o, place.lane);
    const int step = i + place.lane / STATE_COLUMNS, mine = place.column + place.lane % STATE_COLUMNS;
    const int64_t column = a.block * STATE_WIDTH + mine;
    if (step < n && column < shape.e)
        state_put(p.y, state_at(p.y, a, first + step, a.head) + column,
                  shape.past ? fused(shape.past[a.head], stage.v[step][mine], sum) : shape.scale * sum);
}

/* States of up to 16 R rows. */
template <int R> DEVICE void state_forward(const state_params &p) {
    const state_shape &shape = p.shape;
    const state_task a = state_task_of<STATE_THREADS>(shape);
    if (a.room) {
        state_clear<STATE_THREADS, STATE_WIDTH>(shape, a, p.y);
        return;
    }
    SHARED state_stage_of<R> stage;
    const state_place place = state_place_of();
    const int64_t column = a.block * STATE_WIDTH + place.column;
    state_tile<R> s;
    state_load(s, shape.s0, shape, a, place, column);
    for (int64_t first = 0; first < a.steps; first += STATE_STEPS) {
        const int n = a.steps - first < STATE_STEPS ? (int)(a.steps - first) : STATE_STEPS;
        sync_block();
        state_fetch<STATE_THREADS>(stage, shape, a, first, n, true);
        sync_block();
        for (int i = 0; i < n; i += STATE_FOUR) state_four(s, p, a, stage, i, n, first);
    }
    state_save(s, p.last, shape, a, place, column);
}

#endif
