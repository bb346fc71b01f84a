/* SPDX-License-Identifier: Apache-2.0 */
/* gru on devices: the host side. */
#include "gru_host.h"

SIMT_KERNELS(gru) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
