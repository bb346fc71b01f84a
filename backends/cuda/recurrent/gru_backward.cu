/* SPDX-License-Identifier: Apache-2.0 */
/* gru_backward on CUDA devices. */
#include "backends/simt/recurrent/gru_backward.inl.h"
#include "backward_wide.h"

CELL_BACKWARD_WIDE_ENTRIES(gru_backward, gru_cell)
