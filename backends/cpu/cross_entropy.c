/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on the CPU: each row in chunks that fit the L1 cache, whose sums are then put together in order. */
#include "labels.h"
#include "vec_math.h"

enum { LOGITS, LABELS, LOSS, LSE };      /* as in the specification */
enum { CHUNK = 4096, SAMPLE = 64 };      /* elements of a row per task; of a chunk to guess its maximum from */
#define FAR 16.0f                        /* how far the guess may be below the maximum */

/* sum exp(z - origin) and sum z over a chunk. +inf among the z gives sum = +inf, origin = FLT_MAX; nothing but -inf gives sum = 0. */
typedef struct part {
    float origin, sum, total;
} part;

/* acc + e^x for x below 80; results below 2^-126 count as 0. Error below 2 ulp, and |x| 2^-28 for the constant. */
INLINE vf add_exp(vf acc, vf x) {
    const vf magic = vset(0x1.8p23f + 127); /* adding it rounds to an integer, biased as an exponent is, in the low bits */
    const vf bounded = vmax(vset(-88.0f), x);
    const vf t = vfma(bounded, vset(1.44269504f), magic);
    const vf r = vfma(t - magic, vset(-0.693147181f), bounded);
    vf p = vset(8.31252057e-3f);
    p = vfma(p, r, vset(4.18901555e-2f));
    p = vfma(p, r, vset(1.66671142e-1f));
    p = vfma(p, r, vset(4.99992311e-1f));
    p = vfma(p, r, vset(1.0f));
    p = vfma(p, r, vset(1.0f));
    return vfma(p, (vf)((vi)t << 23), acc);
}

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

INLINE float bounded(float x) { return x > 0x1.fffffep127f ? 0x1.fffffep127f : x < -0x1.fffffep127f ? -0x1.fffffep127f : x; }

/* Sums around out->origin; returns by how much the maximum exceeds it. */
INLINE float chunk_sums(const char *x, int64_t n, float scale, bool totals, part *out, trine_dtype type) {
    const vf origin = vset(-out->origin), s = vset(scale);
    vf max[4], sum[4], total[4];
    for (int j = 0; j < 4; j++) max[j] = vset(-INFINITY), sum[j] = vzero(), total[j] = vzero();
    int64_t k = 0;
    for (; k + 4 * VL <= n; k += 4 * VL)
        for (int j = 0; j < 4; j++) {
            const vf value = vload(x, type, k + j * VL), d = vfma(value, s, origin);
            max[j] = vmax(d, max[j]);
            sum[j] = add_exp(sum[j], d);
            if (totals) total[j] += value * s;
        }
    for (; k < n; k += VL) {
        const int rest = n - k < VL ? (int)(n - k) : VL;
        const vi inside = viota() < rest;
        const vf value = vloadn(x, type, k, rest, 0), d = vsel(inside, vfma(value, s, origin), vset(-INFINITY));
        max[0] = vmax(d, max[0]);
        sum[0] = add_exp(sum[0], d);
        if (totals) total[0] += vsel(inside, value * s, vzero());
    }
    out->sum = vhsum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    out->total = vhsum((total[0] + total[1]) + (total[2] + total[3]));
    return vhmax(vmax(vmax(max[0], max[1]), vmax(max[2], max[3])));
}

INLINE void chunk_part(const char *x, int64_t n, float scale, bool totals, part *out, trine_dtype type) {
    out->origin = bounded(chunk_max(x, n < SAMPLE ? n : SAMPLE, scale, type));
    if (chunk_sums(x, n, scale, totals, out, type) <= FAR) return;
    const float max = chunk_max(x, n, scale, type);
    out->origin = bounded(max);
    chunk_sums(x, n, scale, totals, out, type);
    if (max != INFINITY) return;
    out->sum = INFINITY;
    for (int64_t k = 0; k < n; k++)
        if (isnan(sload(x, type, k))) out->sum = NAN;
}

