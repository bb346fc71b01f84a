/* SPDX-License-Identifier: Apache-2.0 */
/* elman on CUDA devices. */
#include "backends/simt/recurrent/elman.inl.h"
#include "forward_wide.h"

CELL_WIDE_ENTRIES(elman, elman_cell)
