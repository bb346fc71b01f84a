/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on CDNA devices. */
#include "backends/simt/rms_norm.inl.h"
