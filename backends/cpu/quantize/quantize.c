/* SPDX-License-Identifier: Apache-2.0 */
/* quantize on the CPU: a group is read twice, for its range and for its codes; few long ones are shared by threads.
 * Products are by powers of two, so that it does not matter what they are fused to. */
#include "codes.h"
#include "backends/cpu/core/parts.h"
#include "backends/cpu/core/philox.h"
#include "spec/places/quantize.h"

/* How codes are rounded: to the nearest, from the middle to even, away from 0 or toward it; or by chance. */
typedef enum way { EVEN, AWAY, ZERO, CHANCE } way;

typedef struct job {
    const trine_call *call;
    int64_t k, n, groups; /* of a row, of a group; in a row */
    int bits;
    bool e2m1, symmetric, upward;
    way way;
    int32_t powers;
    float deviations;
    trine_dtype type;        /* of codes */
    float offset, low, high; /* the values there are */
    dropout chances;
} job;

typedef struct grid {
    float scale, base; /* scale 0: q is 0 */
} grid;

static job job_of(const trine_call *call) {
    const trine_quantize_args *args = call->args;
    const int64_t k = call->dim[QUANTIZE_DIM_K], groups = call->dim[QUANTIZE_DIM_GROUPS];
    const bool sign = call->type[QUANTIZE_TYPE_C] == TRINE_I8;
    job b = { .call = call,
              .k = k,
              .n = groups > 0 ? k / groups : 0,
              .groups = groups,
              .bits = k > 0 ? (int)(8 * call->dim[QUANTIZE_DIM_BYTES] * groups / k) : 8,
              .e2m1 = args->format == TRINE_CODES_E2M1,
              .symmetric = !(call->present >> QUANTIZE_ZEROS & 1),
              .upward = args->upward,
              .way = args->stochastic                ? CHANCE
                     : args->ties == TRINE_TIES_AWAY ? AWAY
                     : args->ties == TRINE_TIES_ZERO ? ZERO
                                                     : EVEN,
              .powers = args->powers,
              .deviations = args->deviations,
              .type = call->type[QUANTIZE_TYPE_C],
              .offset = (float)args->offset,
              .chances = dropout_of(0, args->seed, args->stream) };
    const int half = sign ? 1 << (b.bits - 1) : 0;
    b.low = b.e2m1 ? -6 : (float)-half;
    b.high = b.e2m1 ? 6 : (float)((1 << b.bits) - 1 - half);
    if (b.type == TRINE_E4M3 || b.type == TRINE_E5M2) {
        b.high = b.type == TRINE_E4M3 ? 448 : 57344;
        b.low = -b.high;
    }
    return b;
}

static float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/* Of numbers and 0, lane by lane: the largest size, as bits, so that Inf is above all numbers and NaN above Inf. */
typedef struct range {
    vi size;
    vf min, max;
} range;

INLINE void widen(range *r, vf x) {
    const vi bits = (vi)vabs(x);
    r->size = visel(bits > r->size, bits, r->size);
    r->min = vmin(x, r->min);
    r->max = vmax(x, r->max);
}

INLINE range range_of(const void *row, int64_t at, int64_t n, trine_dtype T) {
    range r = { { 0 }, { 0 }, { 0 } }, other = r;
    for (; n >= 2 * VL; n -= 2 * VL, at += 2 * VL) {
        widen(&r, vload(row, T, at));
        widen(&other, vload(row, T, at + VL));
    }
    if (n >= VL) {
        widen(&other, vload(row, T, at));
        n -= VL, at += VL;
    }
    if (n > 0) widen(&r, vloadn(row, T, at, (int)n, 0));
    return (range){ visel(other.size > r.size, other.size, r.size), vmin(other.min, r.min), vmax(other.max, r.max) };
}

/* The same of all lanes. */
typedef struct extent {
    int32_t size;
    float least, most;
} extent;

