/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of backends/cpu/core/vec_math.h against libm, to their stated errors, and the sizes of elements.
 * Compiled once per level with -DLEVEL=<level>, which gives that level's table of functions, and once without, which
 * gives the tests. */
#include <math.h>
#include <stdint.h>

#include <trine/base.h>

/* y[i] = f(x[i]) for i < n, n a multiple of 16. */
typedef void (*function)(const float *x, float *y, int n);
enum { EXP, LOG, TANH, ERF, SIGMOID, CDF, PDF, FUNCTIONS };
typedef size_t size_of_type(trine_dtype dtype);

#ifdef LEVEL

#include "backends/cpu/core/vec_math.h"

static vf vcdf(vf x) { return vnormcdf(x); }
static vf vpdf(vf x) {
    vf pdf;
    vnormal(x, &pdf);
    return pdf;
}

#define EACH(name, call) \
    static void name(const float *x, float *y, int n) { \
        for (int i = 0; i < n; i += VL) vstore(y, TRINE_F32, i, call(vload(x, TRINE_F32, i))); \
    }
EACH(each_exp, vexp)
EACH(each_log, vlog)
EACH(each_tanh, vtanh)
EACH(each_erf, verf)
EACH(each_sigmoid, vsigmoid)
EACH(each_cdf, vcdf)
EACH(each_pdf, vpdf)

#define NAME_(level) vec_math_##level
#define NAME(level) NAME_(level)
extern const function NAME(LEVEL)[FUNCTIONS];
const function NAME(LEVEL)[FUNCTIONS] = { each_exp, each_log, each_tanh, each_erf, each_sigmoid, each_cdf, each_pdf };

#define SIZE_(level) vec_size_##level
#define SIZE(level) SIZE_(level)
extern size_of_type SIZE(LEVEL);
size_t SIZE(LEVEL)(trine_dtype dtype) { return vsize(dtype); }

#else

#include <criterion/criterion.h>
#include <string.h>

extern const function vec_math_baseline[FUNCTIONS];
extern size_of_type vec_size_baseline;
#ifdef HAVE_V3
extern const function vec_math_v3[FUNCTIONS];
#endif

static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static double cdf(double x) { return erfc(-x * sqrt(0.5)) / 2; }
static double pdf(double x) { return exp(-x * x / 2) / sqrt(2 * M_PI); }

/* The errors that vec_math.h states, in ulp. */
static const struct {
    const char *name;
    double (*exact)(double);
    double most;
} functions[FUNCTIONS] = {
    [EXP] = { "exp", exp, 1.1 },
    [LOG] = { "log", log, 1.0 },
    [TANH] = { "tanh", tanh, 1.5 },
    [ERF] = { "erf", erf, 1.5 },
    [SIGMOID] = { "sigmoid", sigmoid, 2.5 },
    [CDF] = { "cdf", cdf, 4.5 },
    [PDF] = { "pdf", pdf, 2.5 },
};

static double ulp_of(double y) {
    int exponent;
    frexp(y, &exponent);
    return ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

/* Is y right for an exact value that is 0, infinite or NaN, or as good as infinite? */
static bool right_at_limit(float y, double exact) {
    const float want = (float)exact;
    if (isnan(exact)) return isnan(y);
    if (isinf(y)) return y == want || fabs(exact) > 0x1.fffffcp127;
    return y == want && signbit(y) == signbit(want);
}

static void check_block(const char *level, const function *table, int f, const float *x, int n) {
    float y[64];
    table[f](x, y, n);
    for (int i = 0; i < n; i++) {
        const double exact = functions[f].exact(x[i]);
        if (isnan(exact) || isinf(exact) || exact == 0 || !isfinite(y[i]))
            cr_assert(right_at_limit(y[i], exact), "%s %s(%a) = %a, but is %a", level, functions[f].name, (double)x[i],
                      (double)y[i], exact);
        else
            cr_assert(fabs(y[i] - exact) <= functions[f].most * ulp_of(exact), "%s %s(%a) = %a, but is %a: %g ulp",
                      level, functions[f].name, (double)x[i], (double)y[i], exact, fabs(y[i] - exact) / ulp_of(exact));
    }
}

/* Every exponent and sign with significands that differ from one exponent to the next, `step` floats apart. */
static void check_level(const char *level, const function *table) {
    static const float special[16] = { 0,        -0.0f,     INFINITY,        -INFINITY,
                                       NAN,      0x1p-149f, -0x1p-149f,      0x1p-126f,
                                       1,        -1,        0x1.fffffep127f, -0x1.fffffep127f,
                                       88.7228f, 88.7229f,  -103.97f,        -104 };
    const uint32_t step = 3001;
    for (int f = 0; f < FUNCTIONS; f++) {
        check_block(level, table, f, special, 16);
        for (uint64_t first = 0; first < UINT64_C(1) << 32; first += 64 * step) {
            float x[64];
            for (uint32_t i = 0; i < 64; i++) {
                const uint32_t bits = (uint32_t)first + i * step;
                memcpy(&x[i], &bits, sizeof bits);
            }
            check_block(level, table, f, x, 64);
        }
    }
}

TestSuite(vec_math, .timeout = 120);

Test(vec_math, sizes) {
    static const struct {
        trine_dtype dtype;
        size_t size;
    } types[] = { { TRINE_F32, 4 },  { TRINE_BF16, 2 }, { TRINE_F16, 2 }, { TRINE_F64, 8 }, { TRINE_I8, 1 },
                  { TRINE_U8, 1 },   { TRINE_I16, 2 },  { TRINE_I32, 4 }, { TRINE_I64, 8 }, { TRINE_U32, 4 },
                  { TRINE_E4M3, 1 }, { TRINE_E5M2, 1 }, { TRINE_E8M0, 1 } };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        cr_expect_eq(vec_size_baseline(types[i].dtype), types[i].size, "type %#x: %zu bytes", (unsigned)types[i].dtype,
                     vec_size_baseline(types[i].dtype));
}

Test(vec_math, baseline) { check_level("baseline", vec_math_baseline); }

#ifdef HAVE_V3
Test(vec_math, v3) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) cr_skip("this CPU lacks AVX2 or FMA");
    check_level("v3", vec_math_v3);
}
#endif

#endif
