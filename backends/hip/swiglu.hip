/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu on CDNA devices. */
#include "backends/simt/swiglu.inl.h"
