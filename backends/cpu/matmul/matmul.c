/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on the CPU: blocks of d are tasks; each packs the parts of a it needs into panels and multiplies them with
 * those of b, which all threads have packed before or the task packs itself, tile by tile.
 *
 * The order of an element's sum follows from k and the level alone, so neither threads nor the place in d change a
 * bit. */
#define WIDE_TILES
#include "matmul_same.h"
#include "matmul_skinny.h"
#include "matmul_small.h"
#include "matmul_tasks.h"

static void tasks_edges(const trine_call *call, trine_kernel_edges *e) {
    static const int symbols[] = { MATMUL_DIM_M, MATMUL_DIM_N };
    edges(call, e);
    for (int i = 0; i < 2; i++) {
        trine_kernel_edge(e, symbols[i], FEW_ACROSS);
        trine_kernel_edge(e, symbols[i], FEW);
    }
}

CPU_KERNELS(matmul) = {
    { .name = CPU_VARIANT("small"), .refuse = small_refuse, .launch = small_launch, .edges = small_edges },
    { CPU_VARIANT("skinny"), skinny_refuse, skinny_workspace, skinny_launch, .edges = skinny_edges },
    { CPU_NAME, product_refuse, workspace, launch, .edges = tasks_edges },
    { .name = SAME_NAME,
      .refuse = matmul_same_refuse,
      .launch = matmul_same_launch,
      .edges = tasks_edges,
      .same = true },
    { 0 },
};
