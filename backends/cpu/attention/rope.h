/* SPDX-License-Identifier: Apache-2.0 */
/* The rotation that rope and rope_backward share. */
#ifndef TRINE_CPU_ROPE_H
#define TRINE_CPU_ROPE_H

#include <inttypes.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/attention/rope_places.h"

typedef uint64_t vpair __attribute__((vector_size(VB))); /* pairs of floats */
typedef uint32_t vhalf __attribute__((vector_size(VB / 2)));

INLINE vf rope_load(const void *data, trine_dtype dtype, int64_t i, int n) {
    return n == VL ? vload(data, dtype, i) : vloadn(data, dtype, i, n, 0);
}
INLINE void rope_store(void *data, trine_dtype dtype, int64_t i, int n, vf x) {
    if (n == VL)
        vstore(data, dtype, i, x);
    else
        vstoren(data, dtype, i, n, x);
}

/* Pairs i .. i+n-1 become those of x1 and of their partners x2, c further, turned. */
INLINE void rope_turn(vf x1, vf x2, void *y, const void *cosine, const void *sine, int64_t i, int64_t c, int n,
                      float sign, trine_dtype T, trine_dtype W) {
    const vf cs = rope_load(cosine, W, i, n), sn = sign * rope_load(sine, W, i, n);
    rope_store(y, T, i, n, vfma(x1, cs, -(x2 * sn)));
    rope_store(y, T, i + c, n, vfma(x2, cs, x1 * sn));
}
INLINE void rope_half(const void *x, void *y, const void *cosine, const void *sine, int64_t i, int64_t c, int n,
                      float sign, trine_dtype T, trine_dtype W) {
    const vf x1 = rope_load(x, T, i, n), x2 = rope_load(x, T, i + c, n);
    rope_turn(x1, x2, y, cosine, sine, i, c, n, sign, T, W);
}

/* All c pairs. What fills no vector ends one that some are turned in twice: it is read before y, which may be x. */
INLINE void rope_halves(const void *x, void *y, const void *cosine, const void *sine, int64_t c, float sign,
                        trine_dtype T, trine_dtype W) {
    const int rest = (int)(c % VL);
    const int64_t whole = c - rest;
    if (c < VL) {
        if (c > 0) rope_half(x, y, cosine, sine, 0, c, rest, sign, T, W);
        return;
    }
    const vf x1 = rope_load(x, T, c - VL, VL), x2 = rope_load(x, T, 2 * c - VL, VL);
    for (int64_t i = 0; i < whole; i += VL) rope_half(x, y, cosine, sine, i, c, VL, sign, T, W);
    if (rest) rope_turn(x1, x2, y, cosine, sine, c - VL, c, VL, sign, T, W);
}

/* Element i of the low (0) or high (1) half of x, twice each. */
INLINE vf rope_twice(vf x, int half) {
    vhalf part;
    memcpy(&part, (const char *)&x + half * (VB / 2), sizeof part);
    const vpair wide = __builtin_convertvector(part, vpair);
    return (vf)(wide | wide << 32);
}

/* n <= VL interleaved pairs from pair i on. */
INLINE void rope_pairs(const void *x, void *y, const void *cosine, const void *sine, int64_t i, int n, float sign,
                       trine_dtype T, trine_dtype W) {
    const vf cs = rope_load(cosine, W, i, n), sn = sign * rope_load(sine, W, i, n);
    const vf alternate = (vf)((vu)vset(1.0f) | ((vu)(~viota() & 1) << 31)); /* -1, 1, -1, 1, ... */
    for (int half = 0; half < 2; half++) {
        const int m = 2 * n - half * VL < VL ? 2 * n - half * VL : VL;
        if (m <= 0) break;
        const vf pair = rope_load(x, T, 2 * i + half * VL, m);
        const vf swapped = (vf)((vpair)pair >> 32 | (vpair)pair << 32);
        rope_store(y, T, 2 * i + half * VL, m,
                   vfma(pair, rope_twice(cs, half), swapped * (alternate * rope_twice(sn, half))));
    }
}

INLINE void rope_row(const void *x, void *y, const void *cosine, const void *sine, const trine_call *call,
                     bool interleaved, float sign, trine_dtype T, trine_dtype W) {
    const int64_t d = call->dim[ROPE_DIM_D], c = call->dim[ROPE_DIM_C], whole = c / VL * VL;
    const int rest = (int)(c - whole);
    if (interleaved) {
        for (int64_t i = 0; i < whole; i += VL) rope_pairs(x, y, cosine, sine, i, VL, sign, T, W);
        if (rest) rope_pairs(x, y, cosine, sine, whole, rest, sign, T, W);
    } else {
        rope_halves(x, y, cosine, sine, c, sign, T, W);
    }
    if (x != y && d > 2 * c)
        memcpy((char *)y + 2 * c * (int64_t)vsize(T), (const char *)x + 2 * c * (int64_t)vsize(T),
               (size_t)(d - 2 * c) * vsize(T));
}

