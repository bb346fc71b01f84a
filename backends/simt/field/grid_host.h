/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that hash_encode and its gradient share. */
#ifndef TRINE_SIMT_FIELD_GRID_HOST_H
#define TRINE_SIMT_FIELD_GRID_HOST_H

#include "backends/simt/core/host.h"
#include "grid.h"

/* y: n l f. */
static inline grid_params grid_params_of(const trine_call *call, int x, int table, int offsets, int y,
                                         float per_level_scale, int32_t base_resolution) {
    const trine_tensor *t = call->tensor;
    grid_params p = {
        .x = simt_rows_of(call, x),
        .table = simt_rows_of(call, table),
        .y = { t[y].data, t[y].stride[0], t[y].stride[1] },
        .offsets = t[offsets].data,
        .n = t[y].shape[0],
        .e = t[table].shape[0],
        .f = t[y].shape[2],
        .l = t[y].shape[1],
        .places = simt_divisor_of(t[y].shape[0] + (t[y].shape[0] == 0)),
        .wide_offsets = t[offsets].dtype == TRINE_I64,
    };
    grid_scales(base_resolution, per_level_scale, p.l, p.scale);
    return p;
}

#endif
