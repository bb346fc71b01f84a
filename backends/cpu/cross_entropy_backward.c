/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy_backward on the CPU: probabilities anew from the saved lse, chunk by chunk. */
#include "cross_entropy.h"

enum { LOGITS, LABELS, LSE, DLOSS, DLOGITS }; /* as in the specification */
enum { CHUNK = 4096 };

typedef struct gradient {
    float scale, lse; /* of base 2 */
    float gain, factor, spread;
} gradient;

/* gain (2^(scale x - lse) factor - spread) */
INLINE vf gradient_of(const gradient *g, vf x) {
    const vf p = exp2_of(vfma(x, vset(g->scale), vset(-g->lse)));
    return g->gain * vfma(p, vset(g->factor), vset(-g->spread));
}

INLINE void chunk_gradient(char *y, const char *x, int64_t n, const gradient *shared, trine_dtype type) {
    const gradient g = *shared;
    int64_t k = 0;
    for (; k + 2 * VL <= n; k += 2 * VL) {
        vf value[2];
        vload2(value, x, type, k);
        for (int j = 0; j < 2; j++) value[j] = gradient_of(&g, value[j]);
        vstore2(y, type, k, value);
    }
    for (; k < n; k += VL) {
        const int rest = n - k < VL ? (int)(n - k) : VL;
        vstoren(y, type, k, rest, gradient_of(&g, vloadn(x, type, k, rest, 0)));
    }
}

static void row_chunk(const trine_call *call, int64_t row, int64_t first, int64_t n, int64_t ignore) {
    const trine_cross_entropy_backward_args *args = call->args;
    const trine_tensor *logits = &call->tensor[LOGITS], *dlogits = &call->tensor[DLOGITS];
    const trine_dtype type = logits->dtype;
    const int64_t size = (int64_t)vsize(type), label = label_at(&call->tensor[LABELS], row);
    const char *x = (const char *)logits->data + (row * logits->stride[0] + first) * size;
    char *y = (char *)dlogits->data + (row * dlogits->stride[0] + first) * size;
    if (label == ignore) {
        memset(y, 0, (size_t)(n * size));
        return;
    }
    const float lse = ((const float *)call->tensor[LSE].data)[row];
    const double e = args->label_smoothing, spread = e / (double)call->dim[1];
    gradient g = {
        .scale = base2_scale(args->logit_scale),
        .lse = base2_scale(lse),
        .gain = ((const float *)call->tensor[DLOSS].data)[row] * args->logit_scale,
        .factor = args->z_loss > 0 ? (float)(1 + 2.0 * args->z_loss * lse) : 1.0f, /* not 1 + 0 * Inf */
        .spread = (float)spread,
    };
    const bool here = label >= first && label < first + n;
    const float at_label = here ? sload(x, type, label - first) : 0; /* before it is overwritten in place */
    FOR_TYPE(type, chunk_gradient, y, x, n, &g);
    if (here) {
        g.spread = (float)(1 - e + spread);
        sstore(y, type, label - first, gradient_of(&g, vset(at_label))[0]);
    }
}

typedef struct gradient_rows {
    const trine_call *call;
    int64_t chunks, ignore; /* of a row */
} gradient_rows;

static void gradient_thread(const void *context, int thread, int team) {
    const gradient_rows *g = context;
    const int64_t v = g->call->dim[1];
    int64_t first, last;
    cpu_share(g->call->dim[0] * g->chunks, thread, team, &first, &last);
    for (int64_t task = first; task < last; task++) {
        const int64_t row = task / g->chunks, at = task % g->chunks * CHUNK;
        row_chunk(g->call, row, at, v - at < CHUNK ? v - at : CHUNK, g->ignore);
    }
}

static trine_status launch(const trine_call *call) {
    const trine_cross_entropy_backward_args *args = call->args;
    const int64_t rows = call->dim[0], v = call->dim[1];
    const gradient_rows g = { call, (v + CHUNK - 1) / CHUNK, args->ignore_index_set ? args->ignore_index : -100 };
    const trine_status status = labels_check(call, &call->tensor[LABELS], v, g.ignore);
    if (status != TRINE_OK) return status;
    cpu_parallel(cpu_team(call, rows * g.chunks, rows * v * 2 * (int64_t)vsize(call->tensor[LOGITS].dtype)), gradient_thread, &g);
    return TRINE_OK;
}

CPU_KERNELS(cross_entropy_backward) = { { CPU_NAME, NULL, NULL, launch }, { 0 } };
