/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled on devices: the host side. */
#include "matmul_scaled_host.h"

SIMT_KERNELS(matmul_scaled) = {
    { .name = SIMT_NAME, .refuse = scaled_refuse, .launch = scaled_launch, .edges = scaled_edges }, { 0 }
};
