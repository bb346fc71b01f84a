/* SPDX-License-Identifier: Apache-2.0 */
/* elman on devices: the host side. */
#include "elman_host.h"

SIMT_KERNELS(elman) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
