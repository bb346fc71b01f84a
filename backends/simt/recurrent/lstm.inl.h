/* SPDX-License-Identifier: Apache-2.0 */
/* lstm on devices. */
#include "lstm_cell.h"
#include "forward.inl.h"

CELL_ENTRIES(lstm, lstm_cell)
