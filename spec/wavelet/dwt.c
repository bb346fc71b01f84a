/* SPDX-License-Identifier: Apache-2.0 */
/* dwt: the table and the reference. */
#include "wavelet.h"

#define ARGS trine_dwt_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const wavelet_filters filters = wavelet_filters_of(args->wavelet, 0);
    const int64_t n = trine_ref_dim(ref, "n"), h = trine_ref_dim(ref, "h"), w = trine_ref_dim(ref, "w"),
                  k = trine_ref_dim(ref, "k"), p = trine_ref_dim(ref, "p"), q = trine_ref_dim(ref, "q"), band = p * q;
    const double tiny = wavelet_tiny(ref);
    wavelet_axis along = wavelet_analysis(&filters, args->edge, w, q, tiny),
                 down = wavelet_analysis(&filters, args->edge, h, p, tiny);
    const wavelet_sums x = wavelet_sums_in(ref, "x", n * h * w), y = wavelet_sums_of(n * k * band);
    for (int64_t image = 0; image < n; image++)
        for (int high = 0; high < 2; high++) {
            const wavelet_sums rows = k == 2 ? wavelet_sums_at(y, (image * k + high) * band) : wavelet_sums_of(h * q);
            for (int64_t row = 0; row < h; row++)
                wavelet_apply(&along, high, wavelet_sums_at(x, (image * h + row) * w), wavelet_sums_at(rows, row * q),
                              1);
            for (int lower = 0; lower < (k == 2 ? 0 : 2); lower++)
                wavelet_apply(&down, lower, rows, wavelet_sums_at(y, (image * k + 2 * high + lower) * band), q);
            if (k == 4) free(rows.value);
        }
    wavelet_put(ref, "y", n * k * band, y, (double)(k / 2 * (filters.taps + 5) + 2));
    free(x.value), free(y.value);
    wavelet_axis_free(&along), wavelet_axis_free(&down);
}

const trine_spec trine_spec_dwt = {
    SPEC(dwt),
    .summary = "One level of a discrete wavelet transform, of rows or of images",
    .formula = "k = 2: y[n,s,p,q] = sum over j < F of filter[s,j] x[n, p, 2 q + o - j]; k = 4: y[n,s,p,q] = sum over "
               "i, j < F of filter[s%2,i] filter[s/2,j] x[n, 2 p + o - i, 2 q + o - j]; filter[0] and filter[1] the "
               "low-pass and the high-pass of decomposition, of F taps, o = 1, or F/2 with periodization; x beyond "
               "its ends as edge says",
    .source = "Mallat 1989, sections III and IV; Daubechies 1988, section 4; PyWavelets' dwt and dwt2",
    .tensors = { TENSOR(x, IN | ANY_STRIDE, "T", "[n] h w"),
                 TENSOR(y, OUT | ANY_STRIDE, "T", "[n] k p q", .terms = "1") },
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
