/* SPDX-License-Identifier: Apache-2.0 */
/* hash_encode: the table and the reference. */
#include <trine/field.h>

#include "encode.h"

#define ARGS trine_hash_encode_args

/* Bound, with u = 2^-24. Corners and t are exact, since all kernels have the same p, and t = p - c has no rounding.
 * 1 - t has one, and t^2 (3 - 2t) four of factors none of which is small beside its terms, so that each is off by at
 * most 7u of itself; the product of d of them, and with a feature, by 8 d u; the sum of 2^d <= d^2 of those, for d of 2
 * to 4, d^2 u at most, but for d = 3, whose 8 are less. */
static void put_level(trine_ref *ref, const grid *g, int64_t i, int64_t level) {
    const grid_cell c = grid_cell_of(g, i, level);
    for (int64_t k = 0; k < g->f; k++) {
        double sum = c.astray ? NAN : 0, size = 0, lost = 0;
        for (int64_t q = 0; q < c.corners && !c.none && !c.astray; q++) {
            const double w = grid_weight(g, &c, q, -1), v = g->table[c.row[q] * g->f + k];
            sum += w * v;
            size += trine_finite_abs(w * v);
            lost += FLUSH * (2 + trine_finite_abs(v));
            /* a weight that may be flushed to 0 */
            if (w > 0 && w < 0x1p-120 && isinf(v)) size = INFINITY;
        }
        if (c.none && !c.astray) sum = 0;
        near_put(ref, "y", (i * g->l + level) * g->f + k, sum, size, isfinite(sum) ? lost : 0);
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const grid g = grid_of(ref, args->per_level_scale, args->base_resolution, args->interpolation);
    for (int64_t i = 0; i < g.n; i++)
        for (int64_t level = 0; level < g.l; level++) put_level(ref, &g, i, level);
}

const trine_spec trine_spec_hash_encode = {
    SPEC(hash_encode),
    .summary = "Multiresolution hash encoding: features of places, interpolated in a grid of each level",
    .formula = "y[i,l] = sum over corners q of prod_k u(q[k] ? t[k] : 1 - t[k]) table[offsets[l] + row]; p = s x[i] + "
               "0.5, c = floor(p), t = p - c, s = min(base_resolution per_level_scale^l, 2^24) - 1, r = ceil(s) + 1, "
               "m = offsets[l+1] - offsets[l]; row = (sum_k (c+q)[k] r^k) mod m if r^d <= m, else (xor_k (c+q)[k] "
               "prime[k] mod 2^32) mod m; x is taken into 0 .. 1; NaN of NaN, 0 of a level without rows",
    .source = "Muller et al. 2022, section 3",
    .tensors = { TENSOR(x, IN, "f32", "n d", .fill = "unit"), TENSOR(table, IN, "T", "e f"),
                 TENSOR(offsets, IN, "I", "l+1", .fill = "offsets e"),
                 TENSOR(y, OUT, "T", "n l f", .terms = "d*d + 8*d + 2") },
    .params = { GRID_PARAMS },
    .types = GRID_TYPES,
    .require = { GRID_REQUIRE },
    .flops = "n*l*d*d*(2*f + d)",
    .independent = "n",
    .sizes = GRID_SIZES,
    .cases = { "nerf: T=f16 I=i32 n=262144 d=3 e=8388608 l=16 f=2 per_level_scale=1.3819",
               "image: T=f32 I=i32 n=262144 d=2 e=1048576 l=16 f=2 per_level_scale=1.5",
               "fits the cache: T=f32 I=i32 n=262144 d=3 e=65536 l=8 f=4",
               "space and time: T=bf16 I=i32 n=131072 d=4 e=4194304 l=8 f=8 interpolation=smoothstep" },
    .reference = reference,
};
