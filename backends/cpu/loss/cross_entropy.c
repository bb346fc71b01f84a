/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on the CPU: each row in chunks that fit the L1 cache, whose sums are then put together in order. The gradient of a row is written while its
 * logits are in the cache, if there are rows for all threads. */
#include "cross_entropy.h"
#include "spec/places/cross_entropy.h"

enum { CHUNK = 4096, SAMPLE = 64 }; /* elements of a row per task; of a chunk to estimate its maximum from */
#define FAR 0x1p23f                 /* a sum of powers up to here has none more than 23 (16 to base e) above the estimate */

/* Of a chunk, with z = x times the scale of base 2: sum 2^(z - origin), and the sum of x. */
typedef struct part {
    float origin, sum, total;
} part;

/* The chunk's maximum of scale*x; NaN is passed over. */
INLINE float chunk_max(const char *x, int64_t n, float scale, trine_dtype type) {
    vf max = vset(-INFINITY);
    int64_t k = 0;
    for (; k + VL <= n; k += VL) max = vmax(vload(x, type, k) * scale, max);
    if (k < n) {
        const int rest = (int)(n - k);
        max = vmax(vsel(viota() < rest, vloadn(x, type, k, rest, 0) * scale, max), max);
    }
    return vhmax(max);
}

/* Without `clamp` false is returned unless every power was within reach of exp2_near, and the sums are void. */
INLINE bool chunk_sums(const char *x, int64_t n, float scale, bool totals, bool clamp, part *out, trine_dtype type) {
    const vf origin = vset(-out->origin), s = vset(scale);
    vf sum = vzero(), total = vzero();
    vu high = { 0 };
    int64_t k = 0;
    for (; k + 2 * VL <= n; k += 2 * VL) {
        vf value[2];
        vload2(value, x, type, k);
        if (totals) total += value[0] + value[1];
        for (int j = 0; j < 2; j++) value[j] = vfma(value[j], s, origin);
        if (clamp)
            sum += exp2_of(value[0]) + exp2_of(value[1]);
        else
            sum += exp2_near(value[0]) + exp2_near(value[1]);
        if (!clamp) vabs2(&high, x, type, k);
    }
    for (; k < n; k += VL) {
        const int rest = n - k < VL ? (int)(n - k) : VL;
        const vf value = vloadn(x, type, k, rest, 0);
        sum += exp2_of(vsel(viota() < rest, vfma(value, s, origin), vset(-INFINITY)));
        if (totals) total += value;
    }
    out->sum = vhsum(sum);
    out->total = vhsum(total);
    return clamp || vabs2_bound(high, type) * fabsf(scale) + fabsf(out->origin) <= 126;
}

INLINE float to_finite(float x) { return x > 0x1.fffffep127f ? 0x1.fffffep127f : x < -0x1.fffffep127f ? -0x1.fffffep127f : x; }

/* One pass if no element is extreme and the maximum of the first ones is near that of all. +inf among z gives the sum +inf; nothing but -inf gives 0; NaN
 * gives NaN. */
INLINE void chunk_part(const char *x, int64_t n, float scale, bool totals, part *out, trine_dtype type) {
    out->origin = to_finite(chunk_max(x, n < SAMPLE ? n : SAMPLE, scale, type));
    if (!chunk_sums(x, n, scale, totals, false, out, type)) chunk_sums(x, n, scale, totals, true, out, type);
    if (!(out->sum > FAR)) return;
    out->origin = to_finite(chunk_max(x, n, scale, type));
    chunk_sums(x, n, scale, totals, true, out, type);
}

/* With the element type and the smoothing made constant. */
static void row_chunk(const trine_tensor *logits, int64_t row, int64_t first, int64_t n, float scale, bool totals, part *out) {
    const trine_dtype type = logits->dtype;
    const char *x = (const char *)logits->data + (row * logits->stride[0] + first) * (int64_t)vsize(type);
    if (totals)
        FOR_TYPE(type, chunk_part, x, n, scale, true, out);
    else
        FOR_TYPE(type, chunk_part, x, n, scale, false, out);
}

