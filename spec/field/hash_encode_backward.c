/* SPDX-License-Identifier: Apache-2.0 */
/* hash_encode_backward: the table and the reference. */
#include <stdlib.h>

#include <trine/field.h>

#include "encode.h"

#define ARGS trine_hash_encode_backward_args

/* Bound, with u = 2^-24 and weights as in hash_encode, off by 8 d u of themselves with the product by dy. A row of
 * dtable is a sum of at most 2^d <= d^2 terms of each place, d = 3 having 8, in any order. dx sums products with table
 * over features, these over corners, times a slope, which has four roundings, and those over levels: l + f + d^2. */
typedef struct sums {
    double *of, *size, *lost;
} sums;

static void add_level(trine_ref *ref, const grid *g, int64_t i, int64_t level, const sums *rows) {
    const double *dy = trine_ref_value(ref, "dy") + (i * g->l + level) * g->f;
    const grid_cell c = grid_cell_of(g, i, level);
    for (int64_t q = 0; rows->of && q < c.corners && !c.none && !c.astray; q++) {
        const double w = grid_weight(g, &c, q, -1);
        for (int64_t k = 0; k < g->f; k++) {
            const int64_t at = c.row[q] * g->f + k;
            rows->of[at] += w * dy[k];
            rows->size[at] += trine_finite_abs(w * dy[k]);
            rows->lost[at] += FLUSH * (2 + trine_finite_abs(dy[k]));
            if (w > 0 && w < 0x1p-120 && isinf(dy[k])) rows->size[at] = INFINITY;
        }
    }
}

/* What a level adds to the gradient along axis `axis`; *most is the largest of what may overflow. */
static double slope_of(trine_ref *ref, const grid *g, int64_t i, int64_t level, int64_t axis, double *size,
                       double *lost) {
    const double *dy = trine_ref_value(ref, "dy") + (i * g->l + level) * g->f;
    const grid_cell c = grid_cell_of(g, i, level);
    double sum = c.astray ? NAN : 0, all = 0, flushed = 0;
    for (int64_t q = 0; q < c.corners && !c.none && !c.astray; q++) {
        const double w = grid_weight(g, &c, q, axis);
        double inner = 0, inner_size = 0;
        for (int64_t k = 0; k < g->f; k++) {
            const double term = g->table[c.row[q] * g->f + k] * dy[k];
            inner += term, inner_size += trine_finite_abs(term);
        }
        if (inner_size > trine_largest(TRINE_F32)) all = INFINITY;
        if (w != 0 && fabs(w) < 0x1p-120 && isinf(inner)) all = INFINITY;
        sum += w * inner;
        all += fabs(w) * inner_size;
        flushed += FLUSH * ((double)g->f + 1 + inner_size);
    }
    if (all > trine_largest(TRINE_F32)) all = INFINITY;
    /* Outside of 0 .. 1 nothing is added, whatever the sum. */
    const double x = g->x[i * g->d + axis];
    if (!c.astray && (x < 0 || x > 1)) return 0;
    *size += c.slope[axis] == 0 ? (isinf(all) ? INFINITY : 0) : all * c.slope[axis];
    *lost += flushed * c.slope[axis] + FLUSH;
    return c.none && !c.astray ? 0 : c.slope[axis] * sum;
}

static void put_place(trine_ref *ref, const grid *g, int64_t i) {
    for (int64_t axis = 0; axis < g->d; axis++) {
        double sum = 0, size = 0, lost = 0;
        bool astray = false;
        for (int64_t k = 0; k < g->d; k++) astray |= isnan(g->x[i * g->d + k]) != 0;
        for (int64_t level = 0; level < g->l; level++) sum += slope_of(ref, g, i, level, axis, &size, &lost);
        near_put(ref, "dx", i * g->d + axis, astray ? NAN : sum, astray ? 0 : size, isfinite(sum) ? lost : 0);
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const grid g = grid_of(ref, args->per_level_scale, args->base_resolution, args->interpolation);
    const size_t count = (size_t)(g.e * g.f) + 1;
    sums rows = { NULL, NULL, NULL };
    if (trine_ref_value(ref, "dtable"))
        rows = (sums){ calloc(count, sizeof(double)), calloc(count, sizeof(double)), calloc(count, sizeof(double)) };
    for (int64_t i = 0; i < g.n; i++) {
        for (int64_t level = 0; level < g.l; level++) add_level(ref, &g, i, level, &rows);
        if (trine_ref_value(ref, "dx")) put_place(ref, &g, i);
    }
    for (int64_t at = 0; rows.of && at < g.e * g.f; at++)
        near_put(ref, "dtable", at, rows.of[at], rows.size[at], isfinite(rows.of[at]) ? rows.lost[at] : 0);
    free(rows.of), free(rows.size), free(rows.lost);
}

const trine_spec trine_spec_hash_encode_backward = {
    SPEC(hash_encode_backward),
    .summary = "Gradient of hash_encode",
    .formula = "dtable[row] = sum over places i, levels l and corners q of that row of weight dy[i,l]; dx[i,k] = "
               "sum_l s u'(t[k]) sum_q (q[k] ? 1 : -1) prod_(j != k) u(q[j] ? t[j] : 1 - t[j]) table[row] . dy[i,l], 0 "
               "where x[i,k] is outside of 0 .. 1; NaN of a NaN place, which adds nothing to dtable",
    .source = "the derivative of hash_encode's formula",
    .tensors = { TENSOR(dy, IN, "T", "n l f"), TENSOR(x, IN, "f32", "n d", .fill = "unit"),
                 TENSOR(table, IN, "T", "e f"), TENSOR(offsets, IN, "I", "l+1", .fill = "offsets e"),
                 TENSOR(dx, OUT | OPTIONAL, "f32", "n d", .terms = "l + f + d*d + 8*d + 8"),
                 TENSOR(dtable, OUT | OPTIONAL, "T", "e f", .terms = "n*d*d + 8*d + 2") },
    .params = { GRID_PARAMS },
    .types = GRID_TYPES,
    .require = { GRID_REQUIRE, "dx | dtable" },
    .flops = "n*l*d*d*(2*f + d)",
    .independent = "n",
    .sizes = GRID_SIZES,
    .cases = { "nerf: T=f16 I=i32 n=65536 d=3 e=8388608 l=16 f=2 per_level_scale=1.3819 +dtable",
               "image: T=f32 I=i32 n=65536 d=2 e=1048576 l=16 f=2 per_level_scale=1.5 +dtable",
               "surface: T=f32 I=i32 n=65536 d=3 e=65536 l=8 f=4 +dx +dtable" },
    .reference = reference,
};
