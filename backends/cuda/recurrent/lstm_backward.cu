/* SPDX-License-Identifier: Apache-2.0 */
/* lstm_backward on CUDA devices. */
#include "backends/simt/recurrent/lstm_backward.inl.h"
#include "backward_wide.h"

CELL_BACKWARD_WIDE_ENTRIES(lstm_backward, lstm_cell)
