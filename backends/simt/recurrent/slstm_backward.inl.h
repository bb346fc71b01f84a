/* SPDX-License-Identifier: Apache-2.0 */
/* slstm_backward on devices. */
#include "slstm_cell.h"
#include "backward.inl.h"

CELL_ENTRIES(slstm_backward, slstm_cell)
