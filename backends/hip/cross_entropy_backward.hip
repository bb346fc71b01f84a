/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy_backward on CDNA devices. */
#include "backends/simt/cross_entropy_backward.inl.h"
