/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_add_rows on devices. */
#include "scatter.inl.h"

SCATTER_ENTRIES(scatter_add_rows)
