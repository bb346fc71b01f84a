/* SPDX-License-Identifier: Apache-2.0 */
/* What the float64 references call: access by name, every element type read and rounded exactly, and dropout's
 * Philox. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

static _Noreturn void unknown(const trine_ref *ref, const char *kind, const char *name) {
    fprintf(stderr, "specification of %s: no %s '%s'\n", ref->plan->spec->name, kind, name);
    abort();
}

static int tensor_of(const trine_ref *ref, const char *name) {
    int index = trine_plan_find_tensor(ref->plan, name);
    if (index < 0) unknown(ref, "tensor", name);
    return index;
}

int64_t trine_ref_dim(const trine_ref *ref, const char *name) {
    int index = trine_plan_find_symbol(ref->plan, name);
    if (index < 0) unknown(ref, "symbol", name);
    return ref->dim[index];
}

double *trine_ref_value(const trine_ref *ref, const char *name) { return ref->value[tensor_of(ref, name)]; }

double *trine_ref_magnitude(const trine_ref *ref, const char *name) { return ref->magnitude[tensor_of(ref, name)]; }

double *trine_ref_slack(const trine_ref *ref, const char *name) { return ref->slack[tensor_of(ref, name)]; }

trine_dtype trine_ref_type(const trine_ref *ref, const char *type_variable) {
    int index = trine_plan_find_type(ref->plan, type_variable);
    if (index < 0) unknown(ref, "type variable", type_variable);
    return ref->type[index];
}

/* A binary floating-point format. Its exponent field of all ones is reserved for Inf and NaN only if `inf`. Without
 * bits of fraction it is a scale, 2^(code - 127), without a sign. */
typedef struct format {
    int exponent_bits, fraction_bits, bias;
    bool inf;  /* has infinities */
    bool fnuz; /* has no -0; its code is the only NaN */
    double largest;
    uint32_t nan;
} format;

static const format *format_of(trine_dtype dtype) {
    static const format f16 = { 5, 10, 15, true, false, 65504, 0x7e00 };
    static const format bf16 = { 8, 7, 127, true, false, 0x1.fep127, 0x7fc0 };
    static const format f32 = { 8, 23, 127, true, false, 0x1.fffffep127, 0x7fc00000 };
    static const format e4m3 = { 4, 3, 7, false, false, 448, 0x7f };
    static const format e4m3fnuz = { 4, 3, 8, false, true, 240, 0x80 };
    static const format e5m2 = { 5, 2, 15, true, false, 57344, 0x7f };
    static const format e5m2fnuz = { 5, 2, 16, false, true, 57344, 0x80 };
    static const format e8m0 = { 8, 0, 128, false, false, 0x1p127, 0xff };
    switch (dtype) {
    case TRINE_F16: return &f16;
    case TRINE_BF16: return &bf16;
    case TRINE_F32: return &f32;
    case TRINE_E4M3: return &e4m3;
    case TRINE_E4M3FNUZ: return &e4m3fnuz;
    case TRINE_E5M2: return &e5m2;
    case TRINE_E5M2FNUZ: return &e5m2fnuz;
    case TRINE_E8M0: return &e8m0;
    default: return NULL;
    }
}

/* Powers of two within the range of float64. */
static double power(int exponent) { return ldexp(1, exponent); }

double trine_unit_roundoff(trine_dtype dtype) {
    const format *f = format_of(dtype);
    if (f) return power(-1 - f->fraction_bits);
    return dtype == TRINE_F64 ? 0x1p-53 : 0;
}

double trine_largest(trine_dtype dtype) {
    const format *f = format_of(dtype);
    if (f) return f->largest;
    switch (dtype) {
    case TRINE_F64: return 0x1.fffffffffffffp1023;
    case TRINE_I8: return 127;
    case TRINE_U8: return 255;
    case TRINE_I16: return 32767;
    case TRINE_I32: return 2147483647;
    case TRINE_U32: return 4294967295;
    case TRINE_I64: return 0x1p63;
    default: return 0;
    }
}

double trine_finite_abs(double x) { return isfinite(x) ? fabs(x) : 0; }

