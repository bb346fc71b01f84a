/* SPDX-License-Identifier: Apache-2.0 */
/* ssd on devices: the host side. */
#include "ssd_host.h"

SIMT_KERNELS(ssd) = { { .name = SIMT_NAME, .launch = ssd_launch, .edges = ssd_edges }, { 0 } };
