/* SPDX-License-Identifier: Apache-2.0 */
/* sphere_advect on devices: a launch for each stage, in which a block has a pole, or a thread a node and what flows
 * through its four sides, which a tile's nodes share; velocities are split for WENO3 beforehand.
 *
 * NOTES. Floor of a stage: three fields once, and velocities or their four parts; neighbours are read from the
 * caches, and sides between tiles are computed twice. */
#include <trine/sphere.h>

#include "sphere.inl.h"

template <class Value> DEVICE Value larger_of(Value most, Value v) {
    const Value size = v < 0 ? -v : v;
    return size > most || v != v ? size : most;
}

/* A column from -2 to p + 2, as one of the row. */
DEVICE int64_t column_of(const sphere_params &p, int64_t k) {
    if (p.p < 3) return (k + 2 * p.p) % p.p;
    return k < 0 ? k + p.p : k < p.p ? k : k - p.p;
}

/* (v + a)/2 and (v - a)/2, to the south and to the east. */
template <class Value> DEVICE void sphere_split(const sphere_params &p) {
    const int64_t block = block_index(), line = quotient_below(p.tiles + p.across.by * p.t, block, p.across),
                  j = line * SPHERE_ROWS + thread_index() / SPHERE_COLUMNS,
                  k = (block - line * p.across.by) * SPHERE_COLUMNS + thread_index() % SPHERE_COLUMNS;
    if (j >= p.t || k >= p.p) return;
    const int64_t own = j < 1 ? 1 : j, next = j + 1 > p.t - 1 ? p.t - 1 : j + 1, column = k * p.v_theta.column;
    Value most = 0;
    for (int64_t side = j - 2; side <= j + 3; side++)
        if (side >= 1 && side < p.t) most = larger_of(most, sphere_line<const Value>(p.v_theta, 0, side - 1)[column]);
    sphere_line<Value>(p.part[0], 0, j)[k] = (sphere_line<const Value>(p.v_theta, 0, own - 1)[column] + most) / 2;
    sphere_line<Value>(p.part[1], 0, j)[k] = (sphere_line<const Value>(p.v_theta, 0, next - 1)[column] - most) / 2;
    if (j == 0 || j == p.t - 1) return;
    const Value *const v = sphere_line<const Value>(p.v_phi, 0, j);
    most = 0;
    for (int64_t side = k - 2; side <= k + 3; side++) most = larger_of(most, v[column_of(p, side) * p.v_phi.column]);
    sphere_line<Value>(p.part[2], 0, j)[k] = (v[k * p.v_phi.column] + most) / 2;
    sphere_line<Value>(p.part[3], 0, j)[k] = (v[column_of(p, k + 1) * p.v_phi.column] - most) / 2;
}

template <class Value>
DEVICE Value weno_part(Value x0, Value x1, Value x2, Value behind, Value own, Value beyond, const Value (&above)[2],
                       Value small) {
    const Value back = behind * (x1 - x0), on = beyond * (x2 - x1), far = (1 + behind) * x1 - behind * x0,
                near = own * x1 + beyond * x2, b0 = small + 4 * back * back, b1 = small + 4 * on * on,
                u0 = above[0] / (b0 * b0), u1 = above[1] / (b1 * b1);
    return (u0 * far + u1 * near) / (u0 + u1);
}

/* n of the two cells before a side and the one after, q of the one before and the two after. */
template <class Value> DEVICE Value weno_side(const sphere_side<Value> &w, const Value (&n)[3], const Value (&q)[3]) {
    return weno_part(n[0], n[1], n[2], w.m[0], w.m[1], w.q[0], w.n_weight, w.small[0]) +
           weno_part(q[2], q[1], q[0], w.q[1], w.q[0], w.m[1], w.p_weight, w.small[1]);
}

/* Through the side before row i. */
template <class Value> DEVICE Value flow_down(const sphere_params &p, int64_t r, int64_t i, int64_t k) {
    if (!p.weno || i == 1 || i == p.t - 1) {
        const Value v = sphere_line<const Value>(p.v_theta, 0, i - 1)[k * p.v_theta.column];
        return v * sphere_line<const Value>(p.y, r, v >= 0 ? i - 1 : i)[k];
    }
    Value f[4], n[3], q[3];
    for (int c = 0; c < 4; c++) f[c] = sphere_line<const Value>(p.y, r, i - 2 + c)[k];
    for (int c = 0; c < 3; c++) {
        n[c] = f[c] * sphere_line<const Value>(p.part[0], 0, i - 2 + c)[k];
        q[c] = f[c + 1] * sphere_line<const Value>(p.part[1], 0, i - 1 + c)[k];
    }
    return weno_side(((const sphere_side<Value> *)p.sides)[i], n, q);
}