/* Puts a row's chunks together, in float64, which costs nothing here. Its lse is returned. */
static float row_finish(const trine_call *call, int64_t row, int64_t y, int64_t ignore, const part *parts, int64_t chunks) {
    const trine_cross_entropy_args *args = call->args;
    const trine_tensor *logits = &call->tensor[CROSS_ENTROPY_LOGITS];
    const double ln2 = 0.69314718055994531, scale = base2_scale(args->logit_scale) * ln2;
    double origin = -INFINITY, sum = 0, total = 0;
    for (int64_t c = 0; c < chunks; c++)
        if (parts[c].origin > origin) origin = parts[c].origin;
    for (int64_t c = 0; c < chunks; c++) {
        sum += parts[c].origin == origin ? parts[c].sum : parts[c].sum * exp2(parts[c].origin - origin);
        total += parts[c].total;
    }
    const double lse = chunks > 0 ? (origin + log2(sum)) * ln2 : -INFINITY;
    if (call->present & 1u << CROSS_ENTROPY_LSE) ((float *)call->tensor[CROSS_ENTROPY_LSE].data)[row] = (float)lse;
    double loss = 0;
    if (y != ignore) {
        const double e = args->label_smoothing, w = args->z_loss;
        loss = lse - (1 - e) * (scale * sload(logits->data, logits->dtype, row * logits->stride[0] + y));
        if (e > 0) loss -= e * (scale * total / (double)call->dim[CROSS_ENTROPY_DIM_V]);
        if (w > 0) loss += w * lse * lse;
    }
    ((float *)call->tensor[CROSS_ENTROPY_LOSS].data)[row] = (float)loss;
    return (float)lse;
}

static int64_t chunks_of(const trine_call *call) { return (call->dim[CROSS_ENTROPY_DIM_V] + CHUNK - 1) / CHUNK; }
static bool given(const trine_call *call, int tensor) { return call->present >> tensor & 1; }

/* Of rows of several chunks: their parts, and for gradients the lse of each. */
static size_t workspace(const trine_call *call) {
    if (chunks_of(call) <= 1) return 0;
    return (size_t)call->dim[CROSS_ENTROPY_DIM_R] * ((size_t)chunks_of(call) * sizeof(part) + (given(call, CROSS_ENTROPY_DLOGITS) ? sizeof(float) : 0));
}

typedef struct losses {
    const trine_call *call;
    const trine_tensor *logits, *labels;
    int64_t rows, v, chunks, ignore;
    bool need_lse, totals, gradient;
    float scale;
    part *parts; /* of rows of several chunks */
    float *lse;  /* of those, for gradients */
    gradient_rows gradients;
} losses;

static int64_t chunk_length(const losses *l, int64_t at) { return l->v - at < CHUNK ? l->v - at : CHUNK; }

/* Of a row whose loss, lse or gradient is asked for. */
static void loss_chunk(const losses *l, int64_t row, int64_t at, part *out) {
    *out = (part){ 0 };
    if (l->need_lse || label_at(l->labels, row) != l->ignore) row_chunk(l->logits, row, at, chunk_length(l, at), l->scale, l->totals, out);
}

static void loss_row(const losses *l, int64_t row, const part *parts) {
    const float lse = row_finish(l->call, row, label_at(l->labels, row), l->ignore, parts, l->chunks);
    if (l->gradient && l->chunks > 1) l->lse[row] = lse;
    if (l->gradient && l->chunks == 1) gradient_chunk(&l->gradients, row, lse, 0, l->v);
}

