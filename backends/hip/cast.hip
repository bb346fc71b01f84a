/* SPDX-License-Identifier: Apache-2.0 */
/* cast on CDNA devices. */
#include "backends/simt/cast.inl.h"
