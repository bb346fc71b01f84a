/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions over float vectors: vexp, vlog, vtanh, verf, vsigmoid, vnormal.
 *
 * All are right at zeros of either sign, infinities, NaN, subnormal arguments and results, and on overflow; none
 * branches. The errors stated were measured over every float, in units of the last place of the exact value, with and
 * without FMA. The polynomials are weighted minimax fits (Lawson's iteration, coefficients rounded to float one by one
 * from the lowest, the rest fitted again each time), and leave errors below 2^-27 of the result. */
#ifndef TRINE_VEC_MATH_H
#define TRINE_VEC_MATH_H

#include "vec.h"

/* ln 2 = LN2_HI + LN2_LO, split so that n LN2_HI is exact for |n| < 2^15. */
#define LN2_HI 0x1.63p-1f
#define LN2_LO -2.12194440e-4f

INLINE vf vbits(vi bits) { return (vf)bits; }

/* |x| with the sign of s, for x >= 0. */
INLINE vf vcopysign(vf x, vf s) { return (vf)((vi)x | ((vi)s & viset(INT32_MIN))); }

/* exp(r) for |r| <= ln 2 / 2 and a little more. */
INLINE vf vexp_small(vf r) {
    const vf r2 = r * r;
    const vf low = vfma(r, vset(1.66665211e-1f), vset(4.99999940e-1f));
    const vf high = vfma(r2, vset(1.38186966e-3f), vfma(r, vset(8.36871564e-3f), vset(4.16682921e-2f)));
    return vfma(r2, vfma(r2, high, low), r) + 1.0f;
}

/* exp(x) = 2^n times the result, for |x| < 2^14. */
INLINE vf vexp_reduced(vf x, vi *n) {
    const vf magic = vset(0x1.8p23f); /* adding it rounds to an integer, which is then in the low bits */
    const vf t = vfma(x, vset(1.44269504f), magic), k = t - magic;
    *n = (vi)((vu)t - (vu)magic);
    return vexp_small(vfma(k, vset(-LN2_LO), vfma(k, vset(-LN2_HI), x)));
}

/* The same of x + low, unrounded, where |low| < 1. */
INLINE vf vexp_reduced2(vf x, vf low, vi *n) {
    const vf magic = vset(0x1.8p23f);
    const vf t = vfma(x + low, vset(1.44269504f), magic), k = t - magic;
    *n = (vi)((vu)t - (vu)magic);
    return vexp_small(vfma(k, vset(-LN2_LO), vfma(k, vset(-LN2_HI), x)) + low);
}

/* x 2^n for 2^-25 < |x| < 2^25 and |n| < 250, with one rounding. */
INLINE vf vscale2(vf x, vi n) {
#if defined(__AVX512F__)
    return (vf)_mm512_scalef_ps((__m512)x, _mm512_cvtepi32_ps((__m512i)n));
#else
    const vi half = n >> 1;
    return x * vbits((half + 127) << 23) * vbits((n - half + 127) << 23);
#endif
}

/* e^x. Error below 1.1 ulp. */
INLINE vf vexp(vf x) {
    vi n;
    const vf bounded = vmin(vset(89.0f), vmax(vset(-105.0f), x)); /* beyond: Inf and 0 all the same */
    const vf p = vexp_reduced(bounded, &n);
    return vscale2(p, n);
}

/* ln x; -Inf at 0, NaN below. Error below 1 ulp. */
INLINE vf vlog(vf x) {
    const vi tiny = x < 0x1p-126f;
    const vi bits = (vi)vsel(tiny, x * 0x1p23f, x);
    const vi base = viset(0x3f3504f3); /* sqrt(1/2) */
    const vi e = (vi)((vu)bits - (vu)base) >> 23;
    const vf k = __builtin_convertvector(e - (tiny & 23), vf);
    const vf f = vbits((vi)((vu)bits - ((vu)e << 23))) - 1.0f; /* sqrt(1/2) <= 1 + f < sqrt(2) */
    vf p = vset(6.74926788e-2f);
    p = vfma(p, f, vset(-1.16700977e-1f));
    p = vfma(p, f, vset(1.18835486e-1f));
    p = vfma(p, f, vset(-1.24062337e-1f));
    p = vfma(p, f, vset(1.42203584e-1f));
    p = vfma(p, f, vset(-1.66679889e-1f));
    p = vfma(p, f, vset(2.00020716e-1f));
    p = vfma(p, f, vset(-2.50000089e-1f));
    p = vfma(p, f, vset(3.33333135e-1f));
    const vf f2 = f * f;
    const vf low = vfma(f2, vset(-0.5f), vfma(f2 * f, p, k * LN2_LO));
    vf r = vfma(k, vset(LN2_HI), f + low);
    r = vsel(x == vset(INFINITY), x, r);
    r = vsel(x == vzero(), vset(-INFINITY), r);
    return vsel((x < vzero()) | (x != x), vset(NAN), r);
}

