/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_matmul on devices: the rows of all ranks. */
#include "products.inl.h"

LINE_COPY_ENTRY(all_gather_matmul_2, uint16_t)
LINE_COPY_ENTRY(all_gather_matmul_4, uint32_t)
