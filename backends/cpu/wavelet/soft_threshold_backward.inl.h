/* SPDX-License-Identifier: Apache-2.0 */
/* soft_threshold_backward's row of numbers of the type REAL; what it returns is added to the threshold's gradient. */

INLINE REAL NAME(own)(REAL x, REAL dy, REAL threshold) {
    const REAL rest = ABS(x) - threshold;
    return rest > 0 ? dy : rest == rest ? 0 : rest;
}

/* In steps that are known to be 1 or not, and dx known to be there or not. */
INLINE double NAME(pass)(REAL *dx, const REAL *dy, const REAL *x, REAL threshold, int64_t n, int64_t dx_step,
                         int64_t dy_step, int64_t x_step, const bool STORE) {
    double sum[BAND_LANES] = { 0 }, all = 0;
    int64_t at = 0;
    for (; at + BAND_LANES <= n; at += BAND_LANES)
        for (int l = 0; l < BAND_LANES; l++) {
            const REAL v = x[(at + l) * x_step], own = NAME(own)(v, dy[(at + l) * dy_step], threshold);
            sum[l] += v < 0 ? (double)own : -(double)own;
            if (STORE) dx[(at + l) * dx_step] = own;
        }
    for (int l = 0; at + l < n; l++) {
        const REAL v = x[(at + l) * x_step], own = NAME(own)(v, dy[(at + l) * dy_step], threshold);
        sum[l] += v < 0 ? (double)own : -(double)own;
        if (STORE) dx[(at + l) * dx_step] = own;
    }
    for (int l = 0; l < BAND_LANES; l++) all += sum[l];
    return all;
}

static double NAME(row)(char *dx_row, const char *dy_row, const char *x_row, double level, int64_t n,
                        const int64_t step[3]) {
    REAL *dx = (REAL *)(void *)dx_row;
    const REAL *dy = (const REAL *)(const void *)dy_row, *x = (const REAL *)(const void *)x_row,
               threshold = (REAL)level;
    const bool whole = (!dx || step[0] == 1) && step[1] == 1 && step[2] == 1;
    if (whole && dx) return NAME(pass)(dx, dy, x, threshold, n, 1, 1, 1, true);
    if (whole) return NAME(pass)(dx, dy, x, threshold, n, 1, 1, 1, false);
    if (dx) return NAME(pass)(dx, dy, x, threshold, n, step[0], step[1], step[2], true);
    return NAME(pass)(dx, dy, x, threshold, n, step[0], step[1], step[2], false);
}