/* Error below 1.5 ulp. */
INLINE vf vtanh(vf x) {
    const vf a = vabs(x), a2 = a * a;
    vf p = vset(-5.69229620e-3f);
    p = vfma(p, a2, vset(2.06281673e-2f));
    p = vfma(p, a2, vset(-5.37365153e-2f));
    p = vfma(p, a2, vset(1.33314058e-1f));
    p = vfma(p, a2, vset(-3.33332807e-1f));
    const vf small = vfma(a2 * a, p, a);
    vi n;
    const vf e = vexp_reduced(vmin(vset(20.0f), a + a), &n); /* tanh 10 rounds to 1 */
    const vf large = 1.0f - 2.0f / (e * vbits((n + 127) << 23) + 1.0f);
    return vcopysign(vsel(a < 0.625f, small, large), x);
}

/* Error below 1.5 ulp. Below 0.95 in powers of x^2; above, 1 - exp(-p(x)). */
INLINE vf verf(vf x) {
    const vf a = vabs(x), a2 = a * a;
    vf s = vset(8.00277485e-5f);
    s = vfma(s, a2, vset(-8.05080403e-4f));
    s = vfma(s, a2, vset(5.19246049e-3f));
    s = vfma(s, a2, vset(-2.68557407e-2f));
    s = vfma(s, a2, vset(1.12836257e-1f));
    s = vfma(s, a2, vset(-3.76126289e-1f));
    s = vfma(s, a2, vset(1.28379166e-1f));
    const vf small = vfma(s, a, a);
    const vf b = vmin(vset(4.0f), a); /* erf 4 rounds to 1 */
    vf q = vset(-1.98213078e-4f);
    q = vfma(q, b, vset(3.06544686e-3f));
    q = vfma(q, b, vset(-2.23151091e-2f));
    q = vfma(q, b, vset(1.04113571e-1f));
    q = vfma(q, b, vset(6.36976123e-1f));
    q = vfma(q, b, vset(1.12779725f));
    q = vfma(q, b, vset(1.66444806e-4f));
    vi n;
    const vf e = vexp_reduced(-q, &n);
    const vf large = 1.0f - e * vbits((n + 127) << 23);
    return vcopysign(vsel(a < 0.95f, small, large), x);
}

/* 1/(1 + e^-x), small results included. Error below 2.5 ulp. 1 - sigmoid(x) is vsigmoid(-x). */
INLINE vf vsigmoid(vf x) {
    const vf e = vexp(-vabs(x));
    return vsel(x < vzero(), e, vset(1.0f)) / (1.0f + e);
}

/* The normal distribution: Phi(x) = erfc(-x/sqrt 2)/2, small results included, and its density in *pdf. Errors below
 * 4.5 and 2.5 ulp.
 * Phi(-a) = exp(-a^2/2) P(a) / (sqrt(2 pi) a P(a) + Q(a)), all coefficients positive;
 * a^2 is split so that its rounding does not count. */
INLINE vf vnormal(vf x, vf *pdf) {
    const vf a = vmin(vset(14.6f), vabs(x)); /* Phi(-14.6) rounds to 0 */
    const vf high = vbits((vi)a & ~0xfff);
    vi n;
    const vf e = vexp_reduced2(-0.5f * high * high, -0.5f * ((a - high) * (a + high)), &n);
    vf p = vset(2.17566313e-03f);
    p = vfma(p, a, vset(2.60647889e-02f));
    p = vfma(p, a, vset(1.49271578e-01f));
    p = vfma(p, a, vset(4.94845986e-01f));
    p = vfma(p, a, vset(9.49567199e-01f));
    p = vfma(p, a, vset(0.875f));
    vf q = vset(5.45411697e-03f);
    q = vfma(q, a, vset(6.53075948e-02f));
    q = vfma(q, a, vset(3.63855690e-01f));
    q = vfma(q, a, vset(1.10213256e+00f));
    q = vfma(q, a, vset(1.75f));
    const vf tail = vscale2(e * (p / vfma(2.50662827f * a, p, q)), n);
    *pdf = vscale2(e * 0.398942280f, n);
    return vsel(x < vzero(), tail, 1.0f - tail);
}
INLINE vf vnormcdf(vf x) {
    vf pdf;
    return vnormal(x, &pdf);
}

#endif
