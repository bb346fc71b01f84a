/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of numbers of the type REAL; NAME() makes names of its own. */

/* to[c] = sum of weight row[c], by fours. */
static void NAME(combine)(REAL *to, const wavelet_rows *rows, const double *weight, int64_t n, int64_t step) {
    memset(to, 0, (size_t)n * sizeof *to);
    for (int r = 0; r < rows->count; r += 4) {
        const REAL *from[4];
        REAL by[4];
        const int count = rows->count - r < 4 ? rows->count - r : 4;
        for (int i = 0; i < count; i++) {
            from[i] = (const REAL *)(const void *)rows->row[r + i];
            by[i] = (REAL)weight[r + i];
        }
        if (count == 4 && step == 1) {
            const REAL *const a = from[0], *const b = from[1], *const c = from[2], *const d = from[3];
            for (int64_t i = 0; i < n; i++) to[i] += by[0] * a[i] + by[1] * b[i] + by[2] * c[i] + by[3] * d[i];
            continue;
        }
        for (int j = 0; j < count; j++)
            for (int64_t i = 0; i < n; i++) to[i] += by[j] * from[j][i * step];
    }
}

static void NAME(put)(char *to, const REAL *from, int64_t n, int64_t step) {
    if (step == 1)
        memcpy(to, from, (size_t)n * sizeof *from);
    else
        for (int64_t i = 0; i < n; i++) ((REAL *)(void *)to)[i * step] = from[i];
}
