/* SPDX-License-Identifier: Apache-2.0 */
/* idwt: the table and the reference. */
#include "wavelet.h"

#define ARGS trine_idwt_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const wavelet_filters filters = wavelet_filters_of(args->wavelet, 1);
    const int64_t n = trine_ref_dim(ref, "n"), h = trine_ref_dim(ref, "h"), w = trine_ref_dim(ref, "w"),
                  k = trine_ref_dim(ref, "k"), p = trine_ref_dim(ref, "p"), q = trine_ref_dim(ref, "q"), band = p * q;
    const double tiny = wavelet_tiny(ref);
    wavelet_axis along = wavelet_synthesis(&filters, args->edge, q, w, tiny),
                 down = wavelet_synthesis(&filters, args->edge, p, h, tiny);
    const wavelet_sums y = wavelet_sums_in(ref, "y", n * k * band), x = wavelet_sums_of(n * h * w);
    for (int64_t image = 0; image < n; image++)
        for (int high = 0; high < 2; high++) {
            const wavelet_sums rows = k == 2 ? wavelet_sums_at(y, (image * k + high) * band) : wavelet_sums_of(h * q);
            for (int lower = 0; lower < (k == 2 ? 0 : 2); lower++)
                wavelet_apply(&down, lower, wavelet_sums_at(y, (image * k + 2 * high + lower) * band), rows, q);
            for (int64_t row = 0; row < h; row++)
                wavelet_apply(&along, high, wavelet_sums_at(rows, row * q), wavelet_sums_at(x, (image * h + row) * w),
                              1);
            if (k == 4) free(rows.value);
        }
    wavelet_put(ref, "x", n * h * w, x, (double)(k / 2 * (filters.taps + 5) + 2));
    free(x.value), free(y.value);
    wavelet_axis_free(&along), wavelet_axis_free(&down);
}

const trine_spec trine_spec_idwt = {
    SPEC(idwt),
    .summary = "The inverse of one level of a discrete wavelet transform",
    .formula = "k = 2: x[n,h,w] = sum over s < 2, j < F of filter[s,j] y[n, s, h, (w + o - j)/2]; k = 4: x[n,h,w] = "
               "sum over s < 4, i, j < F of filter[s%2,i] filter[s/2,j] y[n, s, (h + o - i)/2, (w + o - j)/2], over "
               "whole numbers; filter[0] and filter[1] the low-pass and the high-pass of reconstruction, of F taps, "
               "o = F - 2, or F/2 - 1 with periodization, where places go round",
    .source = "Mallat 1989, sections III and IV; Cohen, Daubechies and Feauveau 1992, section 6; PyWavelets' idwt and "
              "idwt2",
    .tensors = { TENSOR(y, IN | ANY_STRIDE, "T", "[n] k p q"),
                 TENSOR(x, OUT | ANY_STRIDE, "T", "[n] h w", .terms = "1") },
    .params = { WAVELET_PARAMS },
    .types = { "T=f32|f64" },
    .require = { WAVELET_REQUIRE },
    .flops = "10*n*k*(p*q + h*w)",
    .independent = "n",
    .sizes = { "n: 1 0 2 5", "h: 6 0 1 2 3 7 16 33", "w: 8 0 1 2 3 5 31 64 130", "k: 2 4", "p: 6 0 1 2 3 7 16 20",
               "q: 4 0 1 2 5 17 33 70" },
    .cases = { "rows db4: T=f32 n=1 h=4096 w=4096 k=2 p=4096 q=2051 wavelet=db4",
               "image db5: T=f32 n=1 h=4096 w=4096 k=4 p=2052 q=2052 wavelet=db5",
               "image bior4.4, periodization: T=f32 n=8 h=1024 w=1024 k=4 p=512 q=512 wavelet=bior4_4 "
               "edge=periodization",
               "cube haar f64: T=f64 n=64 h=256 w=256 k=4 p=128 q=128 wavelet=haar" },
    .reference = reference,
};
