/* SPDX-License-Identifier: Apache-2.0 */
/* slstm on devices: the host side. */
#include "slstm_host.h"

SIMT_KERNELS(slstm) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
