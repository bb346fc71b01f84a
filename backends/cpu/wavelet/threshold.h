/* SPDX-License-Identifier: Apache-2.0 */
/* What ops on bands of coefficients share on the CPU: rows of any stride. */
#ifndef TRINE_CPU_WAVELET_THRESHOLD_H
#define TRINE_CPU_WAVELET_THRESHOLD_H

#include <trine/wavelet.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"

enum { BAND_LANES = 8 }; /* sums of a row, each of every eighth element */

/* A tensor [b] [h] w; data NULL: absent. Steps in bytes, `step` in elements. */
typedef struct bands {
    char *data;
    int64_t band, row, step;
} bands;

static inline bands bands_of(const trine_tensor *t) {
    if (!t) return (bands){ 0 };
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    return (bands){ t->data, t->stride[0] * size, t->stride[1] * size, t->stride[2] };
}
static inline char *band_row(const bands *b, int64_t band, int64_t row) {
    return b->data ? b->data + band * b->band + row * b->row : NULL;
}

static inline double element_of(const trine_tensor *t, int64_t i) {
    return t->dtype == TRINE_F64 ? ((const double *)t->data)[i * t->stride[0]]
                                 : (double)((const float *)t->data)[i * t->stride[0]];
}
static inline void element_put(char *to, trine_dtype type, double x) {
    if (type == TRINE_F64)
        *(double *)(void *)to = x;
    else
        *(float *)(void *)to = (float)x;
}

static inline int64_t bands_bytes(const trine_tensor *x, double times) {
    return (int64_t)fmin((double)x->shape[0] * (double)x->shape[1] * (double)x->shape[2] * 8 * times, 0x1p62);
}

#endif
