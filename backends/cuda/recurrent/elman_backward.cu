/* SPDX-License-Identifier: Apache-2.0 */
/* elman_backward on CUDA devices. */
#include "backends/simt/recurrent/elman_backward.inl.h"
#include "backward_wide.h"

CELL_BACKWARD_WIDE_ENTRIES(elman_backward, elman_cell)
