/* SPDX-License-Identifier: Apache-2.0 */
/* lstm on CUDA devices. */
#include "backends/simt/recurrent/lstm.inl.h"
#include "forward_wide.h"

CELL_WIDE_ENTRIES(lstm, lstm_cell)
