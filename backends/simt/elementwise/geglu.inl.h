/* SPDX-License-Identifier: Apache-2.0 */
/* geglu on devices. */
#include "gelu.h"
#include "backends/simt/core/walk.h"
#include "spec/places/geglu.h"

using geglu_params = walk_call<trine_geglu_args>;

template <class T> struct geglu_op {
    template <int N> static DEVICE void step(const geglu_params &p, const unit &u) {
        float gate[N], up[N], y[N];
        bool all = true;
        unit_load<T>(gate, p.walk, GEGLU_GATE, u);
        unit_load<T>(up, p.walk, GEGLU_UP, u);
        gelu_each<N>(p.args.form, [&](int k, auto form) {
            y[k] = form.template value<T>(gate[k]) * up[k];
            all = all && form.template serves<T>(y[k]);
        });
        if (!all)
            gelu_each<N>(p.args.form, [&](int k, auto form) {
                y[k] = form.template serves<T>(y[k]) ? y[k] : form.template value<f32>(gate[k]) * up[k];
            });
        unit_store<T>(y, p.walk, GEGLU_Y, u);
    }
};

EACH_FLOAT_1(WALK_1, geglu, geglu_params)
