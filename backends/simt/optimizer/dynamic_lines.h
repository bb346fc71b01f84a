/* SPDX-License-Identifier: Apache-2.0 */
/* The codes of dynamic tree quantization by straight lines: what a device finds most of them by, without a search.
 *
 * Within a power of ten the middles between values are evenly spaced, so that a number's code is the whole part of
 * slope x + offset. Each power of ten has two lines: one up to its last value, and one from there to the middle between
 * this and the next power's first, which is elsewhere. Of numbers with the same exponent of two there are at most three
 * lines: a table has where the second and the third begin.
 *
 * What a device computes so is off by less than DYNAMIC_NEAR/2 of DYNAMIC_PART: with u = 2^-24, a share by a reciprocal
 * of 2 ulp and a product is 5u off the quotient, the middles 2u off the line, its slope 1u, where slope x is at most
 * 143: 143 * 8u = 2.3 parts; the offset and the sum are half a part each off. So a code whose fraction is that near to
 * a whole number is looked for among the middles, one in 2000, and the others are right. */
#ifndef TRINE_SIMT_DYNAMIC_LINES_H
#define TRINE_SIMT_DYNAMIC_LINES_H

#include <assert.h>

#include "spec/optimizer/dynamic_codes.h"

#define DYNAMIC_PART 0x1p-15f /* the last bit of a number from 256 to 512 */
enum {
    DYNAMIC_PART_BITS = 15,
    DYNAMIC_NEAR = 8,       /* parts around a whole number */
    DYNAMIC_LINES = 15,     /* 0, and two of each power of ten */
    DYNAMIC_EXPONENTS = 128 /* of numbers up to 1, with f32's bias */
};

/* Lines in the order of numbers, and the bits of where those behind the first begin: multiples of 128. */
typedef struct dynamic_line {
    float slope, offset;
} dynamic_line;
typedef struct dynamic_lines {
    dynamic_line line[DYNAMIC_LINES];
    uint32_t turn[DYNAMIC_LINES - 1];
} dynamic_lines;

/* Where lines of numbers with one exponent begin; the last 7 bits of the first one are the place of the line before it,
 * in bytes. */
typedef struct dynamic_turns {
    uint32_t first, second;
} dynamic_turns;

static inline uint32_t dynamic_bits(float x) {
    union {
        float f;
        uint32_t bits;
    } u = { x };
    return u.bits;
}
/* Where a line begins that a device may take up to 383 ulp later: past x by more than it is off, with room for a
 * line's place. */
static inline uint32_t dynamic_turn(float x) { return (dynamic_bits(x) & ~127u) + 256; }

/* The line through (x0, y0) and (x1, y1). */
static inline dynamic_line dynamic_through(double x0, double y0, double x1, double y1) {
    const double slope = (y1 - y0) / (x1 - x0);
    return (dynamic_line){ (float)slope, (float)(y1 - slope * x1) };
}

/* Of codes from 0 up, `first` of them of the first power of ten; what the line has at code 0 is `base`. */
static inline void dynamic_lines_fill(dynamic_lines *d, const float *value, const float *middle, int first,
                                      double base) {
    int lines = 0, code = 1;
    d->line[lines] = dynamic_through(0, base + 0.5, (double)middle[0], base + 1);
    d->turn[lines++] = dynamic_turn(middle[0]);
    for (int count = first, f = 0; f < 7; code += count, count *= 2, f++) {
        const int end = code + count - 1; /* the power's last code */
        double spacing = 0.9 / count;
        for (int i = f; i < 6; i++) spacing /= 10;
        const double start = (double)value[code] - spacing / 2;
        d->line[lines] = dynamic_through(start, base + code, start + count * spacing, base + code + count);
        d->turn[lines++] = dynamic_turn(value[end]);
        d->line[lines] = dynamic_through((double)value[end], base + end + 0.75, (double)middle[end], base + end + 1);
        if (f < 6) d->turn[lines++] = dynamic_turn(middle[end]);
    }
    assert(lines == DYNAMIC_LINES - 1);
}

#endif
