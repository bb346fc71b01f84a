/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_all_reduce on devices: the sum of all ranks' products, in one step and in two, and in pieces. */
#include "products.inl.h"

PRODUCT_SUM_ENTRIES(matmul_all_reduce, sum_directly)
PRODUCT_SUM_ENTRIES(matmul_all_reduce_parts, sum_by_parts)
LANDED_SUM_ENTRIES(matmul_all_reduce)
LINE_COPY_ENTRY(matmul_all_reduce_summed_2, uint16_t)
LINE_COPY_ENTRY(matmul_all_reduce_summed_4, uint32_t)
