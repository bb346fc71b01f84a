/* SPDX-License-Identifier: Apache-2.0 */
/* global_norm_clip on CDNA devices. */
#include "backends/simt/global_norm_clip.inl.h"
