/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on CDNA devices. */
#include "backends/simt/layer_norm.inl.h"
