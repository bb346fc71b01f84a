/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_sum on CDNA devices. */
#include "backends/simt/reduce_sum.inl.h"
