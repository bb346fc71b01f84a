/* SPDX-License-Identifier: Apache-2.0 */
/* dropout on CDNA devices. */
#include "backends/simt/dropout.inl.h"
