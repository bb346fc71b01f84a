/* SPDX-License-Identifier: Apache-2.0 */
/* cast on the CPU: all but float64 to float64 goes through float, which holds every narrower type exactly. */
#include "elementwise.h"
#include "backends/cpu/core/float8.h"
#include "spec/places/cast.h"

INLINE bool is_float8(trine_dtype dtype) { return (dtype & 0xff) == 8; }

/* Rounded to float so that rounding it further to nearest even, to at most 22 bits, gives what rounding x once would:
 * towards zero, with the last bit set if inexact (Boldo and Melquiond 2008). */
INLINE float to_odd(double x) {
    const float near = (float)x;
    uint32_t bits;
    memcpy(&bits, &near, sizeof bits);
    bits -= fabs((double)near) > fabs(x);
    bits |= (double)near < x || (double)near > x;
    float odd;
    memcpy(&odd, &bits, sizeof odd);
    return odd;
}

INLINE bool is_wide(trine_dtype dtype) { return dtype == TRINE_F64 || is_float8(dtype); }

/* ---------------------------------------------------------------------------- between float, bf16 and f16, directly */

INLINE void step(const run *r, bool saturate, trine_dtype tx, trine_dtype ty, span s) {
    vf x = span_load(r, CAST_X, tx, s);
    if (saturate) {
        const float largest = ty == TRINE_F16 ? 65504.0f : ty == TRINE_BF16 ? 0x1.fep127f : 0x1.fffffep127f;
        x = vmin(vset(largest), vmax(vset(-largest), x));
    }
    span_store(r, CAST_Y, ty, s, x);
}

INLINE void to_type(const run *r, bool saturate, trine_dtype tx, trine_dtype ty) {
    EACH_SPAN(r, CAST_Y, ty, step, r, saturate, tx, ty);
}
INLINE void from_type(const run *r, bool saturate, trine_dtype ty, trine_dtype tx) {
    FOR_TYPE(ty, to_type, r, saturate, tx);
}
static void narrow(const run *r, bool saturate, trine_dtype tx, trine_dtype ty) {
    FOR_TYPE(tx, from_type, r, saturate, ty);
}

/* -------------------------------------------- the others, a block of floats at a time; `odd`: to be rounded further */

enum { BLOCK = 256 };

INLINE void float8_read_part(const char *x, int i, size_t m, float *out, trine_dtype dtype) {
    vb bytes = { 0 };
    memcpy(&bytes, x + i, m);
    const vf v = vf_from_float8(bytes, dtype);
    memcpy(out + i, &v, m * sizeof *out);
}

INLINE void float8_read(const char *x, int n, float *out, trine_dtype dtype) {
    int i = 0;
    for (; i + VL <= n; i += VL) float8_read_part(x, i, VL, out, dtype);
    if (i < n) float8_read_part(x, i, (size_t)(n - i), out, dtype);
}

INLINE void float8_write_part(char *y, int i, size_t m, const float *in, bool saturate, trine_dtype dtype) {
    vf v = { 0 };
    memcpy(&v, in + i, m * sizeof *in);
    const vb bytes = vf_to_float8(v, dtype, saturate);
    memcpy(y + i, &bytes, m);
}

INLINE void float8_write(char *y, int n, const float *in, bool saturate, trine_dtype dtype) {
    int i = 0;
    for (; i + VL <= n; i += VL) float8_write_part(y, i, VL, in, saturate, dtype);
    if (i < n) float8_write_part(y, i, (size_t)(n - i), in, saturate, dtype);
}

static void read_wide(const char *x, trine_dtype dtype, int n, bool odd, float *out) {
    const double *d = (const double *)x;
    switch (dtype) {
    case TRINE_F64:
        for (int i = 0; i < n; i++) out[i] = odd ? to_odd(d[i]) : (float)d[i];
        break;
    case TRINE_E4M3: float8_read(x, n, out, TRINE_E4M3); break;
    case TRINE_E4M3FNUZ: float8_read(x, n, out, TRINE_E4M3FNUZ); break;
    case TRINE_E5M2: float8_read(x, n, out, TRINE_E5M2); break;
    default: float8_read(x, n, out, TRINE_E5M2FNUZ);
    }
}

INLINE double widened(double x, bool saturate) {
    return saturate && isinf(x) ? copysign(0x1.fffffffffffffp1023, x) : x;
}

static void write_wide(char *y, trine_dtype dtype, int n, bool saturate, const float *in) {
    switch (dtype) {
    case TRINE_F64:
        for (int i = 0; i < n; i++) ((double *)y)[i] = widened((double)in[i], saturate);
        break;
    case TRINE_E4M3: float8_write(y, n, in, saturate, TRINE_E4M3); break;
    case TRINE_E4M3FNUZ: float8_write(y, n, in, saturate, TRINE_E4M3FNUZ); break;
    case TRINE_E5M2: float8_write(y, n, in, saturate, TRINE_E5M2); break;
    default: float8_write(y, n, in, saturate, TRINE_E5M2FNUZ);
    }
}

/* The part of a run from `base` on, at most a block, by way of `buffer`. */
static void block(const run *r, bool saturate, int64_t base, float buffer[BLOCK]) {
    const trine_dtype tx = r->call->tensor[CAST_X].dtype, ty = r->call->tensor[CAST_Y].dtype;
    const char *x = r->at[CAST_X] + base * (int64_t)trine_dtype_size(tx);
    char *y = r->at[CAST_Y] + base * (int64_t)trine_dtype_size(ty);
    const int n = r->n - base < BLOCK ? (int)(r->n - base) : BLOCK;
    run part = { .n = n };
    if (is_wide(tx)) {
        read_wide(x, tx, n, ty != TRINE_F32, buffer);
    } else {
        part.at[CAST_X] = (char *)x;
        part.at[CAST_Y] = (char *)buffer;
        narrow(&part, false, tx, TRINE_F32);
    }
    if (is_wide(ty)) {
        write_wide(y, ty, n, saturate, buffer);
    } else {
        part.at[CAST_X] = (char *)buffer;
        part.at[CAST_Y] = y;
        part.stream = r->stream;
        narrow(&part, saturate, TRINE_F32, ty);
    }
}

static void row(const run *r) {
    const trine_dtype tx = r->call->tensor[CAST_X].dtype, ty = r->call->tensor[CAST_Y].dtype;
    const bool saturate = ((const trine_cast_args *)r->call->args)->saturate;
    float buffer[BLOCK];
    if (tx == TRINE_F64 && ty == TRINE_F64)
        for (int64_t i = 0; i < r->n; i++)
            ((double *)r->at[CAST_Y])[i] = widened(((const double *)r->at[CAST_X])[i], saturate);
    else if (!is_wide(tx) && !is_wide(ty))
        narrow(r, saturate, tx, ty);
    else
        for (int64_t base = 0; base < r->n; base += BLOCK) block(r, saturate, base, buffer);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    walk_edges(call, edges);
    if (is_wide(call->tensor[CAST_X].dtype) || is_wide(call->tensor[CAST_Y].dtype))
        trine_kernel_edge(edges, CAST_DIM_N, BLOCK);
}

WALK_KERNELS(cast, edges);
