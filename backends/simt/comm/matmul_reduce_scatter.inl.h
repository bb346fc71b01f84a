/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_reduce_scatter on devices: the sum of all ranks' products. */
#include "products.inl.h"

PRODUCT_SUM_ENTRIES(matmul_reduce_scatter, sum_directly)
LANDED_SUM_ENTRIES(matmul_reduce_scatter)
