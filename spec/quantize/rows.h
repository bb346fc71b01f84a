/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of f32 numbers as codes of a byte each, with a scale for each group: what the references of the ops that make
 * the numbers themselves share. Codes, scales and numbers are exact: each operation is f32's, rounded once, and no
 * product is fused to another operation. */
#ifndef TRINE_SPEC_QUANTIZE_ROWS_H
#define TRINE_SPEC_QUANTIZE_ROWS_H

#include "codes.h"

/* A product that the compiler does not fuse to a sum. */
static inline float row_times(float a, float b) {
    const volatile float product = a * b;
    return product;
}

/* 127, 448 or 57344: what a group's largest number becomes. */
static inline float row_most(trine_dtype codes) { return codes == TRINE_I8 ? 127 : (float)trine_largest(codes); }

/* Codes and scales of the numbers of row i; powers, upward: as of the op. */
static inline void row_codes(const trine_ref *ref, int64_t i, const float *number, bool powers, bool upward) {
    const int64_t k = trine_ref_dim(ref, "k"), groups = trine_ref_dim(ref, "groups"), n = groups > 0 ? k / groups : 0;
    const trine_dtype C = trine_ref_type(ref, "C"), S = trine_ref_type(ref, "S");
    double *codes = trine_ref_value(ref, "codes") + i * k, *scales = trine_ref_value(ref, "scales") + i * groups;

    for (int64_t g = 0; g < groups; g++) {
        float most = 0;
        for (int64_t j = g * n; j < (g + 1) * n; j++)
            if (!(fabsf(number[j]) <= most)) most = isfinite(number[j]) && !isnan(most) ? fabsf(number[j]) : NAN;
        const float scale = codes_scale(S, powers, most, row_most(C), most / row_most(C), upward);
        scales[g] = scale;
        for (int64_t j = g * n; j < (g + 1) * n; j++) {
            const float q = scale > 0 ? number[j] / scale + 0.0f : 0; /* + 0: no code is -0 of -0 */
            codes[j] = C == TRINE_I8 ? (int)rintf(fminf(fmaxf(q, -128), 127)) : trine_round(q, C, true);
        }
    }
}

#endif
