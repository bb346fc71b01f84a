/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of dwt and idwt share: one axis of either.
 *
 * Bound, with u the accumulator's unit roundoff. A value beyond an end is a sum of at most 3 values times weights
 * that are rounded: 4 u of the sum of sizes. A coefficient is a sum of F products with taps that are rounded: 2 u
 * and F - 1 of additions, in any order. So an axis has F + 5, and two have twice that, whichever comes first and
 * wherever the weights are multiplied in; 2 more are for second order. The magnitude is that number times the sum of
 * |taps| |weights| |x|. Products below the normal ones are off by half the smallest number each, and what they go
 * into carries that on: 4 F for an axis, which the slack adds up. Sums of one axis may overflow before a small tap,
 * or one of 0, of the other takes them: where the sum of sizes with all taps taken to be 1.5, than which none is
 * larger, is beyond the largest number, anything may come out. */
#ifndef TRINE_SPEC_WAVELET_H
#define TRINE_SPEC_WAVELET_H

#include <stdlib.h>

#include "edge.h"
#include "filters.h"
#include "spec/spec.h"

#define WAVELET_PARAMS \
    PARAM(wavelet, ENUM, .values = WAVELET_NAMES, .doc = "TRINE_WAVELET_*: the filters"), \
        PARAM(edge, ENUM, \
              .values = "symmetric zero constant periodic reflect smooth antisymmetric antireflect " \
                        "periodization", \
              .doc = "TRINE_WAVELET_*: what lies beyond the ends")
/* k is 2, and then p is h, or 4. */
#define WAVELET_REQUIRE "k > 0", "k <= 4", "k % 2 == 0", "(4 - k)*(p - h) == 0"

/* Values with their sizes and slacks. */
typedef struct wavelet_sums {
    double *value, *size, *slack, *reach;
} wavelet_sums;

static inline wavelet_sums wavelet_sums_of(int64_t count) {
    double *all = calloc((size_t)(4 * count + 1), sizeof *all);
    return (wavelet_sums){ all, all + count, all + 2 * count, all + 3 * count };
}

static inline wavelet_sums wavelet_sums_at(wavelet_sums s, int64_t at) {
    return (wavelet_sums){ s.value + at, s.size + at, s.slack + at, s.reach + at };
}

/* An axis as a matrix of few columns: result i is a sum of values at[] times weights of either filter. */
typedef struct wavelet_entry {
    int64_t at;
    double weight[2], reach;
} wavelet_entry;
typedef struct wavelet_axis {
    int64_t count;  /* of results */
    int taps, most; /* entries of one */
    int *entries;
    wavelet_entry *entry;
    double tiny; /* what a product may lack */
} wavelet_axis;

static inline wavelet_axis wavelet_axis_of(int64_t count, const wavelet_filters *filters, double tiny) {
    const int most = WAVELET_TERMS * filters->taps;
    return (wavelet_axis){ count,
                           filters->taps,
                           most,
                           calloc((size_t)(count + 1), sizeof(int)),
                           calloc((size_t)(count * most + 1), sizeof(wavelet_entry)),
                           tiny };
}
static inline void wavelet_axis_free(wavelet_axis *a) { free(a->entries), free(a->entry); }

static inline void wavelet_axis_add(wavelet_axis *a, int64_t i, const wavelet_filters *filters, int tap, int64_t at,
                                    double weight) {
    a->entry[i * a->most + a->entries[i]++] =
        (wavelet_entry){ at, { filters->tap[0][tap] * weight, filters->tap[1][tap] * weight }, 1.5 * fabs(weight) };
}

/* `to` coefficients of a signal of `from`. */
static inline wavelet_axis wavelet_analysis(const wavelet_filters *filters, int edge, int64_t from, int64_t to,
                                            double tiny) {
    wavelet_axis a = wavelet_axis_of(to, filters, tiny);
    const int first = edge == TRINE_WAVELET_PERIODIZATION ? a.taps / 2 : 1;
    for (int64_t i = 0; i < to; i++)
        for (int j = 0; j < a.taps; j++) {
            const wavelet_value v = wavelet_value_at(edge, from, 2 * i + first - j);
            for (int term = 0; term < WAVELET_TERMS; term++)
                if (v.weight[term] != 0) wavelet_axis_add(&a, i, filters, j, v.at[term], v.weight[term]);
        }
    return a;
}

/* A signal of `to` from `from` coefficients. */
static inline wavelet_axis wavelet_synthesis(const wavelet_filters *filters, int edge, int64_t from, int64_t to,
                                             double tiny) {
    wavelet_axis a = wavelet_axis_of(to, filters, tiny);
    const bool round = edge == TRINE_WAVELET_PERIODIZATION;
    for (int64_t t = 0; t < to; t++)
        for (int j = 0; j < a.taps && from > 0; j++) {
            int64_t twice = t + (round ? a.taps / 2 - 1 : a.taps - 2) - j;
            if (twice % 2 != 0) continue;
            if (round) twice = (twice % (2 * from) + 2 * from) % (2 * from);
            if (twice >= 0 && twice / 2 < from) wavelet_axis_add(&a, t, filters, j, twice / 2, 1);
        }
    return a;
}

/* Filter `high` of an axis that goes down `width` columns, or along a row of one, is added to the results. */
static inline void wavelet_apply(const wavelet_axis *a, int high, wavelet_sums from, wavelet_sums to, int64_t width) {
    for (int64_t i = 0; i < a->count; i++) {
        for (int64_t c = i * width; c < (i + 1) * width; c++) to.slack[c] += 4 * a->taps * a->tiny;
        for (int e = 0; e < a->entries[i]; e++) {
            const wavelet_entry *entry = &a->entry[i * a->most + e];
            const double weight = entry->weight[high], size = fabs(weight);
            const wavelet_sums x = wavelet_sums_at(from, entry->at * width), sum = wavelet_sums_at(to, i * width);
            for (int64_t c = 0; c < width; c++) {
                sum.value[c] += weight * x.value[c];
                sum.size[c] += size * x.size[c];
                sum.slack[c] += size * x.slack[c];
                sum.reach[c] += entry->reach * x.reach[c];
            }
        }
    }
}

static inline wavelet_sums wavelet_sums_in(trine_ref *ref, const char *name, int64_t count) {
    const wavelet_sums s = wavelet_sums_of(count);
    for (int64_t i = 0; i < count; i++) {
        s.value[i] = trine_ref_value(ref, name)[i];
        s.size[i] = s.reach[i] = trine_finite_abs(s.value[i]);
    }
    return s;
}

/* Where finite numbers may overflow, an infinity or what is no number depends on the order of additions. */
static inline void wavelet_put(trine_ref *ref, const char *name, int64_t count, wavelet_sums s, double terms) {
    const double largest = trine_largest(trine_ref_type(ref, "T"));
    for (int64_t i = 0; i < count; i++) {
        const bool within = s.reach[i] < largest;
        trine_ref_value(ref, name)[i] = within || isfinite(s.value[i]) ? s.value[i] : 0;
        trine_ref_slack(ref, name)[i] = s.slack[i];
        trine_ref_magnitude(ref, name)[i] = within ? terms * s.size[i] : INFINITY;
    }
}

/* The smallest number of the type, which rounding to it below the normal ones may lack half of. */
static inline double wavelet_tiny(const trine_ref *ref) {
    const trine_dtype type = trine_ref_type(ref, "T");
    return fmax(2 * trine_smallest_normal(type) * trine_unit_roundoff(type), 0x1p-1074);
}

#endif