/* Rows of one chunk, or rows enough that none need be shared: each from end to end. */
static void whole_rows(const losses *l, int64_t first, int64_t last) {
    for (int64_t row = first; row < last; row++) {
        part one;
        part *parts = l->chunks > 1 ? l->parts + row * l->chunks : &one;
        for (int64_t c = 0; c < l->chunks; c++) loss_chunk(l, row, c * CHUNK, parts + c);
        loss_row(l, row, parts);
        for (int64_t c = 0; l->gradient && l->chunks > 1 && c < l->chunks; c++)
            gradient_chunk(&l->gradients, row, l->lse[row], c * CHUNK, chunk_length(l, c * CHUNK));
    }
}

static void loss_thread(const void *context, int thread, int team) {
    const losses *l = context;
    int64_t first, last, first_task, last_task;
    cpu_share(l->rows, thread, team, &first, &last);
    if (l->chunks <= 1 || (l->gradient && l->rows >= team)) {
        whole_rows(l, first, last);
        return;
    }
    cpu_share(l->rows * l->chunks, thread, team, &first_task, &last_task);
    for (int64_t task = first_task; task < last_task; task++) loss_chunk(l, task / l->chunks, task % l->chunks * CHUNK, &l->parts[task]);
    cpu_barrier(team);
    for (int64_t row = first; row < last; row++) loss_row(l, row, l->parts + row * l->chunks);
    if (!l->gradient) return;
    cpu_barrier(team);
    for (int64_t task = first_task; task < last_task; task++) {
        const int64_t row = task / l->chunks, at = task % l->chunks * CHUNK;
        gradient_chunk(&l->gradients, row, l->lse[row], at, chunk_length(l, at));
    }
}

static losses losses_of(const trine_call *call) {
    const trine_cross_entropy_args *args = call->args;
    const int64_t chunks = chunks_of(call), ignore = args->ignore_index_set ? args->ignore_index : -100;
    part *const parts = call->workspace;
    return (losses){
        .call = call,
        .logits = &call->tensor[CROSS_ENTROPY_LOGITS],
        .labels = &call->tensor[CROSS_ENTROPY_LABELS],
        .rows = call->dim[CROSS_ENTROPY_DIM_R],
        .v = call->dim[CROSS_ENTROPY_DIM_V],
        .chunks = chunks,
        .ignore = ignore,
        .need_lse = given(call, CROSS_ENTROPY_LSE),
        .totals = args->label_smoothing > 0,
        .gradient = given(call, CROSS_ENTROPY_DLOGITS),
        .scale = base2_scale(args->logit_scale),
        .parts = parts,
        .lse = chunks > 1 ? (float *)(parts + call->dim[CROSS_ENTROPY_DIM_R] * chunks) : NULL,
        .gradients = { .logits = &call->tensor[CROSS_ENTROPY_LOGITS],
                       .labels = &call->tensor[CROSS_ENTROPY_LABELS],
                       .dloss = given(call, CROSS_ENTROPY_DLOSS) ? &call->tensor[CROSS_ENTROPY_DLOSS] : NULL,
                       .dlogits = &call->tensor[CROSS_ENTROPY_DLOGITS],
                       .v = call->dim[CROSS_ENTROPY_DIM_V],
                       .ignore = ignore,
                       .smoothing = args->label_smoothing,
                       .scale = args->logit_scale,
                       .z_loss = args->z_loss },
    };
}

static trine_status launch(const trine_call *call) {
    const losses l = losses_of(call);
    const trine_status status = labels_check(call, l.labels, l.v, l.ignore);
    if (status != TRINE_OK) return status;
    const int64_t tensors = l.gradient ? 2 : 1, bytes = l.rows * (l.v + 1) * (int64_t)vsize(l.logits->dtype) * tensors;
    cpu_parallel(cpu_team(call, l.rows * (l.chunks > 1 ? l.chunks : 1), bytes), loss_thread, &l);
    return TRINE_OK;
}

CPU_KERNELS(cross_entropy) = { { CPU_NAME, NULL, workspace, launch }, { 0 } };
