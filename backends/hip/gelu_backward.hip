/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_backward on CDNA devices. */
#include "backends/simt/gelu_backward.inl.h"
