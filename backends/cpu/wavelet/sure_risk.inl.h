/* SPDX-License-Identifier: Apache-2.0 */
/* sure_risk's sum over a row of numbers of the type REAL, in a step that is known to be 1 or not. */

INLINE double NAME(term)(REAL x, double threshold, double variance) {
    const double a = fabs((double)x), least = a > threshold ? threshold : a;
    return least * least + (a > threshold ? variance : -variance);
}

INLINE void NAME(add)(double *sum, const REAL *x, double threshold, double variance, int64_t n, int64_t step) {
    double own[BAND_LANES];
    int64_t at = 0;
    memcpy(own, sum, sizeof own);
    for (; at + BAND_LANES <= n; at += BAND_LANES)
        for (int l = 0; l < BAND_LANES; l++) own[l] += NAME(term)(x[(at + l) * step], threshold, variance);
    for (int l = 0; at + l < n; l++) own[l] += NAME(term)(x[(at + l) * step], threshold, variance);
    memcpy(sum, own, sizeof own);
}

static void NAME(row)(double *sum, const char *x, double threshold, double variance, int64_t n, int64_t step) {
    if (step == 1)
        NAME(add)(sum, (const REAL *)(const void *)x, threshold, variance, n, 1);
    else
        NAME(add)(sum, (const REAL *)(const void *)x, threshold, variance, n, step);
}
