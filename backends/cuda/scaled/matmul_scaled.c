/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled on CUDA devices: the kernels in the order in which they are preferred. That for sm_90a chooses its
 * tiles' columns; each of them follows, for TRINE_KERNEL. */
#include "matmul_scaled_sm90_host.h"
#include "backends/simt/scaled/matmul_scaled_host.h"

#define SM90(text, columns) \
    { .name = SIMT_NAME text, \
      .refuse = matmul_scaled_sm90_refuse, \
      .launch = matmul_scaled_sm90_launch, \
      .self = &(const int){ columns }, \
      .edges = matmul_scaled_sm90_edges }

SIMT_KERNELS(matmul_scaled) = {
    SM90("_sm90", 0),
    { .name = SIMT_NAME, .refuse = scaled_refuse, .launch = scaled_launch, .edges = scaled_edges },
    SM90("_sm90_256", 256),
    SM90("_sm90_128", 128),
    { 0 }
};
