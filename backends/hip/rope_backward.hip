/* SPDX-License-Identifier: Apache-2.0 */
/* rope_backward on CDNA devices. */
#include "backends/simt/rope_backward.inl.h"
