/* SPDX-License-Identifier: Apache-2.0 */
/* soft_threshold's row of numbers of the type REAL, in steps that are known to be 1 or not. */

INLINE void NAME(shrink)(REAL *y, const REAL *x, REAL threshold, int64_t n, int64_t to, int64_t from) {
    for (int64_t i = 0; i < n; i++) {
        const REAL v = x[i * from], rest = ABS(v) - threshold;
        y[i * to] = rest > 0 ? COPY_SIGN(rest, v) : rest == rest ? 0 : rest;
    }
}

static void NAME(row)(char *y, const char *x, double threshold, int64_t n, int64_t to, int64_t from) {
    if (to == 1 && from == 1)
        NAME(shrink)((REAL *)(void *)y, (const REAL *)(const void *)x, (REAL)threshold, n, 1, 1);
    else
        NAME(shrink)((REAL *)(void *)y, (const REAL *)(const void *)x, (REAL)threshold, n, to, from);
}