/* Through the side before column k of row j. */
template <class Value> DEVICE Value flow_along(const sphere_params &p, int64_t r, int64_t j, int64_t k) {
    const Value *const line = sphere_line<const Value>(p.y, r, j);
    if (!p.weno) {
        const Value v = sphere_line<const Value>(p.v_phi, 0, j)[k * p.v_phi.column];
        return v * line[v >= 0 ? (k > 0 ? k - 1 : p.p - 1) : k];
    }
    const Value *const east = sphere_line<const Value>(p.part[2], 0, j), *const west =
                                                                             sphere_line<const Value>(p.part[3], 0, j);
    Value n[3], q[3];
    for (int c = 0; c < 3; c++) {
        const int64_t before = column_of(p, k - 2 + c), after = column_of(p, k - 1 + c);
        n[c] = line[before] * east[before];
        q[c] = line[after] * west[after];
    }
    return weno_side(*(const sphere_side<Value> *)p.sides, n, q);
}

template <class Value> DEVICE void advect_put(const sphere_params &p, int64_t r, int64_t j, int64_t k, Value rate) {
    Value y = (Value)p.last * sphere_line<const Value>(p.y, r, j)[k] - (Value)p.last_rate * rate;
    if (p.first != 0) y += (Value)p.first * sphere_line<const Value>(p.f, r, j)[k];
    sphere_line<Value>(p.to, r, j)[k] = y;
}

template <class Value> DEVICE void sphere_advect(const sphere_params &p) {
    SHARED Value down[SPHERE_ROWS + 1][SPHERE_COLUMNS], along[SPHERE_ROWS][SPHERE_COLUMNS + 1];
    const sphere_node at(p);
    if (at.pole) {
        const sphere_row row = ((const sphere_row *)p.rows)[at.j];
        Value sum = 0;
        for (int64_t k = thread_index(); k < p.p; k += SIMT_THREADS)
            sum += flow_down<Value>(p, at.r, at.j == 0 ? 1 : at.j, k);
        const Value rate = (Value)(row.south - row.north) * group_sum<SIMT_THREADS>(sum);
        for (int64_t k = thread_index(); k < p.p; k += SIMT_THREADS) advect_put(p, at.r, at.j, k, rate);
        return;
    }
    for (int n = thread_index(); n < (SPHERE_ROWS + 1) * SPHERE_COLUMNS; n += SIMT_THREADS) {
        const int line = n / SPHERE_COLUMNS, column = n % SPHERE_COLUMNS;
        if (at.top + line < p.t && at.left + column < p.p)
            down[line][column] = flow_down<Value>(p, at.r, at.top + line, at.left + column);
    }
    for (int n = thread_index(); n < SPHERE_ROWS * (SPHERE_COLUMNS + 1); n += SIMT_THREADS) {
        const int line = n / (SPHERE_COLUMNS + 1), column = n % (SPHERE_COLUMNS + 1);
        const int64_t k = at.left + column;
        if (at.top + line < p.t - 1 && k <= p.p)
            along[line][column] = flow_along<Value>(p, at.r, at.top + line, k < p.p ? k : 0);
    }
    sync_block();
    if (!at.there) return;
    const sphere_row row = ((const sphere_row *)p.rows)[at.j];
    const int line = thread_index() / SPHERE_COLUMNS, column = thread_index() % SPHERE_COLUMNS;
    const Value south = (Value)row.south * down[line + 1][column] - (Value)row.north * down[line][column],
                around = along[line][column + 1] - along[line][column];
    advect_put(p, at.r, at.j, at.k, south + (Value)row.along * around);
}

ENTRY(sphere_advect_grid, SIMT_THREADS, sphere_params) { sphere_grid(p); }
ENTRY(sphere_advect_split_f32, SIMT_THREADS, sphere_params) { sphere_split<float>(p); }
ENTRY(sphere_advect_split_f64, SIMT_THREADS, sphere_params) { sphere_split<double>(p); }
ENTRY(sphere_advect_f32, SIMT_THREADS, sphere_params) { sphere_advect<float>(p); }
ENTRY(sphere_advect_f64, SIMT_THREADS, sphere_params) { sphere_advect<double>(p); }
