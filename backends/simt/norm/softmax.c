/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on devices: the host side. */
#include <math.h>

#include "backends/simt/core/host.h"
#include "softmax.h"
#include "spec/alike.h"
#include "spec/places/softmax.h"

TRINE_ALIKE(SOFTMAX_TYPE_T, SIMT_FIRST_TYPE);

enum { LEAST = 1024 }; /* elements of a row: registers hold so many as fast */

static trine_status launch(const trine_call *call) {
    const trine_softmax_args *args = call->args;
    softmax_params p = {
        .x = simt_rows_of(call, SOFTMAX_X),
        .y = simt_rows_of(call, SOFTMAX_Y),
        .rows = call->dim[SOFTMAX_DIM_G] * call->dim[SOFTMAX_DIM_S],
        .s = call->dim[SOFTMAX_DIM_S],
        .n = call->dim[SOFTMAX_DIM_N],
        .f = args->scale > 0   ? 0.5f
             : args->scale < 0 ? -0.5f
                               : 0,
        .spread = args->scale == 0 ? 1 : (float)(fabs(args->scale) * 0x1.71547652b82fep1),
        .causal = args->causal,
    };
    const bool one_matrix = call->dim[SOFTMAX_DIM_G] == 1 || (p.x.batch == p.s * p.x.row && p.y.batch == p.s * p.y.row);
    const simt_shape *shape = !p.causal && one_matrix ? simt_shape_of(call, SOFTMAX_DIM_N, LEAST, &p.part) : NULL;
    if (!p.causal)
        p.ahead =
            shape != NULL ? simt_ahead_of_parts(call, SOFTMAX_X, shape) : simt_ahead_of(call, SOFTMAX_X); /* a mask hides much of what would be asked for */
    if (shape != NULL) return simt_launch_parts(call, "parts", TRINE_NONE, shape, SOFTMAX_DIM_N, &p.part, p.rows, &p, sizeof p);
    return simt_launch_rows(call, NULL, p.rows, SOFTMAX_DIM_N, SIMT_ONE_ROW, &p, sizeof p);
}

SIMT_KERNELS(softmax) = { { .name = SIMT_NAME, .launch = launch }, { 0 } };