INLINE extent extent_of(const void *row, int64_t at, int64_t n, trine_dtype T) {
    const range r = range_of(row, at, n, T);
    extent e = { 0, -vhmax(-r.min), vhmax(r.max) };
    for (int i = 0; i < VL; i++)
        if (r.size[i] > e.size) e.size = r.size[i];
    return e;
}

/* The sum of 32 parts by neighbours. */
static double by_pairs(double part[32]) {
    for (int step = 1; step < 32; step *= 2)
        for (int i = 0; i < 32; i += 2 * step) part[i] += part[i + step];
    return part[0];
}

/* The scale of finite numbers that is fitted to their standard deviation. Products in f64 are exact, fused or not. */
INLINE float fitted(const job *b, const void *row, int64_t first, float most, trine_dtype T) {
    double sum[32] = { 0 }, squares[32] = { 0 };
    for (int64_t j = 0; j < b->n; j++) {
        const double x = (double)sload(row, T, first + j);
        sum[j % 32] += x;
        squares[j % 32] += x * x;
    }
    const double count = b->n > 0 ? (double)b->n : 1, mean = (double)(float)(by_pairs(sum) / count),
                 variance = by_pairs(squares) / count - mean * mean,
                 std = (double)(float)(variance > 0 ? sqrt(variance) : 0);
    const int exponent = ilogb((double)(b->deviations / most) * std + 1e-8);
    return e8m0_read((uint8_t)(127 + (exponent < -127 ? -127 : exponent > 127 ? 127 : exponent)));
}

INLINE grid find_grid(const job *b, extent e, const void *row, int64_t first, int64_t i, int64_t g, trine_dtype T) {
    const bool wild = e.size >= 0x7f800000;
    const float below = e.least < 0 ? e.least : 0, above = e.most > 0 ? e.most : 0, low = b->low - b->offset,
                high = b->high - b->offset;
    const float size = -below > above ? -below : above, top = high > 1 ? high : 1;
    float scale = wild ? NAN : b->symmetric ? size / top : above / (high - low) - below / (high - low);
    const trine_tensor *scales = &b->call->tensor[QUANTIZE_SCALES];
    grid found = { .base = b->offset };
    if (b->powers == TRINE_POWERS_FITTED && b->symmetric && !wild)
        found.scale =
            codes_put_number(scales, i, g, codes_power_within(fitted(b, row, first, top, T), scales->dtype), true);
    else
        found.scale =
            codes_put_scale(scales, i, g, b->powers != TRINE_POWERS_E8M0, size, top, scale, b->upward || !b->symmetric);
    if (!(found.scale > 0)) found.scale = 0;
    if (b->symmetric) return found;
    const float steps = found.scale > 0 ? rintf(below / found.scale) : 0;
    found.base += codes_put_number(&b->call->tensor[QUANTIZE_ZEROS], i, g, clamp(low - steps, low, high), false);
    return found;
}

/* The nearest whole numbers; from the middle away from 0 or toward it: their sizes are, and then have their signs. */
INLINE vi round_halves(vf x, bool away) {
    const vf size = vabs(x);
    const vi whole = __builtin_convertvector(size, vi);
    const vf part = size - __builtin_convertvector(whole, vf);
    const vi nearest = whole - (away ? part >= 0.5f : part > 0.5f), negative = x < 0;
    return (nearest ^ negative) - negative;
}

/* Whole numbers, by the words of the elements if by chance. */
INLINE vi round_codes(vf x, const int32_t *word, way way) {
    if (way == AWAY || way == ZERO) return round_halves(x, way == AWAY);
    if (way != CHANCE) return (vi)(x + CODES_WHOLE) - (vi)vset(CODES_WHOLE);
    vi whole = __builtin_convertvector(x, vi);
    whole += __builtin_convertvector(whole, vf) > x;
    const vf part = x - __builtin_convertvector(whole, vf);
    const vf w = __builtin_convertvector((vi)(*(const vi_any *)word), vf) + 0.5f;
    return whole - (w < part * 0x1p23f);
}

