/* SPDX-License-Identifier: Apache-2.0 */
/* Do two strided views share an element? */
#include "overlap.h"

#include <stdlib.h>

/* A view as bytes: `run` contiguous ones, repeated along outer dimensions of positive stride. Neighbouring dimensions
 * that continue each other are one. */
typedef struct view {
    int64_t low, high; /* first byte, and one behind the last */
    int64_t run;
    int outer;
    int64_t stride[TRINE_MAX_RANK], length[TRINE_MAX_RANK];
} view;

void trine_view_extent(const trine_tensor *tensor, uintptr_t *low_out, uintptr_t *high_out) {
    const int64_t size = (int64_t)trine_dtype_size(tensor->dtype);
    int64_t low = (int64_t)(intptr_t)tensor->data, high = low + size;
    for (int i = 0; i < tensor->rank; i++) {
        const int64_t extent = tensor->stride[i] * size * (tensor->shape[i] - 1);
        low += extent < 0 ? extent : 0;
        high += extent > 0 ? extent : 0;
    }
    *low_out = (uintptr_t)low;
    *high_out = (uintptr_t)high;
}

static int by_stride(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static view view_of(const trine_tensor *tensor) {
    view v = { .low = (int64_t)(intptr_t)tensor->data, .run = (int64_t)trine_dtype_size(tensor->dtype) };
    const int64_t size = v.run;
    int64_t dims[TRINE_MAX_RANK][2]; /* stride, length */
    int count = 0;
    v.high = v.low + size;
    for (int i = 0; i < tensor->rank; i++) {
        const int64_t stride = tensor->stride[i] * size, extent = stride * (tensor->shape[i] - 1);
        if (tensor->shape[i] == 1 || stride == 0) continue;
        if (extent < 0)
            v.low += extent;
        else
            v.high += extent;
        dims[count][0] = llabs(stride);
        dims[count++][1] = tensor->shape[i];
    }
    qsort(dims, (size_t)count, sizeof dims[0], by_stride);
    for (int i = 0; i < count; i++) {
        if (v.outer == 0 && dims[i][0] == v.run) {
            v.run *= dims[i][1];
        } else if (v.outer > 0 && dims[i][0] == v.stride[v.outer - 1] * v.length[v.outer - 1]) {
            v.length[v.outer - 1] *= dims[i][1];
        } else {
            v.stride[v.outer] = dims[i][0];
            v.length[v.outer++] = dims[i][1];
        }
    }
    return v;
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

bool trine_views_overlap(const trine_tensor *a, const trine_tensor *b) {
    if (trine_tensor_count(a) <= 0 || trine_tensor_count(b) <= 0) return false;
    const view x = view_of(a), y = view_of(b);
    if (x.high <= y.low || y.high <= x.low) return false;
    /* Every run starts at a multiple of `period` from the view's first byte. If the runs of one never meet those of the
     * other modulo the period, the views interleave without sharing: q, k and v in one buffer, or gate and up. */
    int64_t period = 0;
    for (int i = 0; i < x.outer; i++) period = gcd(period, x.stride[i]);
    for (int i = 0; i < y.outer; i++) period = gcd(period, y.stride[i]);
    if (period == 0) return true;
    const int64_t shift = ((y.low - x.low) % period + period) % period;
    return shift < x.run || shift + y.run > period;
}

/* True if the strides fall as in a row-major view, each beyond what the dimensions behind it
 * cover: the common case, without sorting. */
static bool is_row_major(const trine_tensor *tensor) {
    int64_t extent = 1;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        if (tensor->shape[i] == 1) continue;
        if (tensor->stride[i] < extent) return false;
        extent += tensor->stride[i] * (tensor->shape[i] - 1);
    }
    return true;
}

bool trine_view_overlaps_itself(const trine_tensor *tensor) {
    if (is_row_major(tensor) || trine_tensor_count(tensor) <= 1) return false;
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->stride[i] == 0 && tensor->shape[i] > 1) return true;
    const view v = view_of(tensor);
    int64_t extent = v.run;
    for (int i = 0; i < v.outer; i++) {
        if (v.stride[i] < extent) return true;
        extent += v.stride[i] * (v.length[i] - 1);
    }
    return false;
}
