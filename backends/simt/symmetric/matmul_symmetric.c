/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_symmetric on devices: the host side. */
#include "matmul_symmetric_host.h"

SIMT_KERNELS(matmul_symmetric) = { { .name = SIMT_NAME, .launch = symmetric_launch, .edges = symmetric_edges }, { 0 } };
