/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_norm_clip on devices: all ranks get all sums; the rest is global_norm_clip's. */
#include "exchange.inl.h"

EXCHANGE_ENTRY(all_reduce_norm_clip_8, copy_rows<uint64_t>)
