/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps. */
#include "maps.h"

trine_status cuda_map_encode(const cuda_driver *driver, const cuda_map *m, tensor_map *map_out) {
    static const struct {
        trine_dtype dtype;
        CUtensorMapDataType type;
    } types[] = { { TRINE_I8, CU_TENSOR_MAP_DATA_TYPE_UINT8 },    { TRINE_E4M3, CU_TENSOR_MAP_DATA_TYPE_UINT8 },
                  { TRINE_E5M2, CU_TENSOR_MAP_DATA_TYPE_UINT8 },  { TRINE_BF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 },
                  { TRINE_F16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16 }, { TRINE_F32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32 } };
    const cuuint64_t shape[3] = { (cuuint64_t)m->shape[0], (cuuint64_t)m->shape[1], (cuuint64_t)m->shape[2] },
                     strides[2] = { (cuuint64_t)m->line, (cuuint64_t)m->batch };
    const cuuint32_t box[3] = { (cuuint32_t)m->width, (cuuint32_t)m->rows, 1 }, steps[3] = { 1, 1, 1 };
    int at = 0;
    while (types[at].dtype != m->dtype) at++;
    return CUDA_CALL(driver, TensorMapEncodeTiled, (CUtensorMap *)(void *)map_out, types[at].type, 3, m->data, shape,
                     strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, m->fetch,
                     CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
