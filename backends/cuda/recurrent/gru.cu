/* SPDX-License-Identifier: Apache-2.0 */
/* gru on CUDA devices. */
#include "backends/simt/recurrent/gru.inl.h"
#include "forward_wide.h"

CELL_WIDE_ENTRIES(gru, gru_cell)
