/* SPDX-License-Identifier: Apache-2.0 */
/* gaussian_axpy on devices. The bits of the normal numbers are those that spec/elementwise/gaussian_axpy.c says: every
 * product is rounded by itself. */
#include "gaussian_axpy.h"
#include "backends/simt/core/philox.h"
#include "backends/simt/core/walk.h"
#include "spec/places/gaussian_axpy.h"

DEVICE float gaussian_term(float p, float x, float c) { return product(p, x) + c; }

/* -2 ln((w/2 rounded down, or 1) 2^-31) */
DEVICE float gaussian_logs(uint32_t w) {
    const int32_t bits = (int32_t)bits_of_float((float)(int32_t)(w >> 1 | 1)), e = (bits - 0x3f3504f3) >> 23;
    const float k = (float)(e - 31), f = float_of_bits((uint32_t)bits - ((uint32_t)e << 23)) - 1.0f, f2 = product(f, f);
    float p = 6.74926788e-2f;
    p = gaussian_term(p, f, -1.16700977e-1f);
    p = gaussian_term(p, f, 1.18835486e-1f);
    p = gaussian_term(p, f, -1.24062337e-1f);
    p = gaussian_term(p, f, 1.42203584e-1f);
    p = gaussian_term(p, f, -1.66679889e-1f);
    p = gaussian_term(p, f, 2.00020716e-1f);
    p = gaussian_term(p, f, -2.50000089e-1f);
    p = gaussian_term(p, f, 3.33333135e-1f);
    const float low = product(f2, -0.5f) + (product(product(f2, f), p) + product(k, -2.12194440e-4f));
    return product(-2.0f, product(k, 0x1.63p-1f) + (f + low));
}

DEVICE float gaussian_root(float q) {
    const float half = product(0.5f, q);
    float r = float_of_bits(0x5f3759dfu - (bits_of_float(q) >> 1));
#pragma unroll
    for (int i = 0; i < 3; i++) r = product(r, 1.5f - product(product(half, r), r));
    return product(q, r);
}

/* Those of a block that its words 2 `pair` and 2 `pair` + 1 make: by quarters of a turn, which change places and
 * signs. */
DEVICE void gaussian_pair(const four &words, int pair, float &even, float &odd) {
    const float r = gaussian_root(gaussian_logs(words.word[2 * pair]));
    const uint32_t w = words.word[2 * pair + 1], quarter = (w + 0x20000000u) >> 30;
    const float x = product((float)(int32_t)(w - (quarter << 30)), 0x1p-30f), x2 = product(x, x);
    float c = 8.93573218e-4f, s = -4.68931627e-3f;
    c = gaussian_term(c, x2, -2.08552536e-2f);
    c = gaussian_term(c, x2, 2.53668517e-1f);
    c = gaussian_term(c, x2, -1.23370051f);
    s = gaussian_term(s, x2, 7.97135457e-2f);
    s = gaussian_term(s, x2, -6.45966709e-1f);
    s = gaussian_term(s, x2, 1.57079637f);
    const float cosine = product(x2, c) + 1.0f, sine = product(x, s);
    const uint32_t first = bits_of_float(quarter & 1 ? sine : cosine),
                   second = bits_of_float(quarter & 1 ? cosine : sine);
    even = product(r, float_of_bits(first ^ ((quarter + 1) & 2) << 30));
    odd = product(r, float_of_bits(second ^ (quarter & 2) << 30));
}

template <class T> struct gaussian_axpy_op {
    template <int N>
    static DEVICE void step_of(const gaussian_axpy_params &p, const simt_dropout &generator, const unit &u) {
        float x[N], z[N < 4 ? 4 : N];
        const uint64_t block = (uint64_t)u.index / 4;
        if constexpr (N > 1) {
            if (u.index % 4 != 0) {
                for (unit one = u; one.at < u.at + N; one.at++, one.index++) step_of<1>(p, generator, one);
                return;
            }
        }
#pragma unroll
        for (int i = 0; i < (N + 3) / 4; i++) {
            const four words = philox(generator, (uint32_t)(block + i), (uint32_t)((block + i) >> 32));
            gaussian_pair(words, 0, z[4 * i], z[4 * i + 1]);
            gaussian_pair(words, 1, z[4 * i + 2], z[4 * i + 3]);
        }
        if constexpr (N == 1) {
            const int k = (int)(u.index % 4);
            z[0] = k == 0 ? z[0] : k == 1 ? z[1] : k == 2 ? z[2] : z[3];
        }
        const float alpha = p.told ? *p.told : p.alpha;
        unit_load<T>(x, p.walk, GAUSSIAN_AXPY_X, u);
#pragma unroll
        for (int k = 0; k < N; k++) x[k] = x[k] + product(alpha, z[k]);
        unit_store<T>(x, p.walk, GAUSSIAN_AXPY_Y, u);
    }
    template <int N> static DEVICE void step(const gaussian_axpy_params &p, const unit &u) {
        step_of<N>(p, p.generator, u);
    }
};

/* With a key that only the device has. */
template <class T> struct gaussian_axpy_told_op {
    template <int N> static DEVICE void step(const gaussian_axpy_params &p, const unit &u) {
        gaussian_axpy_op<T>::template step_of<N>(p, dropout_told(p.generator, p.philox), u);
    }
};

#define GAUSSIAN_AXPY(T) \
    WALK_1(gaussian_axpy, gaussian_axpy_params, T) WALK_1(gaussian_axpy_told, gaussian_axpy_params, T)
GAUSSIAN_AXPY(f32)
GAUSSIAN_AXPY(bf16)
GAUSSIAN_AXPY(f16)
