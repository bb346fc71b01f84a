/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of spec/same.h on vectors. */
#ifndef TRINE_CPU_SAME_H
#define TRINE_CPU_SAME_H

#include <math.h>

#include "cpu.h"
#include "vec.h"
#include "spec/same.h"

#define SAME_NAME CPU_VARIANT("same")

typedef struct same_lanes {
    vf v[SAME_LANES / VL];
} same_lanes;

/* Lanes, the upper ones added to the lower ones, down to one. */
INLINE float same_total(vf *v, int lanes) {
    for (int half = lanes / 2; half >= VL; half /= 2)
        for (int i = 0; i < half / VL; i++) v[i] += v[i + half / VL];
    vf a = v[0];
    if (VL == 16) a += vupper(a, 8);
    if (VL >= 8) a += vupper(a, 4);
    a += vupper(a, 2);
    return (a + vupper(a, 1))[0];
}

/* Terms from `at` on, a multiple of VL, of a row; those beyond it must be 0. */
INLINE void same_add(same_lanes *s, int64_t at, vf terms) { s->v[at / VL % (SAME_LANES / VL)] += terms; }

/* Of VL or fewer elements of a row, with others in place of those beyond it. */
INLINE vf same_load(const void *row, trine_dtype T, int64_t at, int64_t n, float rest) {
    return n - at >= VL ? vload(row, T, at) : vloadn(row, T, at, (int)(n - at), rest);
}
INLINE void same_store(void *row, trine_dtype T, int64_t at, int64_t n, vf x) {
    if (n - at >= VL)
        vstore(row, T, at, x);
    else
        vstoren(row, T, at, (int)(n - at), x);
}
INLINE vf same_within(vf x, int64_t at, int64_t n) {
    return n - at >= VL ? x : vsel(viota() < (int)(n - at), x, vzero());
}

/* The larger of two, of which the second may be NaN and is then not taken. */
INLINE vf same_larger(vf most, vf x) { return vsel(x > most, x, most); }
INLINE float same_largest(vf x) {
    float most = x[0];
    for (int i = 1; i < VL; i++) most = x[i] > most ? x[i] : most;
    return most;
}

INLINE vf same_exp(vf x) {
    const vf shifted = vproduct(x, vset(SAME_LOG2E)) + SAME_ROUNDING, k = shifted - SAME_ROUNDING;
    const vu power = (vu)shifted - (vu)vset(SAME_ROUNDING);
    vf r = x - vproduct(k, vset(SAME_LN2_HIGH));
    r = r - vproduct(k, vset(SAME_LN2_LOW));
    vf p = vzero();
#define TERM(c) p = vproduct(p, r) + (c);
    SAME_EXP(TERM)
#undef TERM
    p = vproduct(p, vproduct(r, r)) + r + 1.0f;
    return vsel(x < SAME_EXP_LEAST, vzero(), vproduct(p, (vf)((power + 127) << 23)));
}

INLINE float same_log(float x) {
    const vi bits = (vi)vset(x), e = (bits - 0x3f3504f3) >> 23;
    const vf k = __builtin_convertvector(e, vf), f = (vf)(bits - (e << 23)) - 1.0f, f2 = vproduct(f, f);
    vf p = vzero();
#define TERM(c) p = vproduct(p, f) + (c);
    SAME_LOG(TERM)
#undef TERM
    const vf low = vproduct(f2, vset(-0.5f)) + (vproduct(vproduct(f2, f), p) + vproduct(k, vset(SAME_LN2_LOW)));
    return (vproduct(k, vset(SAME_LN2_HIGH)) + (f + low))[0];
}

/* x y of two floats, rounded. */
INLINE float same_product(float x, float y) { return vproduct(vset(x), vset(y))[0]; }

#endif