INLINE vi codes_e2m1(vf x, const int32_t *word, way way) {
    const vf size = vabs(x);
    const vi small = size < 2, middle = size < 4;
    const vf scaled = size * vsel(small, vset(2), vsel(middle, vset(1), vset(0.5f)));
    const vi code = round_codes(scaled, word, way) + visel(small, viset(0), visel(middle, viset(2), viset(4)));
    return code | ((x < 0) & (code > 0) & 8);
}

/* But to even: in steps of 2^-fraction times the power of two below, or below the smallest normal. */
INLINE vi codes_float8(vf x, const int32_t *word, trine_dtype type, way way) {
    const vi lowest = viset((type == TRINE_E4M3 ? 121 : 113) << 23),
             fraction = viset((type == TRINE_E4M3 ? 3 : 2) << 23);
    vf y = x;
    if (way != EVEN) {
        const vi power = (vi)vabs(x) & 0x7f800000, step = visel(power > lowest, power, lowest) - fraction;
        const vi whole = round_codes(vabs(x) * (vf)(viset(254 << 23) - step), word, way);
        y = (vf)((vi)(__builtin_convertvector(whole, vf) * (vf)step) | ((vi)x & viset(INT32_MIN)));
    }
    return vb_widen(vf_to_float8(y, type, true));
}

enum { RUN = DROPOUT_RUN - 2 * CODES_UNIT }; /* elements whose words are made at once: a run may begin anywhere */
_Static_assert(RUN % CODES_UNIT == 0, "whole units");

/* What rounds elements first .. first+count-1: readable to the next whole unit. */
static const int32_t *words_of(const dropout *d, uint64_t first, int count, int32_t buffer[DROPOUT_BUFFER]) {
    const int skip = (int)(first % 8);
    for (int i = 0; i < skip + count; i += 8 * VL) {
        vu word[8];
        philox_words(d, first / 8 + (uint64_t)(i / 8), word);
        for (int e = 0; e < 8; e++) word[e] >>= 9;
        philox_interleave(word, buffer + i);
    }
    return buffer + skip;
}

typedef struct rounding {
    vf scale, base, low, high;
    vi shift, live; /* live: no bits where q is 0 */
    bool e2m1;
    way way;
    trine_dtype type;
} rounding;

INLINE rounding rounding_of(const job *b, grid g, way way) {
    return (rounding){ .scale = vset(g.scale),
                       .base = vset(g.base),
                       .low = vset(b->low - g.base),
                       .high = vset(b->high - g.base),
                       .shift = viset((int32_t)g.base),
                       .live = viset(g.scale > 0 ? -1 : 0),
                       .e2m1 = b->e2m1,
                       .way = way,
                       .type = b->type };
}

/* `count` elements from `at` on. */
INLINE void put_unit(rounding r, const void *row, int64_t at, int count, uint8_t *to, const int32_t *word,
                     trine_dtype T, int bits) {
    vi code[CODES_VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < CODES_VECTORS; v++) {
        const int left = count - v * VL;
        const vf x = left >= VL  ? vload(row, T, at + v * VL)
                     : left <= 0 ? vzero()
                                 : vloadn(row, T, at + v * VL, left, 0);
        const vf q = vmin(vmax((vf)((vi)(x / r.scale) & r.live), r.low), r.high);
        const int32_t *w = r.way == CHANCE ? word + v * VL : NULL;
        code[v] = r.type == TRINE_E4M3   ? codes_float8(q + r.base, w, TRINE_E4M3, r.way)
                  : r.type == TRINE_E5M2 ? codes_float8(q + r.base, w, TRINE_E5M2, r.way)
                  : r.e2m1               ? codes_e2m1(q + r.base, w, r.way)
                                         : round_codes(q, w, r.way) + r.shift;
    }
    codes_store(to, count, bits, codes_narrow(code));
}

INLINE void put_codes(rounding r, const void *row, int64_t at, int64_t count, uint8_t *to, const int32_t *word,
                      trine_dtype T, int bits) {
    for (; count >= CODES_UNIT; count -= CODES_UNIT, at += CODES_UNIT, to += CODES_UNIT / 8 * bits, word += CODES_UNIT)
        put_unit(r, row, at, CODES_UNIT, to, word, T, bits);
    if (count > 0) put_unit(r, row, at, (int)count, to, word, T, bits);
}

