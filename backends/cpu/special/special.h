/* SPDX-License-Identifier: Apache-2.0 */
/* Bessel functions on vectors of doubles, and the walk over tensors of f64 or f32 that ops are made of. */
#ifndef TRINE_CPU_SPECIAL_H
#define TRINE_CPU_SPECIAL_H

#include "backends/cpu/core/doubles.h"
#include "backends/cpu/elementwise/elementwise.h"

INLINE bool any_of(mask m) { return vany((vi)m); }

#include "spec/special/bessel.h"

enum { SPECIAL_BLOCK = 256, SPECIAL_NONE = -1 };
typedef double block_numbers[SPECIAL_BLOCK + DOUBLES];

/* The regions of bessel.h, or nearly: what is of one costs least together. */
enum { SPECIAL_REGIONS = 4 };
INLINE int64_t special_region(double v, double x) {
    return (int64_t)(v * v + x * x < BESSEL_LARGE * BESSEL_LARGE) * (1 + (int64_t)(x < BESSEL_SERIES) + (x < 1));
}

/* y = f(v, x) of n elements, those of a region one after the other. An element's result does not depend on which others
 * are in its vector. */
INLINE void special_each(block_numbers v, block_numbers x, block_numbers y, int n, number (*f)(number, number)) {
    int64_t region[SPECIAL_BLOCK], mixed = 0;
    int16_t place[SPECIAL_BLOCK] = { 0 };
    int begin[SPECIAL_REGIONS + 1] = { 0 };
    block_numbers sorted[2];
    for (int k = 0; k < n; k++) region[k] = special_region(v[k], x[k]);
    for (int k = 0; k < n; k++) mixed |= region[k] ^ region[0];
    for (int k = 0; k < n && mixed; k++) begin[region[k] + 1]++;
    for (int k = 0; k < SPECIAL_REGIONS; k++) begin[k + 1] += begin[k];
    for (int k = 0; k < n && mixed; k++) {
        place[k] = (int16_t)begin[region[k]]++;
        sorted[0][place[k]] = v[k], sorted[1][place[k]] = x[k];
    }
    double *orders = mixed ? sorted[0] : v, *at = mixed ? sorted[1] : x, *to = mixed ? sorted[0] : y;
    for (int k = n; k < n + DOUBLES; k++) orders[k] = orders[n - 1], at[k] = at[n - 1];
    for (int k = 0; k < n; k += DOUBLES)
        *(number_any *)(to + k) = f(*(const number_any *)(orders + k), *(const number_any *)(at + k));
    for (int k = 0; k < n && mixed; k++) y[k] = to[place[k]];
}

/* Elements i .. i+n-1 of a run. */
INLINE void special_load(const run *r, int tensor, int64_t i, int n, block_numbers x) {
    const void *at = r->at[tensor];
    const bool wide = r->call->tensor[tensor].dtype == TRINE_F64;
    if (r->still[tensor])
        for (int k = 0; k < n; k++) x[k] = wide ? *(const double *)at : (double)*(const float *)at;
    else if (wide)
        memcpy(x, (const double *)at + i, (size_t)n * sizeof *x);
    else
        for (int k = 0; k < n; k++) x[k] = (double)((const float *)at)[i + k];
}

INLINE void special_store(const run *r, int tensor, int64_t i, int n, const block_numbers y) {
    void *at = r->at[tensor];
    if (r->call->tensor[tensor].dtype == TRINE_F64)
        memcpy((double *)at + i, y, (size_t)n * sizeof *y);
    else
        for (int k = 0; k < n; k++) ((float *)at)[i + k] = (float)y[k];
}

/* y = f(v, x), or times dy, over a run; `v` and `dy` may be SPECIAL_NONE, then all orders are `order`. */
INLINE void special_run(const run *r, int v, double order, int x, int dy, int y, number (*f)(number, number)) {
    block_numbers orders, at, result, factor;
    for (int64_t i = 0; i < r->n; i += SPECIAL_BLOCK) {
        const int n = r->n - i < SPECIAL_BLOCK ? (int)(r->n - i) : SPECIAL_BLOCK;
        if (v == SPECIAL_NONE)
            for (int k = 0; k < n; k++) orders[k] = order;
        else
            special_load(r, v, i, n, orders);
        special_load(r, x, i, n, at);
        special_each(orders, at, result, n, f);
        if (dy != SPECIAL_NONE) {
            special_load(r, dy, i, n, factor);
            for (int k = 0; k < n; k++) result[k] *= factor[k];
        }
        special_store(r, y, i, n, result);
    }
}

static inline void special_edges(const trine_call *call, trine_kernel_edges *edges) {
    walk_edges(call, edges);
    trine_kernel_edge(edges, walk_symbol(call), DOUBLES);
    trine_kernel_edge(edges, walk_symbol(call), SPECIAL_BLOCK);
}

#endif
