/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of a row as codes of a byte each, of numbers that an op makes: once, or those of a long group twice, for the
 * largest and for the codes. No product is fused to a sum. */
#ifndef TRINE_CPU_QUANTIZE_ROWS_H
#define TRINE_CPU_QUANTIZE_ROWS_H

#include "codes.h"

/* Numbers of a group that are kept from the one time to the other, and room for them. */
enum { ROW_KEPT = 16384 };
typedef float row_kept[ROW_KEPT + VL] __attribute__((aligned(64)));

/* What an op has of the tensors; y may be NULL. */
typedef struct row_codes {
    const trine_call *call;
    const trine_tensor *codes, *scales, *y;
    int64_t k, n, groups; /* of a row, of a group; in a row */
    float most;           /* what a group's largest number becomes */
    bool powers, upward;
} row_codes;

INLINE row_codes row_codes_of(const trine_call *call, int codes, int scales, int y, int64_t k, int64_t groups,
                              bool powers, bool upward) {
    const trine_dtype C = call->tensor[codes].dtype;
    return (row_codes){ .call = call,
                        .codes = &call->tensor[codes],
                        .scales = &call->tensor[scales],
                        .y = trine_call_given(call, y),
                        .k = k,
                        .n = groups > 0 ? k / groups : 0,
                        .groups = groups,
                        .powers = powers,
                        .upward = upward,
                        .most = C == TRINE_I8     ? 127.0f
                                : C == TRINE_E4M3 ? 448.0f
                                                  : 57344.0f };
}

/* `count` numbers of a row from element j on, what is beyond them being 0; the last time that they are asked for
 * `last` is set. */
typedef vf row_number(const void *of, int64_t j, int count, bool last, trine_dtype T);

INLINE vf row_load(const void *row, trine_dtype T, int64_t j, int count) {
    return count >= VL ? vload(row, T, j) : vloadn(row, T, j, count, 0);
}
INLINE void row_store(void *row, trine_dtype T, int64_t j, int count, vf x) {
    if (count >= VL)
        vstore(row, T, j, x);
    else
        vstoren(row, T, j, count, x);
}

INLINE void row_put(uint8_t *to, vf q, int count, trine_dtype C) {
    vb bytes;
    if (C == TRINE_I8)
        bytes = vb_narrow((vi)(vmin(vmax(q, vset(-128)), vset(127)) + CODES_WHOLE) - (vi)vset(CODES_WHOLE));
    else
        bytes = C == TRINE_E4M3 ? vf_to_float8(q, TRINE_E4M3, true) : vf_to_float8(q, TRINE_E5M2, true);
    if (count >= VL)
        memcpy(to, &bytes, VL);
    else
        memcpy(to, &bytes, (size_t)count);
}

/* The largest size of elements first .. end-1 by lanes, as bits, so that Inf is above all numbers and NaN above Inf.
 * They are kept, or asked for again. */
INLINE vi row_sizes(row_number *number, const void *of, float *kept, bool keep, int64_t first, int64_t end,
                    trine_dtype T) {
    vi size = { 0 };
    for (int64_t j = first; j < end; j += VL) {
        const vf x = number(of, j, end - j < VL ? (int)(end - j) : VL, keep, T);
        const vi bits = (vi)vabs(x);
        size = visel(bits > size, bits, size);
        if (keep) *(vf *)(kept + (j - first)) = x;
    }
    return size;
}

/* The scale of group g of row i. */
INLINE float row_scale(const row_codes *b, vi size, int64_t i, int64_t g) {
    const bool wild = vany(size >= 0x7f800000);
    const float most = vhmax((vf)size), quotient = wild ? NAN : most / b->most;
    return codes_put_scale(b->scales, i, g, b->powers, most, b->most, quotient, b->upward);
}

INLINE void row_put_codes(const row_codes *b, row_number *number, const void *of, const float *kept, bool keep,
                          float scale, int64_t i, int64_t first, int64_t end, trine_dtype T) {
    const vi live = viset(scale > 0 ? -1 : 0);
    const vf by = vset(scale);
    const trine_dtype C = b->codes->dtype;
    uint8_t *codes = (uint8_t *)b->codes->data + i * b->codes->stride[0];
    char *y = b->y ? (char *)b->y->data + i * b->y->stride[0] * (int64_t)vsize(T) : NULL;
    for (int64_t j = first; j < end; j += VL) {
        const int count = end - j < VL ? (int)(end - j) : VL;
        const vf x = keep ? *(const vf *)(kept + (j - first)) : number(of, j, count, true, T),
                 q = (vf)((vi)(x / by) & live) + vzero(); /* of -0: 0 */
        if (y) row_store(y, T, j, count, x);
        row_put(codes + j, q, count, C);
    }
}

/* Group g of row i. */
INLINE void row_group(const row_codes *b, row_number *number, const void *of, float *kept, int64_t i, int64_t g,
                      trine_dtype T) {
    const int64_t first = g * b->n, end = first + b->n;
    const bool keep = b->n <= ROW_KEPT;
    const float scale = row_scale(b, row_sizes(number, of, kept, keep, first, end, T), i, g);
    row_put_codes(b, number, of, kept, keep, scale, i, first, end, T);
}

#endif
