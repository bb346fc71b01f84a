/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta on devices: the host side. */
#include "gated_delta_host.h"

SIMT_KERNELS(gated_delta) = { { .name = SIMT_NAME, .launch = gated_delta_launch, .edges = gated_delta_edges }, { 0 } };
