/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_packed on the CPU: matmul's tasks and tiles, whose b is packed by the caller; few rows by themselves.
 *
 * The order of an element's sum follows from k and the level alone. */
#define WIDE_TILES
#define PACKED_B
#include "matmul_packed_few.h"
#include "matmul_tasks.h"

CPU_KERNELS(matmul_packed) = { { CPU_VARIANT("few"), few_refuse, few_workspace, few_launch, .edges = few_edges },
                               { CPU_NAME, product_refuse, workspace, launch, .edges = edges },
                               { 0 } };
