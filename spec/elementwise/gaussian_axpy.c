/* SPDX-License-Identifier: Apache-2.0 */
/* gaussian_axpy: the table and the reference, which says of each operation on f32 where it is rounded. */
#include <string.h>

#include <trine/elementwise.h>

#include "elementwise.h"

#define ARGS trine_gaussian_axpy_args

/* What f32 makes of a product and of a sum of its numbers: float64 has the product exactly, and more than twice the
 * digits that a sum needs to be rounded twice as if once. */
static double times(double a, double b) { return (float)(a * b); }
static double plus(double a, double b) { return (float)(a + b); }

static double polynomial(double x, const float *coefficient, int count) {
    double p = coefficient[0];
    for (int i = 1; i < count; i++) p = plus(times(p, x), coefficient[i]);
    return p;
}

/* -2 ln(u) for u = (w/2 rounded down, or 1) 2^-31: u = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), and ln(1 + f) =
 * f - f^2/2 + f^3 p(f). ln 2 is a number of 9 bits, of which the product with k is exact, and a rest. */
static double minus_two_logs(uint32_t w) {
    static const float p[] = { 6.74926788e-2f,  -1.16700977e-1f, 1.18835486e-1f,  -1.24062337e-1f, 1.42203584e-1f,
                               -1.66679889e-1f, 2.00020716e-1f,  -2.50000089e-1f, 3.33333135e-1f };
    const float a = (float)(int32_t)(w >> 1 | 1);
    int e;
    double m = frexp(a, &e);
    if (m < (double)0x1.6a09e6p-1f) m *= 2, e--;
    const double f = m - 1, k = e - 31, f2 = times(f, f);
    const double low = plus(times(f2, -0.5), plus(times(times(f2, f), polynomial(f, p, 9)), times(k, -2.12194440e-4f)));
    return times(-2, plus(times(k, 0x1.63p-1f), plus(f, low)));
}

/* By Newton's iteration on 1/sqrt(q), from a number whose exponent is about half that of q. */
static double root(double q) {
    const float from = (float)q;
    uint32_t bits;
    memcpy(&bits, &from, sizeof bits);
    bits = 0x5f3759dfu - (bits >> 1);
    float y;
    memcpy(&y, &bits, sizeof y);
    const double half = times(0.5, q);
    double r = y;
    for (int i = 0; i < 3; i++) r = times(r, plus(1.5, -times(times(half, r), r)));
    return times(q, r);
}

/* cos and sin of 2 pi w/2^32: a number of quarters of a turn, and x in [-1/2, 1/2] of one. */
static void turn(uint32_t w, double *cos_out, double *sin_out) {
    static const float c[] = { 8.93573218e-4f, -2.08552536e-2f, 2.53668517e-1f, -1.23370051f },
                       s[] = { -4.68931627e-3f, 7.97135457e-2f, -6.45966709e-1f, 1.57079637f };
    const uint32_t quarter = (w + 0x20000000u) >> 30;
    const double x = times((float)(int32_t)(w - (quarter << 30)), 0x1p-30), x2 = times(x, x);
    const double cosine = plus(1, times(x2, polynomial(x2, c, 4))), sine = times(x, polynomial(x2, s, 4));
    *cos_out = (quarter & 1 ? sine : cosine) * (quarter == 1 || quarter == 2 ? -1 : 1);
    *sin_out = (quarter & 1 ? cosine : sine) * (quarter >= 2 ? -1 : 1);
}

static double gaussian(uint64_t seed, uint64_t offset, uint64_t index) {
    uint32_t word[4];
    double cosine, sine;
    trine_philox(seed, offset, index / 4, word);
    const uint32_t *pair = word + index % 4 / 2 * 2;
    turn(pair[1], &cosine, &sine);
    return times(root(minus_two_logs(pair[0])), index % 2 ? sine : cosine);
}

/* y is exact: the two operations that it takes are rounded to f32 each, and then to y's type.
 *
 * z itself, beside the formula with which the header explains it, with v = 2^-24: -2 ln(u) is within 4v of itself,
 * since its terms have one sign but for f - f^2/2; three iterations leave 2^-34 of the root's error, their last
 * roundings 3v, and the root half of the logarithm's error; sine and cosine are within 2.5v, polynomial included, and
 * the product adds 1v: 10v. Of 400,000 numbers none was off by 6v. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *x = trine_ref_value(ref, "x"), *told = trine_ref_value(ref, "alpha_tensor");
    double *y = trine_ref_value(ref, "y");
    uint64_t seed = args->seed, offset = args->offset;
    trine_ref_philox(ref, &seed, &offset);
    const double alpha = told ? told[0] : args->alpha;
    const trine_dtype dtype = trine_ref_type(ref, "T");
    for (int64_t i = 0; i < count; i++) {
        const double z = gaussian(seed, offset, ref->first + (uint64_t)i);
        y[i] = trine_round(plus(x[i], times(alpha, z)), dtype, false);
    }
}

const trine_spec trine_spec_gaussian_axpy = {
    SPEC(gaussian_axpy),
    .summary = "Adds normal noise that is made where it is added, the same on every device",
    .formula = "y[i] = x[i] + alpha z[i]; z[i] = sqrt(-2 ln(u)) cos(2 pi b/2^32) for even i, with sin for odd i; u = "
               "(a/2 rounded down, or 1)/2^31 rounded to f32, a and b words i%4/2*2 and i%4/2*2 + 1 of "
               "Philox4x32-10(key = seed, counter = (lo32(i/4), hi32(i/4), lo32(offset), hi32(offset))), each "
               "operation rounded to f32; i counts the elements in row-major order; with philox its element 0 is the "
               "key, and its element 1 is added to offset",
    .source = "Malladi et al. 2023, algorithm 1; Box and Muller 1958; Salmon et al. 2011, section 3.3",
    .tensors = { TENSOR(x, IN, "T", "[s] [q] [r] n"), TENSOR(philox, IN | OPTIONAL, "i64", "2"),
                 TENSOR(alpha_tensor, IN | OPTIONAL, "f32", "1"), TENSOR(y, OUT | EXACT, "T", "[s] [q] [r] n") },
    .params = { PARAM(alpha, F32, .values = "1 0 1e-3 -2e-3", .doc = "factor of the noise"),
                PARAM(seed, U64, .values = "0 42 1234567890123456789", .doc = "key of the generator"),
                PARAM(offset, U64, .values = "0 7 4294967296",
                      .doc = "high half of its counter: another for every tensor and draw") },
    .types = { "T=f32|bf16|f16" },
    .require = { "philox instead of seed", "alpha_tensor instead of alpha" },
    .alias = { "y=x" },
    .flops = "50*s*q*r*n",
    .independent = "s",
    .sizes = { "s: 1 2", "q: 1 3", "r: 1 0 2 5 67", "n: 0 1 3 8 17 64 251 1000" },
    .cases = { "f32: T=f32 r=4096 n=4096 alpha=0.001 seed=1", "bf16: T=bf16 r=8192 n=4096 alpha=0.001 seed=1",
               "f16: T=f16 r=8192 n=4096 alpha=0.001 seed=1", "in cache: T=f32 r=64 n=1024 alpha=0.001 seed=1" },
    .exact = true,
    .reference = reference,
};
