/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_masked on the CPU. Without mask and bias a row is one of softmax's; with them its scores are computed once,
 * and kept as its exponentials are, or of a row too long for that twice. */
#include "scores.h"
#include "softmax.h"
#include "spec/places/softmax_masked.h"

typedef struct softmax_masked {
    softmax_way way;
    const trine_tensor *x, *mask, *bias, *y;
    int64_t h, sq, n;
    bool causal;
} softmax_masked;

/* A row of scores. Where its bias is one number, that is `plain`, and `bias` NULL. */
typedef struct masked_row {
    const softmax_way *way;
    const void *x, *bias, *next_x;
    const uint8_t *mask;
    float plain;
    trine_dtype of_bias;
} masked_row;

/* What is visible of elements i .. i+m-1, in the order of vload2_as. */
INLINE void masked_seen2(vi seen[2], const uint8_t *mask, int64_t i, int m, trine_dtype order) {
    uint8_t part[2 * VL] = { 0 };
    if (m < 2 * VL) memcpy(part, mask + i, (size_t)m);
    const uint8_t *const from = m < 2 * VL ? part : mask + i;
    if (order == TRINE_BF16) {
        const vi both = __builtin_convertvector(*(const vh_any *)from, vi);
        seen[!LITTLE] = (both & 0xff) != 0;
        seen[LITTLE] = both > 0xff;
    } else {
        seen[0] = vload_u8(from) != 0;
        seen[1] = vload_u8(from + VL) != 0;
    }
}

/* h = f x + bias, -Inf where that is hidden; the largest. NaN may be left aside: they show in the sum. */
INLINE float masked_scores_of(float *h, const masked_row *r, int64_t at, int count, bool masked, bool biased,
                              trine_dtype B, trine_dtype T) {
    const float f = r->way->f, plain = r->plain;
    const void *const x = r->x, *const bias = r->bias;
    vf acc[ROW_ACC];
    for (int k = 0; k < ROW_ACC; k++) acc[k] = vset(-INFINITY);
    ROW_PAIRS(count, j, k, m, {
        vf z[2], b[2] = { vset(plain), vset(plain) };
        vi seen[2];
        row_get2(z, x, T, at + j, m, T);
        if (biased) row_get2(b, bias, B, at + j, m, T);
        if (masked)
            masked_seen2(seen, r->mask, at + j, m, T);
        else
            vfirst2(seen, m, T);
        for (int i = 0; i < 2; i++) {
            z[i] = vfma(z[i], vset(f), b[i]);
            if (masked || m < 2 * VL) z[i] = vsel(seen[i], z[i], vset(-INFINITY));
            *row_vector(h, j + i * VL) = z[i];
            acc[k + i] = vmax(z[i], acc[k + i]);
        }
    });
    for (int k = 1; k < ROW_ACC; k++) acc[0] = vmax(acc[k], acc[0]);
    return vhmax(acc[0]);
}
INLINE void masked_scores_biased(float *max, float *h, const masked_row *r, int64_t at, int count, trine_dtype B,
                                 trine_dtype T) {
    *max = r->mask ? masked_scores_of(h, r, at, count, true, true, B, T)
                   : masked_scores_of(h, r, at, count, false, true, B, T);
}
INLINE void masked_scores_as(float *max, float *h, const masked_row *r, int64_t at, int count, trine_dtype T) {
    if (r->bias && r->of_bias == TRINE_F32)
        masked_scores_biased(max, h, r, at, count, TRINE_F32, T);
    else if (r->bias)
        masked_scores_biased(max, h, r, at, count, T, T);
    else
        *max = r->mask ? masked_scores_of(h, r, at, count, true, false, T, T)
                       : masked_scores_of(h, r, at, count, false, false, T, T);
}
static float masked_scores(float *h, const masked_row *r, int64_t at, int count, trine_dtype dtype) {
    float max;
    FOR_TYPE(dtype, masked_scores_as, &max, h, r, at, count);
    return max;
}

/* h = 2^(spread (h - origin)), while the next row is fetched; the sum. What is beyond the row is -Inf. */
INLINE float masked_exp_as(float *h, int count, float origin, float spread, const void *next, trine_dtype T) {
    vf acc[ROW_ACC] = { 0 };
    ROW_PAIRS(count, j, k, m, {
        row_prefetch2(next, T, j, k);
        for (int i = 0; i < 2; i++) {
            vf *const v = row_vector(h, j + i * VL);
            *v = softmax_exp2(*v - origin, spread);
            acc[k + i] += *v;
        }
    });
    return row_total(acc);
}

