/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of cross_entropy on CDNA devices. */
#include "backends/simt/loss/cross_entropy_launch.h"

SIMT_KERNELS(cross_entropy) = { { .name = SIMT_NAME, .launch = cross_entropy_launch, .edges = cross_entropy_edges },
                                { 0 } };