/* The two halves of a row's work with the element type and the smoothing made constant. */
static void row_chunk(const trine_tensor *logits, int64_t row, int64_t first, int64_t n, float scale, bool totals, part *out) {
    const trine_dtype type = logits->dtype;
    const char *x = (const char *)logits->data + (row * logits->stride[0] + first) * (int64_t)vsize(type);
    if (totals)
        FOR_TYPE(type, chunk_part, x, n, scale, true, out);
    else
        FOR_TYPE(type, chunk_part, x, n, scale, false, out);
}

static void row_finish(const trine_call *call, int64_t row, int64_t y, int64_t ignore, const part *parts, int64_t chunks) {
    const trine_cross_entropy_args *args = call->args;
    const trine_tensor *logits = &call->tensor[LOGITS];
    float origin = -0x1.fffffep127f;
    for (int64_t c = 0; c < chunks; c++)
        if (parts[c].origin > origin) origin = parts[c].origin;
    double sum = 0, total = 0;
    for (int64_t c = 0; c < chunks; c++) {
        sum += parts[c].origin == origin ? parts[c].sum : parts[c].sum * exp((double)parts[c].origin - origin);
        total += parts[c].total;
    }
    const double lse = origin + log(sum);
    if (call->present & 1u << LSE) ((float *)call->tensor[LSE].data)[row] = (float)lse;
    double loss = 0;
    if (y != ignore) {
        const double e = args->label_smoothing, w = args->z_loss;
        const float z = sload(logits->data, logits->dtype, row * logits->stride[0] + y) * args->logit_scale;
        loss = lse - (1 - e) * z;
        if (e > 0) loss -= e * (total / (double)call->dim[1]);
        if (w > 0) loss += w * lse * lse;
    }
    ((float *)call->tensor[LOSS].data)[row] = (float)loss;
}

static int64_t chunks_of(const trine_call *call) { return (call->dim[1] + CHUNK - 1) / CHUNK; }

static size_t workspace(const trine_call *call) {
    return chunks_of(call) <= 1 ? 0 : (size_t)(call->dim[0] * chunks_of(call)) * sizeof(part);
}

static trine_status launch(const trine_call *call) {
    const trine_cross_entropy_args *args = call->args;
    const int64_t rows = call->dim[0], v = call->dim[1], chunks = chunks_of(call), ignore = args->ignore_index_set ? args->ignore_index : -100;
    const trine_tensor *logits = &call->tensor[LOGITS], *labels = &call->tensor[LABELS];
    const bool need_lse = call->present & 1u << LSE, totals = args->label_smoothing > 0;
    part *parts = call->workspace;

    const trine_status status = labels_check(call, labels, v, ignore);
    if (status != TRINE_OK) return status;
    const int team = cpu_team(call, rows * (chunks > 0 ? chunks : 1), rows * (v + 1) * (int64_t)vsize(logits->dtype));
#pragma omp parallel num_threads(team)
    {
        int64_t first, last;
        if (chunks > 1) {
            cpu_share(rows * chunks, omp_get_thread_num(), omp_get_num_threads(), &first, &last);
            for (int64_t task = first; task < last; task++) {
                const int64_t row = task / chunks, at = task % chunks * CHUNK;
                if (need_lse || label_at(labels, row) != ignore)
                    row_chunk(logits, row, at, v - at < CHUNK ? v - at : CHUNK, args->logit_scale, totals, &parts[task]);
                else
                    parts[task] = (part){ 0 };
            }
#pragma omp barrier
        }
        cpu_share(rows, omp_get_thread_num(), omp_get_num_threads(), &first, &last);
        for (int64_t row = first; row < last; row++) {
            const int64_t y = label_at(labels, row);
            part one = { 0 };
            if (chunks == 1 && (need_lse || y != ignore)) row_chunk(logits, row, 0, v, args->logit_scale, totals, &one);
            row_finish(call, row, y, ignore, chunks > 1 ? parts + row * chunks : &one, chunks);
        }
    }
    return TRINE_OK;
}

CPU_KERNELS(cross_entropy) = { { CPU_NAME, NULL, workspace, launch }, { 0 } };