INLINE void masked_write_as(const masked_row *r, const float *h, float inverse, void *y, int64_t at, int count,
                            trine_dtype T) {
    const bool stream = r->way->stream && inverse == inverse;
    softmax_write_as(h, inverse, row_sink_at(y, T, at, stream), count, T);
}

/* y, `visible` elements of one piece. */
INLINE float masked_row_as(const masked_row *r, float *h, void *y, int visible, trine_dtype T) {
    if (visible == 0) return 0;
    const float max = masked_scores(h, r, 0, visible, T);
    const float sum = masked_exp_as(h, visible, softmax_origin(max), r->way->spread, r->next_x, T);
    const float inverse = softmax_inverse(sum, r->way);
    masked_write_as(r, h, inverse, y, 0, visible, T);
    return inverse;
}

/* Of a row of several pieces: as softmax_piece_as. */
INLINE void masked_piece_as(const masked_row *r, const parts_row *row, int64_t n, float *h, void *y, int64_t at,
                            int count, double *result, trine_dtype T) {
    float origin = softmax_row_origin(row);
    const bool again = row->pass == SOFTMAX_WRITE && softmax_first_pass(n) == SOFTMAX_BOTH;
    if (row->pass == SOFTMAX_MAX || row->pass == SOFTMAX_BOTH || again) {
        const float max = masked_scores(h, r, at, count, T);
        result[SOFTMAX_TOP] = max;
        if (!again) origin = softmax_origin(max);
    }
    if (row->pass == SOFTMAX_EXP || row->pass == SOFTMAX_BOTH || again)
        result[SOFTMAX_SUM] =
            masked_exp_as(h, count, origin, r->way->spread, (const char *)r->x + at * (int64_t)vsize(T), T);
    if (row->pass == SOFTMAX_WRITE) masked_write_as(r, h, softmax_row_inverse(row, r->way), y, at, count, T);
}

/* What is hidden is 0 in a row of NaN too. */
static void masked_hide(const uint8_t *mask, char *y, int64_t visible, int64_t size) {
    for (int64_t j = 0; j < visible; j++)
        if (mask[j] == 0) memset(y + j * size, 0, (size_t)size);
}

static bool broadcast(const trine_tensor *t, int64_t n) { return n > 1 && t->stride[3] == 0; }

/* The row's mask and bias; false if all of it is hidden. */
static bool masked_row_of(const softmax_masked *a, scores_place at, masked_row *r) {
    if (a->mask) {
        r->mask = scores_row(a->mask, at);
        if (broadcast(a->mask, a->n)) {
            if (r->mask[0] == 0) return false;
            r->mask = NULL;
        }
    }
    if (a->bias) {
        r->bias = scores_row(a->bias, at);
        r->of_bias = a->bias->dtype;
        if (broadcast(a->bias, a->n)) {
            r->plain = sload(r->bias, r->of_bias, 0);
            r->bias = NULL;
        }
    }
    return true;
}

/* The row at a place, and how many of its elements are visible. */
INLINE masked_row masked_row_at(const softmax_masked *a, scores_place at, int64_t *visible_out) {
    masked_row r = { .way = &a->way,
                     .x = scores_row(a->x, at),
                     .next_x = scores_row(a->x, scores_next(at, a->sq)),
                     .of_bias = TRINE_F32 };
    *visible_out = masked_row_of(a, at, &r) ? a->n : 0;
    if (a->causal && *visible_out > 0) *visible_out = row_visible(at.i, a->sq, a->n);
    return r;
}

static void masked_finish(const softmax_masked *a, const masked_row *r, char *y, int64_t visible, float inverse) {
    const int64_t size = (int64_t)vsize(a->y->dtype);
    if (r->mask && inverse != inverse) masked_hide(r->mask, y, visible, size);
    memset(y + visible * size, 0, (size_t)((a->n - visible) * size));
}

INLINE void softmax_masked_row_as(const softmax_masked *a, float *h, scores_place at, trine_dtype T) {
    int64_t visible;
    const masked_row r = masked_row_at(a, at, &visible);
    char *const y = scores_row(a->y, at);
    float inverse = 0;
    if (a->bias || r.mask)
        inverse = masked_row_as(&r, h, y, (int)visible, T);
    else
        softmax_row_as(&a->way, h, r.x, r.next_x, y, (int)visible, T);
    masked_finish(a, &r, y, visible, inverse);
}

