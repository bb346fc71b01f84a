/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps. */
#include "maps.h"

static CUtensorMapDataType type_of(trine_dtype dtype) {
    static const struct {
        trine_dtype dtype;
        CUtensorMapDataType type;
    } types[] = { { TRINE_I8, CU_TENSOR_MAP_DATA_TYPE_UINT8 },    { TRINE_E4M3, CU_TENSOR_MAP_DATA_TYPE_UINT8 },
                  { TRINE_E5M2, CU_TENSOR_MAP_DATA_TYPE_UINT8 },  { TRINE_BF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 },
                  { TRINE_F16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16 }, { TRINE_F32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32 } };
    int at = 0;
    while (types[at].dtype != dtype) at++;
    return types[at].type;
}

trine_status cuda_map_encode(const cuda_driver *driver, const cuda_map *m, tensor_map *map_out) {
    const cuuint64_t shape[3] = { (cuuint64_t)m->shape[0], (cuuint64_t)m->shape[1], (cuuint64_t)m->shape[2] },
                     strides[2] = { (cuuint64_t)m->line, (cuuint64_t)m->batch };
    const cuuint32_t box[3] = { (cuuint32_t)m->width, (cuuint32_t)m->rows, 1 }, steps[3] = { 1, 1, 1 };
    return CUDA_CALL(driver, TensorMapEncodeTiled, (CUtensorMap *)(void *)map_out, type_of(m->dtype), 3, m->data, shape,
                     strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, m->fetch,
                     CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

trine_status cuda_map_encode_patches(const cuda_driver *driver, const cuda_patches *m, tensor_map *map_out) {
    cuuint64_t shape[4], strides[3];
    int lower[2], upper[2];
    for (int d = 0; d < 4; d++) shape[d] = (cuuint64_t)m->shape[d];
    for (int d = 0; d < 3; d++) strides[d] = (cuuint64_t)m->stride[d];
    for (int d = 0; d < 2; d++) {
        lower[d] = (int)m->first[d];
        upper[d] = (int)(m->first[d] + (m->positions[d] - 1) * m->step[d] + 1 - m->shape[1 + d]);
    }
    const cuuint32_t steps[4] = { 1, (cuuint32_t)m->step[0], (cuuint32_t)m->step[1], 1 };
    return CUDA_CALL(driver, TensorMapEncodeIm2col, (CUtensorMap *)(void *)map_out, type_of(m->dtype), 4, m->data,
                     shape, strides, lower, upper, (cuuint32_t)m->width, (cuuint32_t)m->rows, steps,
                     CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                     CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
