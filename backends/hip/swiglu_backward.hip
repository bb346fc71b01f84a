/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu_backward on CDNA devices. */
#include "backends/simt/swiglu_backward.inl.h"
