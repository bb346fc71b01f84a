/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on CDNA devices. */
#include "backends/simt/rms_norm_backward.inl.h"
