/* SPDX-License-Identifier: Apache-2.0 */
/* scale on CDNA devices. */
#include "backends/simt/scale.inl.h"
