/* SPDX-License-Identifier: Apache-2.0 */
/* Making tensors. */
#include "dispatch.h"

static trine_tensor contiguous(void *data, trine_dtype dtype, int rank, const int64_t *shape) {
    trine_tensor tensor = { .data = data, .dtype = dtype, .rank = rank };
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        tensor.shape[i] = shape[i];
        tensor.stride[i] = stride;
        /* the op's check names it */
        if (__builtin_mul_overflow(stride, shape[i] > 0 ? shape[i] : 1, &stride)) stride = INT64_MAX;
    }
    return tensor;
}

trine_tensor trine_tensor_1d(void *data, trine_dtype dtype, int64_t n0) { return contiguous(data, dtype, 1, &n0); }

trine_tensor trine_tensor_2d(void *data, trine_dtype dtype, int64_t n0, int64_t n1) {
    return contiguous(data, dtype, 2, (const int64_t[]){ n0, n1 });
}

trine_tensor trine_tensor_3d(void *data, trine_dtype dtype, int64_t n0, int64_t n1, int64_t n2) {
    return contiguous(data, dtype, 3, (const int64_t[]){ n0, n1, n2 });
}

trine_tensor trine_tensor_4d(void *data, trine_dtype dtype, int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
    return contiguous(data, dtype, 4, (const int64_t[]){ n0, n1, n2, n3 });
}

trine_tensor trine_tensor_transpose(const trine_tensor *tensor) {
    trine_tensor result = *tensor;
    const int last = tensor->rank - 1;
    if (last < 1 || last >= TRINE_MAX_RANK) return result;
    result.shape[last] = tensor->shape[last - 1];
    result.shape[last - 1] = tensor->shape[last];
    result.stride[last] = tensor->stride[last - 1];
    result.stride[last - 1] = tensor->stride[last];
    return result;
}

int64_t trine_tensor_count(const trine_tensor *tensor) {
    int64_t count = 1;
    bool empty = false;
    if (tensor->rank < 0 || tensor->rank > TRINE_MAX_RANK) return -1;
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] < 0) return -1;
        empty |= tensor->shape[i] == 0;
        if (tensor->shape[i] > 0 && __builtin_mul_overflow(count, tensor->shape[i], &count)) return -1;
    }
    return empty ? 0 : count;
}
