/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_scatter on devices. */
#include "exchange.inl.h"

SUM_ENTRIES(reduce_scatter, sum_directly)
