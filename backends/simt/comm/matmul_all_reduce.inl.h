/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_all_reduce on devices: the sum of all ranks' products, in one step and in two. */
#include "products.inl.h"

PRODUCT_SUM_ENTRIES(matmul_all_reduce, sum_directly)
PRODUCT_SUM_ENTRIES(matmul_all_reduce_parts, sum_by_parts)
