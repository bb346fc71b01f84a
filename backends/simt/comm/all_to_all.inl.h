/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all on devices. */
#include "exchange.inl.h"

COPY_ENTRIES(all_to_all, copy_rows)
