/* SPDX-License-Identifier: Apache-2.0 */
/* elman_backward on devices. */
#include "elman_cell.h"
#include "backward.inl.h"

CELL_ENTRIES(elman_backward, elman_cell)
