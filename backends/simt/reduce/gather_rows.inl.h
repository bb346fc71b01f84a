/* SPDX-License-Identifier: Apache-2.0 */
/* gather_rows on devices. */
#include "gather.inl.h"

GATHER_ENTRIES(gather_rows)
GATHER_ENTRY(gather_rows, 1, uint8_t, 1)
