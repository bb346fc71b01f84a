/* SPDX-License-Identifier: Apache-2.0 */
/* slstm on devices. */
#include "slstm_cell.h"
#include "forward.inl.h"

CELL_ENTRIES(slstm, slstm_cell)
