/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on CDNA devices. */
#include "backends/simt/cross_entropy.inl.h"
