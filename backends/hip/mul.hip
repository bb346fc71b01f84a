/* SPDX-License-Identifier: Apache-2.0 */
/* mul on CDNA devices. */
#include "backends/simt/mul.inl.h"
