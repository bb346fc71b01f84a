/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on CUDA devices: the host side. */
#include "norm_host.h"

SIMT_KERNELS(rms_norm) = {
    { .name = SIMT_NAME "_fit",
      .refuse = norm_refuse_fit,
      .launch = norm_launch_fit,
      .edges = norm_edges_fit,
      .self = &norm_rms },
    { .name = SIMT_NAME "_shared",
      .refuse = norm_refuse_shared,
      .launch = norm_launch_shared,
      .edges = norm_edges_shared,
      .self = &norm_rms },
    { .name = SIMT_NAME, .launch = norm_launch_rows, .edges = norm_edges_rows, .self = &norm_rms },
    NORM_SAME_KERNEL(norm_rms),
    { 0 }
};