double trine_pair_magnitude(double p, double q) {
    const double largest = trine_largest(TRINE_F32), size = fabs(p) + fabs(q);
    if (trine_finite_abs(p) > largest || trine_finite_abs(q) > largest) return INFINITY;
    return !isfinite(size) ? 0 : size > largest ? INFINITY : size;
}

double trine_smallest_normal(trine_dtype dtype) {
    const format *f = format_of(dtype);
    if (f) return power(1 - f->bias);
    return dtype == TRINE_F64 ? 0x1p-1022 : 1;
}

/* To the nearest power of two, up from the middle; 0 and what is smaller than all to the smallest. */
static double round_scale(double x, bool saturate) {
    if (!(x >= 0)) return NAN;
    int exponent;
    const double part = frexp(fmin(x, 0x1p128), &exponent), y = power(part < 0.75 ? exponent - 1 : exponent);
    if (y > 0x1p127) return saturate ? 0x1p127 : NAN;
    return fmax(part > 0 ? y : 0, 0x1p-127);
}

static double round_format(double x, const format *f, bool saturate) {
    if (isnan(x)) return x;
    if (f->fraction_bits == 0) return round_scale(x, saturate);
    double y = x;
    if (isfinite(x)) {
        int exponent;
        frexp(x, &exponent);
        int quantum = exponent - 1 - f->fraction_bits, least = 1 - f->bias - f->fraction_bits;
        if (quantum < least) quantum = least;
        y = ldexp(rint(ldexp(x, -quantum)), quantum);
    }
    if (fabs(y) > f->largest) return saturate ? copysign(f->largest, x) : f->inf ? copysign(INFINITY, x) : NAN;
    return y == 0 && f->fnuz ? 0 : y;
}

static double round_integer(double x, trine_dtype dtype) {
    double most = trine_largest(dtype), least = dtype == TRINE_U8 || dtype == TRINE_U32 ? 0
                                                : dtype == TRINE_I64                    ? -most
                                                                                        : -most - 1;
    if (isnan(x)) return 0;
    x = rint(x);
    return x > most ? most : x < least ? least : x;
}

double trine_round(double x, trine_dtype dtype, bool saturate) {
    const format *f = format_of(dtype);
    if (!f) return dtype == TRINE_F64 ? x : round_integer(x, dtype);
    if (dtype == TRINE_F32 && !saturate) return (float)x;
    return round_format(x, f, saturate);
}

static double decode(uint32_t code, const format *f) {
    uint32_t fractions = UINT32_C(1) << f->fraction_bits, exponents = UINT32_C(1) << f->exponent_bits;
    uint32_t fraction = code & (fractions - 1), exponent = code >> f->fraction_bits & (exponents - 1);
    bool negative = code >> (f->fraction_bits + f->exponent_bits) & 1;
    double x;
    if (f->fraction_bits == 0) return code == f->nan ? NAN : ldexp(1, (int)code - 127);
    if (f->fnuz && code == f->nan) return NAN;
    if (f->inf && exponent == exponents - 1)
        x = fraction ? NAN : INFINITY;
    else if (!f->inf && !f->fnuz && exponent == exponents - 1 && fraction == fractions - 1)
        x = NAN;
    else if (exponent == 0)
        x = ldexp(fraction, 1 - f->bias - f->fraction_bits);
    else
        x = ldexp(fractions + fraction, (int)exponent - f->bias - f->fraction_bits);
    return negative ? -x : x;
}

static uint32_t encode(double x, const format *f) {
    double y = round_format(x, f, false);
    if (isnan(y)) return f->nan;
    if (f->fraction_bits == 0) return (uint32_t)(ilogb(y) + 127);
    uint32_t sign = (signbit(y) ? UINT32_C(1) : 0) << (f->fraction_bits + f->exponent_bits);
    if (isinf(y)) return sign | (((UINT32_C(1) << f->exponent_bits) - 1) << f->fraction_bits);
    int exponent;
    frexp(y, &exponent);
    exponent += f->bias - 1;
    if (y == 0 || exponent < 1) return sign | (uint32_t)ldexp(fabs(y), f->fraction_bits + f->bias - 1);
    /* The leading one of the significand carries into the exponent field. */
    return sign | (((uint32_t)(exponent - 1) << f->fraction_bits) +
                   (uint32_t)ldexp(fabs(y), f->fraction_bits + f->bias - exponent));
}

