/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_matmul on devices: the rows of all ranks, at once and in pieces. */
#include "products.inl.h"

LINE_COPY_ENTRY(all_gather_matmul_2, uint16_t)
LINE_COPY_ENTRY(all_gather_matmul_4, uint32_t)
LANDED_COPY_ENTRY(all_gather_matmul_landed_2, uint16_t)
LANDED_COPY_ENTRY(all_gather_matmul_landed_4, uint32_t)
