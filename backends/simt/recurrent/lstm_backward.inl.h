/* SPDX-License-Identifier: Apache-2.0 */
/* lstm_backward on devices. */
#include "lstm_cell.h"
#include "backward.inl.h"

CELL_ENTRIES(lstm_backward, lstm_cell)