double trine_load(const void *data, trine_dtype dtype, int64_t index) {
    switch (dtype) {
    case TRINE_I8: return ((const int8_t *)data)[index];
    case TRINE_U8: return ((const uint8_t *)data)[index];
    case TRINE_I16: return ((const int16_t *)data)[index];
    case TRINE_I32: return ((const int32_t *)data)[index];
    case TRINE_U32: return ((const uint32_t *)data)[index];
    case TRINE_I64: return (double)((const int64_t *)data)[index];
    case TRINE_F32: return ((const float *)data)[index];
    case TRINE_F64: return ((const double *)data)[index];
    case TRINE_BF16: {
        uint32_t bits = (uint32_t)((const uint16_t *)data)[index] << 16;
        float x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    case TRINE_F16: return decode(((const uint16_t *)data)[index], format_of(dtype));
    case TRINE_E4M3:
    case TRINE_E4M3FNUZ:
    case TRINE_E5M2:
    case TRINE_E5M2FNUZ:
    case TRINE_E8M0: return decode(((const uint8_t *)data)[index], format_of(dtype));
    case TRINE_NONE: break;
    }
    return NAN;
}

void trine_store(void *data, trine_dtype dtype, int64_t index, double value) {
    switch (dtype) {
    case TRINE_I8: ((int8_t *)data)[index] = (int8_t)round_integer(value, dtype); break;
    case TRINE_U8: ((uint8_t *)data)[index] = (uint8_t)round_integer(value, dtype); break;
    case TRINE_I16: ((int16_t *)data)[index] = (int16_t)round_integer(value, dtype); break;
    case TRINE_I32: ((int32_t *)data)[index] = (int32_t)round_integer(value, dtype); break;
    case TRINE_U32: ((uint32_t *)data)[index] = (uint32_t)round_integer(value, dtype); break;
    case TRINE_I64: {
        double x = round_integer(value, dtype);
        ((int64_t *)data)[index] = x >= 0x1p63 ? INT64_MAX : (int64_t)x;
        break;
    }
    case TRINE_F32: ((float *)data)[index] = (float)value; break;
    case TRINE_F64: ((double *)data)[index] = value; break;
    case TRINE_F16:
    case TRINE_BF16: ((uint16_t *)data)[index] = (uint16_t)encode(value, format_of(dtype)); break;
    case TRINE_E4M3:
    case TRINE_E4M3FNUZ:
    case TRINE_E5M2:
    case TRINE_E5M2FNUZ:
    case TRINE_E8M0: ((uint8_t *)data)[index] = (uint8_t)encode(value, format_of(dtype)); break;
    case TRINE_NONE: break;
    }
}

void trine_philox(uint64_t seed, uint64_t offset, uint64_t block, uint32_t word_out[4]) {
    uint32_t c[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)offset, (uint32_t)(offset >> 32) };
    uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = UINT64_C(0xD2511F53) * c[0], p1 = UINT64_C(0xCD9E8D57) * c[2];
        uint32_t next[4] = { (uint32_t)(p1 >> 32) ^ c[1] ^ key[0], (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c[3] ^ key[1],
                             (uint32_t)p0 };
        memcpy(c, next, sizeof c);
        key[0] += 0x9E3779B9;
        key[1] += 0xBB67AE85;
    }
    memcpy(word_out, c, sizeof c);
}

uint64_t trine_dropout_threshold(float p) { return (uint64_t)floor((1.0 - (double)p) * 0x1p32); }

float trine_dropout_scale(float p) { return p < 1 ? (float)(1 / (1.0 - (double)p)) : 0; }

void trine_ref_philox(const trine_ref *ref, uint64_t *seed, uint64_t *offset) {
    const double *words = trine_ref_value(ref, "philox");
    if (words == NULL) return;
    *seed = (uint64_t)(int64_t)words[0];
    *offset += (uint64_t)(int64_t)words[1];
}

bool trine_dropout_keep(uint64_t seed, uint64_t offset, uint64_t index, float p) {
    uint32_t word[4];
    trine_philox(seed, offset, index / 8, word);
    const uint32_t even = word[index / 2 % 4], odd = even << 16 | even >> 16;
    return (index % 2 ? odd : even) < trine_dropout_threshold(p);
}
