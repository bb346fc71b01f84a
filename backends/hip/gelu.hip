/* SPDX-License-Identifier: Apache-2.0 */
/* gelu on CDNA devices. */
#include "backends/simt/gelu.inl.h"
