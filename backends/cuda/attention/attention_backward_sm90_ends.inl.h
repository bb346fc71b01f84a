/* SPDX-License-Identifier: Apache-2.0 */
/* What comes before and after the gradient of attention for sm_90a: dout.o of each row, and sums in memory that become
 * dq, and dk and dv where heads of a group are divided. Rows that come out as NaN or Inf are done again, one by one, by
 * what they see alone; and all rows, if offsets of sequences make no sense. */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_SM90_ENDS_INL_H
#define TRINE_CUDA_ATTENTION_BACKWARD_SM90_ENDS_INL_H

#include "attention_backward_pass.h"
#include "attention_backward_sm90.h"

/* -------------------------------------------------------------------------------------------------------------- end */

/* N sums of a thread as a warpgroup left them, of `parts` that are `step` floats apart. */
template <int N> DEVICE void attention_gradient_add(float (&sum)[N], const float *from, int parts, int64_t step) {
#pragma unroll
    for (int i = 0; i < N; i++) sum[i] = 0;
#pragma unroll 1
    for (int part = 0; part < parts; part++)
#pragma unroll
        for (int i = 0; i < N / 4; i++) {
            const packed<float, 4> x =
                *(const packed<float, 4> *)(from + part * step + (i * 128 + thread_index() % 128) * 4);
#pragma unroll
            for (int e = 0; e < 4; e++) sum[4 * i + e] += x.v[e];
        }
}

/* Writes the thread's rows `row` and row + 8 of a tile from token `first` on, and notes those that are NaN or Inf. */
template <class T, int COLUMNS>
DEVICE void attention_gradient_write(const attention_tensor &t, int batch, int head, int first, int row, int column,
                                     const float (&sum)[COLUMNS / 2], float factor, int end, int columns, bool wide,
                                     int *again) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int token = first + row + r * 8;
        const bool exists = token < end;
        attention_write_row<T, COLUMNS>(attention_row<T>(t, batch, exists ? token : 0, head) + column, sum, r, factor,
                                        false, columns - column, exists, wide);
        if (exists && attention_spoilt(sum, r)) again[row + r * 8] = 1;
    }
}

template <class T, int D, int QUERIES>
DEVICE void attention_gradient_end_queries(const attention_backward_sm90_params &p, int64_t slot, int *again) {
    enum { WIDTH = ATTENTION_BACKWARD_WIDTH(D), SPLIT = D / WIDTH };
    const attention_problem &at = p.call.at;
    const int tile = (int)(slot % p.call.tiles), head = (int)(slot / p.call.tiles % at.h),
              batch = (int)(slot / p.call.tiles / at.h), first = tile * QUERIES;
    const int group = thread_index() / 128,
              row = (QUERIES == 128 ? group * 64 : 0) + thread_index() % 128 / WARP * 16 + thread_index() % WARP / 4;
#pragma unroll 1
    for (int part = 0; part < SPLIT; part++) {
        const int64_t unit = (slot * SPLIT + part) * 2 + group;
        float dq[32];
        attention_gradient_add(dq, p.dq + unit * 4096, p.turns[SPLIT > 1 ? unit : slot] > 0, 0);
        attention_gradient_write<T, 64>(p.call.dq, batch, head, first, row,
                                        WIDTH == 128 ? part * WIDTH + group * 64 : 0, dq,
                                        at.scale * attention_lift_of<T>::sum(), at.sq, at.d, p.call.wide, again);
    }
    sync_block();
#pragma unroll 1
    for (int r = thread_index() / WARP; r < QUERIES && first + r < at.sq; r += ATTENTION_BACKWARD_ENDS / WARP)
        if (again[r] || *p.astray) attention_redo_query<T, D>(p.call, batch, head, first + r);
}

template <class T, int D>
DEVICE void attention_gradient_end_keys(const attention_backward_sm90_params &p, int64_t slot, int *again) {
    enum { KEYS = ATTENTION_BACKWARD_KEYS, WIDTH = ATTENTION_BACKWARD_WIDTH(D), SPLIT = D / WIDTH };
    const attention_problem &at = p.call.at;
    const int heads = at.h / at.group, tile = (int)(slot % p.call.columns), head = (int)(slot / p.call.columns % heads),
              first = tile * KEYS;
    const int batch = (int)(slot / p.call.columns / heads),
              row = thread_index() / WARP * 16 + thread_index() % WARP / 4;
    const bool summed = p.parts > 1 && !*p.astray;
    const int64_t plane = (slot - tile) * p.parts * SPLIT, step = (int64_t)p.call.columns * SPLIT * (2 * KEYS * WIDTH);
    bool spoilt = *p.astray;
#pragma unroll 1
    for (int part = 0; part < SPLIT; part++) {
        const int64_t own = plane + part * p.call.columns + tile;
        const int column = part * WIDTH;
        if (!summed) {
            spoilt |= !*p.astray && p.spoilt[own];
            continue;
        }
        const float *const from = p.dkv + own * (2 * KEYS * WIDTH) + thread_index() / 128 * 64 * WIDTH;
        const float lift = attention_lift_of<T>::sum();
        float sum[WIDTH / 2];
        attention_gradient_add(sum, from, p.parts, step);
        attention_gradient_write<T, WIDTH>(p.call.dk, batch, head, first, row, column, sum, at.scale * lift, at.sk,
                                           at.d, p.call.wide, again);
        attention_gradient_add(sum, from + KEYS * WIDTH, p.parts, step);
        attention_gradient_write<T, WIDTH>(p.call.dv, batch, head, first, row, column, sum, lift, at.sk, at.d,
                                           p.call.wide, again);
    }
    if (!summed && !spoilt) return;
    sync_block();
    const attention_place place = { batch, head, first, 0 };
#pragma unroll 1
    for (int r = thread_index() / WARP; r < KEYS && first + r < at.sk; r += ATTENTION_BACKWARD_ENDS / WARP)
        if (*p.astray || (summed ? again[r] != 0 : attention_gradient_lost<T, D>(p.call, batch, head, first + r)))
            attention_redo_key<T, D>(p.call, place, first + r);
}

/* A block for each tile of queries of a head, and then of keys. */
template <class T, int D, int QUERIES> DEVICE void attention_gradient_end(const attention_backward_sm90_params &p) {
    SHARED int again[128];
    const int64_t slots = (int64_t)p.call.at.b * p.call.at.h * p.call.tiles;
    if (thread_index() < 128) again[thread_index()] = 0;
    sync_block();
    if (block_index() < slots)
        attention_gradient_end_queries<T, D, QUERIES>(p, block_index(), again);
    else
        attention_gradient_end_keys<T, D>(p, block_index() - slots, again);
}

#endif
