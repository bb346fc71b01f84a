/* SPDX-License-Identifier: Apache-2.0 */
/* The codes of dynamic tree quantization (Dettmers et al. 2022, section 2): their values, and the middles between
 * them. */
#ifndef TRINE_SPEC_DYNAMIC_CODES_H
#define TRINE_SPEC_DYNAMIC_CODES_H

#include <stdint.h>

enum {
    DYNAMIC_BLOCK = 256,    /* elements with one largest value */
    DYNAMIC_ZERO = 127,     /* the code of 0, of those with a sign */
    DYNAMIC_POSITIVE = 129, /* values of codes with a sign from 0 to 1; -1 has none */
    DYNAMIC_UNSIGNED = 256
};

/* Of each kind the values that are not negative, and between neighbours the largest f32 that is not beyond the middle:
 * a number of f32 is nearer to the upper one just where it is larger. */
typedef struct dynamic_codes {
    float positive[DYNAMIC_POSITIVE], positive_middle[DYNAMIC_POSITIVE - 1];
    float value[DYNAMIC_UNSIGNED], middle[DYNAMIC_UNSIGNED - 1];
} dynamic_codes;

/* 10^(f-6) (1/10 + 9/10 (j+1/2)/count) by one quotient of whole numbers, which no compiler makes another. */
static inline float dynamic_value(int f, int j, int count) {
    int64_t below = 20 * (int64_t)count;
    for (int i = f; i < 6; i++) below *= 10;
    return (float)((double)(2 * count + 18 * j + 9) / (double)below);
}

static inline float dynamic_middle(float low, float high) {
    const double middle = ((double)low + (double)high) / 2;
    union {
        float f;
        uint32_t bits;
    } nearest = { (float)middle };
    if (nearest.f > middle) nearest.bits--;
    return nearest.f;
}

static inline void dynamic_fill(dynamic_codes *c) {
    int positive = 1, all = 1;
    c->positive[0] = c->value[0] = 0;
    for (int f = 0; f < 7; f++) {
        for (int j = 0; j < 1 << f; j++) c->positive[positive++] = dynamic_value(f, j, 1 << f);
        for (int j = 0; j < 2 << f; j++) c->value[all++] = dynamic_value(f, j, 2 << f);
    }
    c->positive[positive] = c->value[all] = 1;
    for (int i = 0; i + 1 < DYNAMIC_POSITIVE; i++)
        c->positive_middle[i] = dynamic_middle(c->positive[i], c->positive[i + 1]);
    for (int i = 0; i + 1 < DYNAMIC_UNSIGNED; i++) c->middle[i] = dynamic_middle(c->value[i], c->value[i + 1]);
}

#endif