/* Row i. */
static const char *row_of(const job *b, int64_t i) {
    const trine_tensor *x = &b->call->tensor[QUANTIZE_X];
    return (const char *)x->data + i * x->stride[0] * (int64_t)trine_dtype_size(x->dtype);
}

/* `count` elements of group `at` of row i, from `first` on. */
typedef struct stretch {
    int64_t i, at, first, count;
} stretch;

INLINE void put_as(const job *b, grid g, const stretch *s, way way, trine_dtype T, int bits) {
    const char *row = row_of(b, s->i);
    const int64_t first = s->at * b->n + s->first;
    uint8_t *to = (uint8_t *)codes_at(&b->call->tensor[QUANTIZE_CODES], s->i, s->at) + s->first / 8 * bits;
    int32_t buffer[DROPOUT_BUFFER + CODES_UNIT];
    const rounding r = rounding_of(b, g, way);
    if (way != CHANCE) {
        put_codes(r, row, first, s->count, to, buffer, T, bits);
        return;
    }
    for (int64_t j = 0; j < s->count; j += RUN) {
        const int run = s->count - j < RUN ? (int)(s->count - j) : RUN;
        const int32_t *word = words_of(&b->chances, (uint64_t)(s->i * b->k + first + j), run, buffer);
        put_codes(r, row, first + j, run, to + j / 8 * bits, word, T, bits);
    }
}

INLINE void put_bits(const job *b, grid g, const stretch *s, way way, trine_dtype T) {
    CODES_FOR_BITS(b->bits, put_as, b, g, s, way, T);
}

/* One function for each way: one of all is longer than a jump reaches on RISC-V, 1 MiB. */
static __attribute__((noinline)) void put_even(const job *b, grid g, const stretch *s) {
    FOR_TYPE(b->call->tensor[QUANTIZE_X].dtype, put_bits, b, g, s, EVEN);
}
static __attribute__((noinline)) void put_halves(const job *b, grid g, const stretch *s) {
    FOR_TYPE(b->call->tensor[QUANTIZE_X].dtype, put_bits, b, g, s, b->way == AWAY ? AWAY : ZERO);
}
static __attribute__((noinline)) void put_by_chance(const job *b, grid g, const stretch *s) {
    FOR_TYPE(b->call->tensor[QUANTIZE_X].dtype, put_bits, b, g, s, CHANCE);
}

static void put_some(const job *b, grid g, stretch s) {
    (b->way == EVEN ? put_even : b->way == CHANCE ? put_by_chance : put_halves)(b, g, &s);
}

INLINE void group(const job *b, int64_t i, int64_t g, trine_dtype T) {
    const char *row = row_of(b, i);
    const grid found = find_grid(b, extent_of(row, g * b->n, b->n, T), row, g * b->n, i, g, T);
    put_some(b, found, (stretch){ i, g, 0, b->n });
}

static void some(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    (void)thread;
    for (int64_t item = first; item < last; item++)
        FOR_TYPE(b->call->tensor[QUANTIZE_X].dtype, group, b, item / b->groups, item % b->groups);
}

/* ---------------------------------------------------------------------------------------- groups of several pieces */

enum { RANGE, CODES };                           /* passes */
enum { SIZE, LEAST, MOST, SCALE = 0, BASE = 1 }; /* numbers of a group: of the one pass, then of the other */

INLINE void piece_as(const job *b, const parts_row *of, int64_t at, int count, double *result, trine_dtype T) {
    const int64_t i = of->i / b->groups, g = of->i % b->groups, first = g * b->n + at;
    if (of->pass == RANGE) {
        const extent e = extent_of(row_of(b, i), first, count, T);
        result[SIZE] = e.size;
        result[LEAST] = (double)e.least;
        result[MOST] = (double)e.most;
        return;
    }
    put_some(b, (grid){ (float)of->number[SCALE], (float)of->number[BASE] }, (stretch){ i, g, at, count });
}

