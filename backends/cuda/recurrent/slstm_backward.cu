/* SPDX-License-Identifier: Apache-2.0 */
/* slstm_backward on CUDA devices. */
#include "backends/simt/recurrent/slstm_backward.inl.h"
#include "backward_wide.h"

CELL_BACKWARD_WIDE_ENTRIES(slstm_backward, slstm_cell)
