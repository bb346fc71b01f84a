/* SPDX-License-Identifier: Apache-2.0 */
/* lstm on devices: the host side. */
#include "lstm_host.h"

SIMT_KERNELS(lstm) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
