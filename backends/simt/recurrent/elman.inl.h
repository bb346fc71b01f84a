/* SPDX-License-Identifier: Apache-2.0 */
/* elman on devices. */
#include "elman_cell.h"
#include "forward.inl.h"

CELL_ENTRIES(elman, elman_cell)
