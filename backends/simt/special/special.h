/* SPDX-License-Identifier: Apache-2.0 */
/* Bessel functions on devices, and the walk of ops made of them. A thread has one element at a time: of several at once
 * registers would not hold the sums. */
#ifndef TRINE_SIMT_SPECIAL_H
#define TRINE_SIMT_SPECIAL_H

#include <trine/special.h>

#include "backends/simt/core/doubles.h"
#include "backends/simt/core/walk.h"

DEVICE bool any_of(mask m) { return m; }

#include "spec/special/bessel.h"

template <class T> DEVICE double element(const simt_walk &w, int tensor, const unit &u) {
    return T::get(*unit_place<1, typename T::bits>(w, tensor, u));
}
template <class T> DEVICE void put_element(const simt_walk &w, int tensor, const unit &u, double y) {
    *unit_place<1, typename T::bits>(w, tensor, u) = T::put(y);
}

/* Op::step(params, unit) on each element of the thread's unit. */
template <class Op, class Params> DEVICE void walk_singly(const Params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.walk.units) return;
    unit u = unit_of(p.walk, number, p.walk.length);
    const int64_t end = u.at + p.walk.length < p.walk.n ? u.at + p.walk.length : p.walk.n;
#pragma unroll 1
    for (; u.at < end; u.at++) Op::step(p, u);
}

#define SPECIAL_ENTRIES(op) \
    ENTRY(op##_f64, SIMT_THREADS, walk_call<trine_##op##_args>) { walk_singly<op##_op<f64>>(p); } \
    ENTRY(op##_f32, SIMT_THREADS, walk_call<trine_##op##_args>) { walk_singly<op##_op<f32>>(p); }

#endif
