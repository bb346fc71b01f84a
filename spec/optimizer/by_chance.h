/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of bf16 that are rounded by chance: what the references of this family share. */
#ifndef TRINE_SPEC_BY_CHANCE_H
#define TRINE_SPEC_BY_CHANCE_H

#include <math.h>

#include "spec/spec.h"

#define BY_CHANCE_PARAMS \
    PARAM(seed, U64, .values = "0 42 1234567890123456789", .doc = "key of the generator"), \
        PARAM(stream, U64, .values = "0 7 4294967296", .doc = "high half of its counter: another for every call"), \
        PARAM(stochastic, BOOL, .values = "0 1", \
              .doc = "1: a param of bf16 goes up or down by chance, right on average")

/* x as a bf16: one of its two neighbours, of which 16 bits of chance tell which. It does not fall where x rises. */
static inline double by_chance_bf16(double x, uint32_t chance) {
    const double size = fabs(x);
    if (!(size < 0x1p128) || size == 0) return x;
    const int exponent = ilogb(size) < -126 ? -126 : ilogb(size);
    const double step = ldexp(1, exponent - 7), below = floor(size / step);
    const double rounded = (below + ((size / step - below) * 65536 > chance)) * step;
    return copysign(rounded < 0x1p128 ? rounded : INFINITY, x);
}

/* The upper half of the word of element `index`. */
static inline uint32_t by_chance_bits(uint64_t seed, uint64_t stream, uint64_t index) {
    uint32_t word[4];
    trine_philox(seed, stream, index / 8, word);
    return index % 2 ? word[index / 2 % 4] & 0xffff : word[index / 2 % 4] >> 16;
}

/* A number that is exact so far. What is computed in f32 is off by terms 2^-24 magnitude + slack, and mostly that is of
 * no consequence: then the result is the one value that both ends of this range give. Otherwise it may be either, and
 * what lies between them. */
static inline void by_chance_one(double *value, double *magnitude, double *slack, double terms, uint32_t chance) {
    const double off = terms * 0x1p-24 * *magnitude + *slack;
    if (!isfinite(*value) || !isfinite(off)) return;
    const double low = by_chance_bf16(*value - off, chance), high = by_chance_bf16(*value + off, chance);
    *value = low;
    *magnitude = isfinite(low) && isfinite(high) ? 0 : INFINITY;
    *slack = isfinite(low) && isfinite(high) ? high - low : 0;
}

/* param, if it is of bf16. */
static inline void by_chance(trine_ref *ref, int64_t count, double terms, uint64_t seed, uint64_t stream) {
    double *param = trine_ref_value(ref, "param"), *magnitude = trine_ref_magnitude(ref, "param"),
           *slack = trine_ref_slack(ref, "param");
    if (trine_ref_type(ref, "T") != TRINE_BF16) return;
    trine_ref_philox(ref, &seed, &stream);
    for (int64_t i = 0; i < count; i++)
        by_chance_one(&param[i], &magnitude[i], &slack[i], terms,
                      by_chance_bits(seed, stream, ref->first + (uint64_t)i));
}

#endif