static void piece(const void *op, const parts_row *of, int64_t at, int count, float *h, double *result) {
    const job *b = op;
    (void)h;
    FOR_TYPE(b->call->tensor[QUANTIZE_X].dtype, piece_as, b, of, at, count, result);
}

static void join(const void *op, parts_row *of, const double *result) {
    (void)op;
    if (result[SIZE] > of->number[SIZE]) of->number[SIZE] = result[SIZE];
    if (result[LEAST] < of->number[LEAST]) of->number[LEAST] = result[LEAST];
    if (result[MOST] > of->number[MOST]) of->number[MOST] = result[MOST];
}

static bool end_pass(const void *op, parts_row *of) {
    const job *b = op;
    const int64_t i = of->i / b->groups, g = of->i % b->groups;
    if (of->pass == CODES) return false;
    const extent e = { (int32_t)of->number[SIZE], (float)of->number[LEAST], (float)of->number[MOST] };
    grid found = { 0 };
    FOR_TYPE(b->call->tensor[QUANTIZE_X].dtype, found = find_grid, b, e, row_of(b, i), g * b->n, i, g);
    of->number[SCALE] = (double)found.scale;
    of->number[BASE] = (double)found.base;
    of->pass = CODES;
    of->last = true;
    return true;
}

/* A scale that is fitted is of sums over the whole group, in an order of their own. */
static bool by_pieces(const job *b) { return b->n > ROW_PIECE && !(b->powers == TRINE_POWERS_FITTED && b->symmetric); }

static parts parts_of(const job *b) {
    return (parts){ .op = b,
                    .rows = b->call->dim[QUANTIZE_DIM_R] * b->groups,
                    .n = b->n,
                    .bytes = row_bytes(b->call) + trine_tensor_count(&b->call->tensor[QUANTIZE_X]) *
                                                      (int64_t)trine_dtype_size(b->call->tensor[QUANTIZE_X].dtype),
                    .piece = piece,
                    .add = join,
                    .end = end_pass };
}

static size_t workspace(const trine_call *call) {
    const job b = job_of(call);
    const parts p = parts_of(&b);
    return by_pieces(&b) ? parts_workspace(call, &p) : 0;
}

static int64_t bytes_of_row(const trine_call *call) {
    return call->dim[QUANTIZE_DIM_K] * (int64_t)(2 * trine_dtype_size(call->type[QUANTIZE_TYPE_T]) + 1);
}

static trine_status launch(const trine_call *call) {
    job b = job_of(call);
    const int64_t r = call->dim[QUANTIZE_DIM_R];
    if (call->present >> QUANTIZE_PHILOX & 1) dropout_tell(&b.chances, &call->tensor[QUANTIZE_PHILOX]);
    if (by_pieces(&b)) {
        const parts p = parts_of(&b);
        parts_run(call, &p, call->workspace);
        return TRINE_OK;
    }
    cpu_shares(call, cpu_team(call, r * b.groups, r * bytes_of_row(call)), r * b.groups, some, &b);
    return TRINE_OK;
}

/* Vectors of a group, units, runs of words, pieces; and threads. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t r = call->dim[QUANTIZE_DIM_R];
    trine_kernel_edge(edges, QUANTIZE_DIM_K, 2 * VL);
    trine_kernel_edge(edges, QUANTIZE_DIM_K, CODES_UNIT);
    trine_kernel_edge(edges, QUANTIZE_DIM_K, RUN);
    trine_kernel_edge(edges, QUANTIZE_DIM_K, ROW_PIECE);
    parts_edges(call, edges, bytes_of_row(call) / (call->dim[QUANTIZE_DIM_K] > 0 ? call->dim[QUANTIZE_DIM_K] : 1) + 1);
    if (r > 0) cpu_team_edge(edges, QUANTIZE_DIM_R, bytes_of_row(call));
}

CPU_KERNELS(quantize) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