INLINE int64_t rope_position(const trine_call *call, int64_t b, int64_t s) {
    const trine_tensor *t = &call->tensor[ROPE_POSITIONS];
    if (!(call->present >> ROPE_POSITIONS & 1)) return s;
    const int64_t at = b * t->stride[0] + s * t->stride[1];
    return t->dtype == TRINE_I64 ? ((const int64_t *)t->data)[at] : ((const int32_t *)t->data)[at];
}

/* Rows first .. last-1 of all b s h. */
INLINE void rope_rows(const trine_call *call, bool interleaved, float sign, int64_t first, int64_t last, trine_dtype T,
                      trine_dtype W) {
    const trine_tensor *x = &call->tensor[ROPE_X], *y = &call->tensor[ROPE_Y], *cosine = &call->tensor[ROPE_COS],
                       *sine = &call->tensor[ROPE_SIN];
    const int64_t s = call->dim[ROPE_DIM_S], h = call->dim[ROPE_DIM_H];
    const int64_t size = (int64_t)vsize(T), table = (int64_t)vsize(W);
    for (int64_t row = first; row < last; row++) {
        const int64_t head = row % h, i = row / h % s, b = row / h / s, position = rope_position(call, b, i);
        rope_row((const char *)x->data + (b * x->stride[0] + i * x->stride[1] + head * x->stride[2]) * size,
                 (char *)y->data + (b * y->stride[0] + i * y->stride[1] + head * y->stride[2]) * size,
                 (const char *)cosine->data + position * cosine->stride[0] * table,
                 (const char *)sine->data + position * sine->stride[0] * table, call, interleaved, sign, T, W);
    }
}

INLINE void rope_typed(const trine_call *call, bool interleaved, float sign, int64_t first, int64_t last,
                       trine_dtype T) {
    if (call->tensor[ROPE_COS].dtype == TRINE_F32)
        rope_rows(call, interleaved, sign, first, last, T, TRINE_F32);
    else
        rope_rows(call, interleaved, sign, first, last, T, T);
}

static trine_status rope_check(const trine_call *call) {
    const int64_t p = call->dim[ROPE_DIM_P];
    const char *op = call->plan->spec->name;
    if (!(call->present >> ROPE_POSITIONS & 1)) {
        if (call->dim[ROPE_DIM_S] <= p) return TRINE_OK;
        return call->host->error(TRINE_ERR_ARGUMENT,
                                 "%s: without positions there are s = %" PRId64 " of them, but cos has p = %" PRId64
                                 " rows",
                                 op, call->dim[ROPE_DIM_S], p);
    }
    for (int64_t b = 0; b < call->dim[ROPE_DIM_B]; b++)
        for (int64_t s = 0; s < call->dim[ROPE_DIM_S]; s++) {
            const int64_t position = rope_position(call, b, s);
            if (position >= 0 && position < p) continue;
            return call->host->error(TRINE_ERR_ARGUMENT,
                                     "%s: positions[%" PRId64 ", %" PRId64 "] is %" PRId64 ", but cos has p = %" PRId64
                                     " rows",
                                     op, b, s, position, p);
        }
    return TRINE_OK;
}

typedef struct rope_job {
    const trine_call *call;
    int64_t rows;
    bool interleaved;
    float sign;
} rope_job;

static void rope_part(const void *context, int64_t first, int64_t last, int thread) {
    const rope_job *job = context;
    (void)thread;
    FOR_TYPE(job->call->tensor[ROPE_X].dtype, rope_typed, job->call, job->interleaved, job->sign, first, last);
}

static void rope_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, ROPE_DIM_C, VL / 2); /* interleaved pairs of a vector */
    trine_kernel_edge(edges, ROPE_DIM_C, VL);
}

/* Rotates by the angle times `sign`. */
static trine_status rope_launch(const trine_call *call, bool interleaved, float sign) {
    const trine_status status = rope_check(call);
    if (status != TRINE_OK) return status;
    const rope_job job = { call, call->dim[ROPE_DIM_B] * call->dim[ROPE_DIM_S] * call->dim[ROPE_DIM_H], interleaved,
                           sign };
    const int64_t bytes = job.rows * call->dim[ROPE_DIM_D] * 2 * (int64_t)vsize(call->tensor[ROPE_X].dtype);
    cpu_shares(call, cpu_team(call, job.rows, bytes), job.rows, rope_part, &job);
    return TRINE_OK;
}

#endif
