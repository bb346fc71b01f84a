/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized on devices: the host side. */
#include "matmul_quantized_host.h"

SIMT_KERNELS(matmul_quantized) = {
    { .name = SIMT_NAME, .refuse = quantized_few_refuse, .launch = quantized_few_launch, .edges = quantized_few_edges },
    { 0 }
};
