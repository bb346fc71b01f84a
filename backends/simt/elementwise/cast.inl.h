/* SPDX-License-Identifier: Apache-2.0 */
/* cast on devices: all but float64 to float64 goes through float, which holds every narrower type exactly. */
#include <trine/elementwise.h>

#include "backends/simt/core/float8.h"
#include "backends/simt/core/walk.h"
#include "spec/places/cast.h"

using cast_params = walk_call<trine_cast_args>;

struct f64 {
    using bits = double;
};

/* Rounded to float so that rounding it further to nearest even, to at most 22 bits, gives what rounding x once would:
 * towards zero, with the last bit set if inexact (Boldo and Melquiond 2008). */
DEVICE float to_odd(double x) {
    const float near = (float)x;
    const double wide = near;
    uint32_t bits = bits_of_float(near);
    bits -= (wide < 0 ? -wide : wide) > (x < 0 ? -x : x);
    bits |= wide < x || wide > x;
    return float_of_bits(bits);
}

/* What rounds to T as x does. */
template <class T> DEVICE float narrowed(double x, T) { return to_odd(x); }
DEVICE float narrowed(double x, f32) { return (float)x; }

DEVICE double finite(double x, bool saturate) {
    const double largest = 0x1.fffffffffffffp1023;
    return saturate && x > largest ? largest : saturate && x < -largest ? -largest : x;
}

/* A vector of X as floats: for a T that they are then rounded to. And floats as a vector of T. */
template <class X> struct source {
    template <class T, int N> static DEVICE void load(float (&v)[N], const cast_params &p, const unit &u) {
        unit_load<X>(v, p.walk, CAST_X, u);
    }
};
template <> struct source<f64> {
    template <class T, int N> static DEVICE void load(float (&v)[N], const cast_params &p, const unit &u) {
        double x[N];
        unit_load_bits(x, p.walk, CAST_X, u);
#pragma unroll
        for (int k = 0; k < N; k++) v[k] = narrowed(x[k], T());
    }
};
template <int FRACTION, int BIAS, int MOST, bool INF, bool FNUZ>
struct source<float8<FRACTION, BIAS, MOST, INF, FNUZ>> {
    using type = float8<FRACTION, BIAS, MOST, INF, FNUZ>;
    template <class T, int N> static DEVICE void load(float (&v)[N], const cast_params &p, const unit &u) {
        const uint8_t *from = unit_place<N, uint8_t>(p.walk, CAST_X, u);
        if constexpr (N == 1) {
            v[0] = type::get(*from);
        } else {
            const packed<uint16_t, N / 2> pairs = *(const packed<uint16_t, N / 2> *)from;
#pragma unroll
            for (int k = 0; k < N; k += 2) type::get_pair(v[k], v[k + 1], pairs.v[k / 2]);
        }
    }
};

template <class T> struct sink {
    template <int N> static DEVICE void store(float (&v)[N], const cast_params &p, const unit &u) {
        const float largest = T::largest();
        if (p.args.saturate)
#pragma unroll
            for (int k = 0; k < N; k++) {
                v[k] = v[k] > largest ? largest : v[k];
                v[k] = v[k] < -largest ? -largest : v[k];
            }
        unit_store<T>(v, p.walk, CAST_Y, u);
    }
};
template <> struct sink<f64> {
    template <int N> static DEVICE void store(float (&v)[N], const cast_params &p, const unit &u) {
        double y[N];
#pragma unroll
        for (int k = 0; k < N; k++) y[k] = finite(v[k], p.args.saturate);
        unit_store_bits(y, p.walk, CAST_Y, u);
    }
};
template <int FRACTION, int BIAS, int MOST, bool INF, bool FNUZ> struct sink<float8<FRACTION, BIAS, MOST, INF, FNUZ>> {
    using type = float8<FRACTION, BIAS, MOST, INF, FNUZ>;
    template <int N> static DEVICE void store(const float (&v)[N], const cast_params &p, const unit &u) {
        uint8_t *to = unit_place<N, uint8_t>(p.walk, CAST_Y, u);
        if constexpr (N == 1) {
            *to = type::put(v[0], p.args.saturate);
        } else {
            uint16_t pairs[N / 2];
#pragma unroll
            for (int k = 0; k < N; k += 2) pairs[k / 2] = type::put_pair(v[k], v[k + 1], p.args.saturate);
            store_whole(pairs, to);
        }
    }
};

template <class X, class T> struct cast_op {
    template <int N> static DEVICE void step(const cast_params &p, const unit &u) {
        float v[N];
        source<X>::template load<T>(v, p, u);
        sink<T>::store(v, p, u);
    }
};
template <> struct cast_op<f64, f64> {
    template <int N> static DEVICE void step(const cast_params &p, const unit &u) {
        double x[N];
        unit_load_bits(x, p.walk, CAST_X, u);
#pragma unroll
        for (int k = 0; k < N; k++) x[k] = finite(x[k], p.args.saturate);
        unit_store_bits(x, p.walk, CAST_Y, u);
    }
};

#define EACH_TARGET(X) \
    WALK_ASKING_2(cast, cast_params, X, f64) \
    WALK_ASKING_2(cast, cast_params, X, f32) \
    WALK_ASKING_2(cast, cast_params, X, f16) \
    WALK_ASKING_2(cast, cast_params, X, bf16) \
    WALK_ASKING_2(cast, cast_params, X, e4m3) \
    WALK_ASKING_2(cast, cast_params, X, e4m3fnuz) \
    WALK_ASKING_2(cast, cast_params, X, e5m2) \
    WALK_ASKING_2(cast, cast_params, X, e5m2fnuz)
WALK_TYPES_2(CAST, X, T)
EACH_TARGET(f64)
EACH_TARGET(f32)
EACH_TARGET(f16)
EACH_TARGET(bf16)
EACH_TARGET(e4m3)
EACH_TARGET(e4m3fnuz)
EACH_TARGET(e5m2)
EACH_TARGET(e5m2fnuz)
