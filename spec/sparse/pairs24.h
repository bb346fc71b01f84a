/* SPDX-License-Identifier: Apache-2.0 */
/* Two of each four: which are kept, and how their places are written down. */
#ifndef TRINE_SPEC_PAIRS24_H
#define TRINE_SPEC_PAIRS24_H

#include "spec/spec.h"

/* The places in a group of the two that are largest in size, ascending: of equals the first, and NaN before all. */
typedef struct pair24 {
    int first, second;
} pair24;

static inline bool larger24(double a, double b) { return fabs(a) > fabs(b) || (isnan(a) && !isnan(b)); }

static inline pair24 pair24_of(const double *group) {
    int kept[2] = { 0, 0 }, count = 0;
    for (int i = 0; i < 4; i++) {
        int before = 0; /* those that go before it */
        for (int j = 0; j < 4; j++)
            before += j != i && (larger24(group[j], group[i]) || (j < i && !larger24(group[i], group[j])));
        if (before < 2) kept[count++] = i;
    }
    return (pair24){ kept[0], kept[1] };
}

/* Group `g` of a row's indices: half a byte, the lower one first, with two bits for the first place and two above. */
static inline pair24 pair24_read(const double *indices, int64_t g) {
    const int bits = (int)indices[g / 2] >> (g % 2 ? 4 : 0);
    return (pair24){ bits & 3, bits >> 2 & 3 };
}

/* A packed row as it was: where both places are the same the second value is there. */
static inline void row24(double *row, const double *values, const double *indices, int64_t n) {
    for (int64_t g = 0; g < n / 4; g++) {
        const pair24 p = pair24_read(indices, g);
        for (int i = 0; i < 4; i++) row[4 * g + i] = 0;
        row[4 * g + p.first] = values[2 * g];
        row[4 * g + p.second] = values[2 * g + 1];
    }
}

#define SIZES24 \
    "r: 1 0 2 3 7 64", "n: 8 0 16 24 64 120 264 1000 4104", "h: 4 0 8 12 32 60 132 500 2052", \
        "q: 1 0 2 3 8 15 33 125 513"

#endif
