/* SPDX-License-Identifier: Apache-2.0 */
/* slstm on CUDA devices. */
#include "backends/simt/recurrent/slstm.inl.h"
#include "forward_wide.h"

CELL_WIDE_ENTRIES(slstm, slstm_cell)
