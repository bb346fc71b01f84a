/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather on devices. */
#include "exchange.inl.h"

COPY_ENTRIES(all_gather, copy_rows)
