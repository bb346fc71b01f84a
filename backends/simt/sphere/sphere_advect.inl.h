/* SPDX-License-Identifier: Apache-2.0 */
/* sphere_advect on devices: a launch for each stage, in which a block has a pole, or a thread a node and what flows
 * through its four sides; velocities are split for WENO3 beforehand.
 *
 * NOTES. Floor of a stage: three fields once, and velocities or their four parts; neighbours are read from the
 * caches, and each side is computed twice. */
#include <trine/sphere.h>

#include "sphere.inl.h"

template <class Value> DEVICE Value larger_of(Value most, Value v) {
    const Value size = v < 0 ? -v : v;
    return size > most || v != v ? size : most;
}

/* (v + a)/2 and (v - a)/2, to the south and to the east. */
template <class Value> DEVICE void sphere_split(const sphere_params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index(), j = number / p.p, k = number % p.p;
    if (j >= p.t) return;
    const int64_t own = j < 1 ? 1 : j, next = j + 1 > p.t - 1 ? p.t - 1 : j + 1, column = k * p.v_theta.column;
    Value most = 0;
    for (int64_t side = j - 2; side <= j + 3; side++)
        if (side >= 1 && side < p.t) most = larger_of(most, sphere_line<const Value>(p.v_theta, 0, side - 1)[column]);
    sphere_line<Value>(p.part[0], 0, j)[k] = (sphere_line<const Value>(p.v_theta, 0, own - 1)[column] + most) / 2;
    sphere_line<Value>(p.part[1], 0, j)[k] = (sphere_line<const Value>(p.v_theta, 0, next - 1)[column] - most) / 2;
    if (j == 0 || j == p.t - 1) return;
    const Value *const v = sphere_line<const Value>(p.v_phi, 0, j);
    most = 0;
    for (int64_t side = k - 2; side <= k + 3; side++)
        most = larger_of(most, v[(side + 2 * p.p) % p.p * p.v_phi.column]);
    sphere_line<Value>(p.part[2], 0, j)[k] = (v[k * p.v_phi.column] + most) / 2;
    sphere_line<Value>(p.part[3], 0, j)[k] = (v[(k + 1) % p.p * p.v_phi.column] - most) / 2;
}

template <class Value>
DEVICE Value weno_part(Value x0, Value x1, Value x2, double behind_by, double own_by, double beyond_by,
                       const double (&above)[2], double small_by) {
    const Value behind = (Value)behind_by, own = (Value)own_by, beyond = (Value)beyond_by, small = (Value)small_by;
    const Value back = behind * (x1 - x0), on = beyond * (x2 - x1), far = (1 + behind) * x1 - behind * x0,
                near = own * x1 + beyond * x2, b0 = small + 4 * back * back, b1 = small + 4 * on * on,
                u0 = (Value)above[0] / (b0 * b0), u1 = (Value)above[1] / (b1 * b1);
    return (u0 * far + u1 * near) / (u0 + u1);
}

/* n of the two cells before a side and the one after, q of the one before and the two after. */
template <class Value> DEVICE Value weno_side(const sphere_weno &w, const Value (&n)[3], const Value (&q)[3]) {
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
    return weno_side(((const sphere_weno *)p.sides)[i], n, q);
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
        const int64_t before = (k - 2 + c + 2 * p.p) % p.p, after = (k - 1 + c + p.p) % p.p;
        n[c] = line[before] * east[before];
        q[c] = line[after] * west[after];
    }
    const double d = 2 * SPHERE_PI / (double)p.p;
    return weno_side(sphere_weno_of(d, d, d, d), n, q);
}

template <class Value> DEVICE void advect_put(const sphere_params &p, int64_t r, int64_t j, int64_t k, Value rate) {
    Value y = (Value)p.last * sphere_line<const Value>(p.y, r, j)[k] - (Value)p.last_rate * rate;
    if (p.first != 0) y += (Value)p.first * sphere_line<const Value>(p.f, r, j)[k];
    sphere_line<Value>(p.to, r, j)[k] = y;
}

template <class Value> DEVICE void sphere_advect(const sphere_params &p) {
    const sphere_node at(p);
    if (!at.there) return;
    const sphere_row row = ((const sphere_row *)p.rows)[at.j];
    if (at.pole) {
        Value sum = 0;
        for (int64_t k = thread_index(); k < p.p; k += SIMT_THREADS)
            sum += flow_down<Value>(p, at.r, at.j == 0 ? 1 : at.j, k);
        const Value rate = (Value)(row.south - row.north) * group_sum<SIMT_THREADS>(sum);
        for (int64_t k = thread_index(); k < p.p; k += SIMT_THREADS) advect_put(p, at.r, at.j, k, rate);
        return;
    }
    const Value down = (Value)row.south * flow_down<Value>(p, at.r, at.j + 1, at.k) -
                       (Value)row.north * flow_down<Value>(p, at.r, at.j, at.k),
                around = flow_along<Value>(p, at.r, at.j, at.east) - flow_along<Value>(p, at.r, at.j, at.k);
    advect_put(p, at.r, at.j, at.k, down + (Value)row.along * around);
}

ENTRY(sphere_advect_grid, SIMT_THREADS, sphere_params) { sphere_grid(p); }
ENTRY(sphere_advect_split_f32, SIMT_THREADS, sphere_params) { sphere_split<float>(p); }
ENTRY(sphere_advect_split_f64, SIMT_THREADS, sphere_params) { sphere_split<double>(p); }
ENTRY(sphere_advect_f32, SIMT_THREADS, sphere_params) { sphere_advect<float>(p); }
ENTRY(sphere_advect_f64, SIMT_THREADS, sphere_params) { sphere_advect<double>(p); }
