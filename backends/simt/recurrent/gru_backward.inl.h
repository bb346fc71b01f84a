/* SPDX-License-Identifier: Apache-2.0 */
/* gru_backward on devices. */
#include "gru_cell.h"
#include "backward.inl.h"

CELL_ENTRIES(gru_backward, gru_cell)
