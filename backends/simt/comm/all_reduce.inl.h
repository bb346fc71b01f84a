/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce on devices, in one step and in two. */
#include "exchange.inl.h"

SUM_ENTRIES(all_reduce, sum_directly)
SUM_ENTRIES(all_reduce_parts, sum_by_parts)