static void softmax_masked_part(const void *context, int64_t first, int64_t last, int thread) {
    const softmax_masked *a = context;
    const int64_t chunks = softmax_chunks(a->sq, a->n), rows = softmax_chunk(a->n);
    row_piece h;
    (void)thread;
    for (int64_t c = first; c < last; c++) {
        const int64_t i = c % chunks * rows, end = i + rows < a->sq ? i + rows : a->sq;
        scores_place at = scores_place_of(c / chunks * a->sq, a->h, a->sq);
        for (at.i = i; at.i < end; at.i++) FOR_TYPE(a->x->dtype, softmax_masked_row_as, a, h, at);
    }
    if (a->way.stream) stream_fence();
}

static void begin(const void *op, parts_row *row) {
    const softmax_masked *a = op;
    int64_t visible;
    masked_row_at(a, scores_place_of(row->i, a->h, a->sq), &visible);
    softmax_begin(row, a->n, visible);
}
INLINE void piece_as(const softmax_masked *a, const parts_row *row, int64_t at, int count, float *h, double *result,
                     trine_dtype T) {
    const scores_place place = scores_place_of(row->i, a->h, a->sq);
    int64_t visible;
    const masked_row r = masked_row_at(a, place, &visible);
    if (a->bias || r.mask)
        masked_piece_as(&r, row, a->n, h, scores_row(a->y, place), at, count, result, T);
    else
        softmax_piece_as(&a->way, row, a->n, h, r.x, scores_row(a->y, place), at, count, result, T);
}
static void piece(const void *op, const parts_row *row, int64_t at, int count, float *h, double *result) {
    const softmax_masked *a = op;
    FOR_TYPE(a->x->dtype, piece_as, a, row, at, count, h, result);
}
static void add(const void *op, parts_row *row, const double *result) {
    softmax_add(&((const softmax_masked *)op)->way, row, result);
}
static bool end(const void *op, parts_row *row) {
    const softmax_masked *a = op;
    const scores_place at = scores_place_of(row->i, a->h, a->sq);
    int64_t visible;
    if (softmax_end(row)) return true;
    const masked_row r = masked_row_at(a, at, &visible);
    masked_finish(a, &r, scores_row(a->y, at), visible, softmax_row_inverse(row, &a->way));
    return false;
}

static int64_t matrices_of(const trine_call *call) {
    return call->dim[SOFTMAX_MASKED_DIM_B] * call->dim[SOFTMAX_MASKED_DIM_H];
}

static parts parts_of(const trine_call *call, const softmax_masked *a) {
    const int64_t n = call->dim[SOFTMAX_MASKED_DIM_SK];
    return (parts){ .op = a,
                    .rows = matrices_of(call) * call->dim[SOFTMAX_MASKED_DIM_SQ],
                    .n = n,
                    .bytes = row_bytes(call),
                    .held = softmax_held(n),
                    .in_turn = a && a->causal,
                    .stream = a && a->way.stream,
                    .begin = begin,
                    .piece = piece,
                    .add = add,
                    .end = end };
}

static size_t workspace(const trine_call *call) {
    const parts job = parts_of(call, NULL);
    return job.n > ROW_PIECE ? parts_workspace(call, &job) : 0;
}

static trine_status launch(const trine_call *call) {
    const trine_softmax_masked_args *args = call->args;
    const int64_t matrices = matrices_of(call), sq = call->dim[SOFTMAX_MASKED_DIM_SQ],
                  n = call->dim[SOFTMAX_MASKED_DIM_SK];
    softmax_masked a = {
        .way = softmax_way_of(args->scale, 0, !args->causal && row_streams(call)),
        .x = row_tensor(call, SOFTMAX_MASKED_X),
        .mask = row_tensor(call, SOFTMAX_MASKED_MASK),
        .bias = row_tensor(call, SOFTMAX_MASKED_BIAS),
        .y = row_tensor(call, SOFTMAX_MASKED_Y),
        .h = call->dim[SOFTMAX_MASKED_DIM_H],
        .sq = sq,
        .n = n,
        .causal = args->causal,
    };
    if (a.bias) { /* scores themselves: they are what it is added to */
        a.way.f = args->scale;
        a.way.spread = (float)0x1.71547652b82fep0;
    }
    if (n > ROW_PIECE) {
        const parts job = parts_of(call, &a);
        parts_run(call, &job, call->workspace);
        return TRINE_OK;
    }
    const int team = softmax_team(call, matrices, sq, n);
    if (a.causal) /* rows grow */
        cpu_tasks(call, team, matrices * softmax_chunks(sq, n), softmax_masked_part, &a);
    else
        cpu_shares(call, team, matrices * softmax_chunks(sq, n), softmax_masked_part, &a);
    return TRINE_OK;
}

CPU_KERNELS(softmax_masked) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = softmax_edges },
                                { 0 } };
