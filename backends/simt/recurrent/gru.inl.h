/* SPDX-License-Identifier: Apache-2.0 */
/* gru on devices. */
#include "gru_cell.h"
#include "forward.inl.h"

CELL_ENTRIES(gru, gru_cell)
