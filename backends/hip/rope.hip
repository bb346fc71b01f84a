/* SPDX-License-Identifier: Apache-2.0 */
/* rope on CDNA devices. */
#include "backends/simt/rope.inl.h"
