/* SPDX-License-Identifier: Apache-2.0 */
/* What ops along time share on devices: a thread has a channel of a sequence. */
#ifndef TRINE_SIMT_SCAN_INL_H
#define TRINE_SIMT_SCAN_INL_H

#include "scan.h"
#include "backends/simt/core/simt.h"

/* A thread's channel and the steps of its sequence: `sequence` is the count in the room behind the last. Where offsets
 * are astray the room is all steps, and no sequence has any. */
struct scan_task {
    int64_t sequence, batch, first, steps, channel;
    bool there, room, astray;
};

/* Do offsets not ascend from 0 to at most t? All threads of a block ask together. */
DEVICE bool scan_astray(const scan_shape &s) {
    if (!s.cu) return false;
    float bad = s.cu[0] != 0 || s.cu[s.count] > s.t ? 1.0f : 0.0f;
    for (int64_t i = thread_index(); i < s.count; i += SCAN_THREADS)
        if (s.cu[i + 1] < s.cu[i]) bad = 1.0f;
    return group_sum<SCAN_THREADS>(bad) > 0;
}

DEVICE scan_task scan_task_of(const scan_shape &s) {
    scan_task a = {};
    a.sequence = block_index() / s.tiles;
    a.channel = (block_index() - a.sequence * s.tiles) * SCAN_THREADS + thread_index();
    a.astray = scan_astray(s);
    a.there = a.channel < s.n;
    a.steps = s.t;
    if (!s.cu) {
        a.batch = a.sequence;
        return a;
    }
    a.room = a.sequence == s.count;
    a.first = a.astray ? 0 : s.cu[a.sequence];
    a.steps = a.room ? s.t - a.first : a.astray ? 0 : s.cu[a.sequence + 1] - a.first;
    return a;
}

/* A channel's elements, step by step in the order of the scan. */
template <class Bits> struct scan_line {
    Bits *at;
    int64_t step;
    DEVICE Bits &operator[](int64_t k) const { return at[k * step]; }
};
template <class T>
DEVICE scan_line<typename T::bits> scan_line_of(const scan_shape &s, const scan_task &a, const simt_rows &rows) {
    const int64_t first = a.first + (s.reverse ? a.steps - 1 : 0);
    return { (typename T::bits *)rows.data + a.batch * rows.batch + first * rows.row + a.channel,
             s.reverse ? -rows.row : rows.row };
}
DEVICE float *scan_state(const scan_task &a, const simt_rows &rows) {
    return rows.data ? (float *)rows.data + a.sequence * rows.row + a.channel : nullptr;
}

/* The room behind the last sequence: 0, or NaN if offsets are astray. */
template <class T> DEVICE void scan_clear(const scan_shape &s, const scan_task &a, const simt_rows &rows) {
    const auto y = scan_line_of<T>(s, a, rows);
    for (int64_t k = 0; k < a.steps; k++) y[k] = T::put(a.astray ? not_a_number() : 0.0f);
}

/* Does step(k, load(k)) for each k in order, what is loaded being asked for 16 steps before at least. */
template <class Load, class Step> DEVICE void scan_each(int64_t steps, const Load &load, const Step &step) {
    decltype(load(0)) now[SCAN_AHEAD] = {}, next[SCAN_AHEAD] = {};
#pragma unroll
    for (int i = 0; i < SCAN_AHEAD; i++)
        if (i < steps) now[i] = load(i);
    for (int64_t k = 0; k < steps; k += SCAN_AHEAD) {
#pragma unroll
        for (int i = 0; i < SCAN_AHEAD; i++)
            if (k + SCAN_AHEAD + i < steps) next[i] = load(k + SCAN_AHEAD + i);
#pragma unroll
        for (int i = 0; i < SCAN_AHEAD; i++)
            if (k + i < steps) step(k + i, now[i]);
#pragma unroll
        for (int i = 0; i < SCAN_AHEAD; i++) now[i] = next[i];
    }
}

#endif
