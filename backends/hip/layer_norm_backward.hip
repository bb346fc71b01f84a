/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm_backward on CDNA devices. */
#include "backends/simt/layer_norm_backward.inl.h"
