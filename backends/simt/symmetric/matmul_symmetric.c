/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_symmetric on devices: the host side. */
#include "matmul_symmetric_product_host.h"

/* Matrix units come first. */
SIMT_KERNELS(matmul_symmetric) = { { .name = SIMT_NAME "_product",
                                     .refuse = symmetric_product_refuse,
                                     .workspace = symmetric_product_workspace,
                                     .launch = symmetric_product_launch,
                                     .edges = symmetric_product_edges },
                                   { .name = SIMT_NAME, .launch = symmetric_launch, .edges = symmetric_edges },
                                   { 0 } };
