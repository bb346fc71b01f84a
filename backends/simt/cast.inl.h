/* SPDX-License-Identifier: Apache-2.0 */
/* cast on devices: all but float64 to float64 goes through float, which holds every narrower type exactly. */
#include <trine/trine.h>

#include "float8.h"
#include "walk.h"

using cast_params = walk_call<trine_cast_args>;

struct f64 {
    using bits = double;
};

/* Rounded to float so that rounding it further to nearest even, to at most 22 bits, gives what rounding x once would: towards zero, with the last bit set
 * if inexact (Boldo and Melquiond 2008). */
DEVICE float to_odd(double x) {
    const float near = (float)x;
    const double wide = near;
    uint32_t bits = bits_of_float(near);
    bits -= (wide < 0 ? -wide : wide) > (x < 0 ? -x : x);
    bits |= wide < x || wide > x;
    return float_of_bits(bits);
}

template <class X> struct source {
    template <class T> static DEVICE float get(typename X::bits x) { return X::get(x); }
};
template <> struct source<f64> {
    template <class T> static DEVICE float get(double x) { return to_odd(x); }
};
template <> DEVICE float source<f64>::get<f32>(double x) { return (float)x; }

template <class T> struct sink {
    static DEVICE typename T::bits put(float x, bool saturate) {
        if (!saturate) return T::put(x);
        const float largest = T::largest();
        return T::put(x > largest ? largest : x < -largest ? -largest : x);
    }
};
template <int FRACTION, int BIAS, int MOST, bool INF, bool FNUZ> struct sink<float8<FRACTION, BIAS, MOST, INF, FNUZ>> {
    static DEVICE uint8_t put(float x, bool saturate) { return float8<FRACTION, BIAS, MOST, INF, FNUZ>::put(x, saturate); }
};

DEVICE double finite(double x, bool saturate) {
    const double largest = 0x1.fffffffffffffp1023;
    return saturate && x > largest ? largest : saturate && x < -largest ? -largest : x;
}
template <> struct sink<f64> {
    static DEVICE double put(float x, bool saturate) { return finite(x, saturate); }
};

template <class X, class T> struct conversion {
    static DEVICE typename T::bits of(typename X::bits x, bool saturate) { return sink<T>::put(source<X>::template get<T>(x), saturate); }
};
template <> struct conversion<f64, f64> {
    static DEVICE double of(double x, bool saturate) { return finite(x, saturate); }
};

template <class X, class T> struct cast_op {
    template <int N> static DEVICE void step(const cast_params &p, const unit &u) {
        typename X::bits x[N];
        typename T::bits y[N];
        unit_load_bits(x, p.walk, 0, u);
#pragma unroll
        for (int k = 0; k < N; k++) y[k] = conversion<X, T>::of(x[k], p.args.saturate);
        unit_store_bits(y, p.walk, 1, u);
    }
};

#define EACH_TARGET(X) \
    WALK_2(cast, cast_params, X, f64) \
    WALK_2(cast, cast_params, X, f32) \
    WALK_2(cast, cast_params, X, f16) \
    WALK_2(cast, cast_params, X, bf16) \
    WALK_2(cast, cast_params, X, e4m3) \
    WALK_2(cast, cast_params, X, e4m3fnuz) \
    WALK_2(cast, cast_params, X, e5m2) \
    WALK_2(cast, cast_params, X, e5m2fnuz)
EACH_TARGET(f64)
EACH_TARGET(f32)
EACH_TARGET(f16)
EACH_TARGET(bf16)
EACH_TARGET(e4m3)
EACH_TARGET(e4m3fnuz)
EACH_TARGET(e5m2)
EACH_TARGET(e5m2fnuz)
