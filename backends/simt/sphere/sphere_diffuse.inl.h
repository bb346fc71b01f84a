/* SPDX-License-Identifier: Apache-2.0 */
/* sphere_diffuse on devices: a launch for each stage, in which a block has a pole, or a thread a node.
 *
 * NOTES. Floor of a stage: five fields once, nu once for each; neighbours are read from the caches. */
#include "sphere.inl.h"

template <class Value> DEVICE Value diffuse_flow(Value a, Value b, Value here, Value there) {
    return (Value)0.5 * (a + b) * (there - here);
}

template <class Value> DEVICE void diffuse_put(const sphere_params &p, int64_t r, int64_t j, int64_t k, Value rate) {
    const Value f = sphere_line<const Value>(p.f, r, j)[k];
    Value y;
    if (p.stage == 1) {
        sphere_line<Value>(p.rate, r, j)[k] = rate;
        y = (Value)p.first * f + (Value)p.last_rate * rate;
    } else {
        y = (Value)p.last * sphere_line<const Value>(p.y, r, j)[k] +
            (Value)p.before_times * sphere_line<const Value>(p.before, r, j)[k] + (Value)p.first * f +
            (Value)p.last_rate * rate + (Value)p.first_rate * sphere_line<const Value>(p.rate, r, j)[k];
    }
    sphere_line<Value>(p.to, r, j)[k] = y;
}

template <class Value> DEVICE void sphere_diffuse_pole(const sphere_params &p, const sphere_node &at) {
    const bool north = at.j == 0;
    const Value *const next = sphere_line<const Value>(p.y, at.r, north ? 1 : at.j - 1),
                       *const here = sphere_line<const Value>(p.y, at.r, at.j),
                       *const corner = sphere_line<const Value>(p.nu, 0, north ? 0 : at.j - 1);
    const sphere_row row = ((const sphere_row *)p.rows)[at.j];
    Value sum = 0;
    for (int64_t k = thread_index(); k < p.p; k += SIMT_THREADS)
        sum += (corner[k * p.nu.column] + corner[(k + 1 < p.p ? k + 1 : 0) * p.nu.column]) * (next[k] - here[k]);
    const Value rate = (Value)(row.north + row.south) * group_sum<SIMT_THREADS>(sum);
    for (int64_t k = thread_index(); k < p.p; k += SIMT_THREADS) diffuse_put(p, at.r, at.j, k, rate);
}

template <class Value> DEVICE void sphere_diffuse(const sphere_params &p) {
    const sphere_node at(p);
    if (at.pole) {
        sphere_diffuse_pole<Value>(p, at);
        return;
    }
    if (!at.there) return;
    const sphere_row row = ((const sphere_row *)p.rows)[at.j];
    const Value *const line = sphere_line<const Value>(p.y, at.r, at.j),
                       *const above = sphere_line<const Value>(p.nu, 0, at.j - 1),
                       *const below = sphere_line<const Value>(p.nu, 0, at.j);
    const int64_t east_of = at.k + 1 < p.p ? at.k + 1 : 0, west_of = at.k > 0 ? at.k - 1 : p.p - 1;
    const int64_t k = at.k * p.nu.column, east = east_of * p.nu.column;
    const Value here = line[at.k], nw = above[k], sw = below[k], ne = above[east], se = below[east];
    const Value rate =
        ((Value)row.north * diffuse_flow(nw, ne, here, sphere_line<const Value>(p.y, at.r, at.j - 1)[at.k]) +
         (Value)row.south * diffuse_flow(sw, se, here, sphere_line<const Value>(p.y, at.r, at.j + 1)[at.k])) +
        (Value)row.along * (diffuse_flow(nw, sw, here, line[west_of]) + diffuse_flow(ne, se, here, line[east_of]));
    diffuse_put(p, at.r, at.j, at.k, rate);
}

ENTRY(sphere_diffuse_grid, SIMT_THREADS, sphere_params) { sphere_grid(p); }
ENTRY(sphere_diffuse_f32, SIMT_THREADS, sphere_params) { sphere_diffuse<float>(p); }
ENTRY(sphere_diffuse_f64, SIMT_THREADS, sphere_params) { sphere_diffuse<double>(p); }
