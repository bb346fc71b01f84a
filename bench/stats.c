/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles, and the Mann-Whitney test. Source: Mann and Whitney 1947. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(const double *values, int count, double q) {
    double sorted[BENCH_MOST_SAMPLES];
    if (count > BENCH_MOST_SAMPLES) count = BENCH_MOST_SAMPLES;
    if (count < 1) return 0;
    memcpy(sorted, values, sizeof *values * (size_t)count);
    qsort(sorted, (size_t)count, sizeof *sorted, ascending);
    const double place = q * (count - 1);
    const int below = (int)place;
    return below + 1 < count ? sorted[below] + (place - below) * (sorted[below + 1] - sorted[below]) : sorted[below];
}

/* The share of the orders of na + nb values in which U is at most u, by the recurrence on which sample the largest
 * value belongs to. */
static double exact_tail(int na, int nb, int u) {
    enum { MOST = 40 };
    /* [j][v]: orders of i values of a and j of b with U = v, for the present i */
    static double ways[MOST + 1][MOST * MOST / 4 + 1];
    memset(ways, 0, sizeof ways);
    for (int j = 0; j <= nb; j++) ways[j][0] = 1;
    for (int i = 1; i <= na; i++)
        for (int j = 1; j <= nb; j++)
            for (int v = i * j; v >= 0; v--) ways[j][v] = (v >= j ? ways[j][v - j] : 0) + ways[j - 1][v];
    double below = 0, all = 0;
    for (int v = 0; v <= na * nb; v++) {
        all += ways[nb][v];
        if (v <= u) below += ways[nb][v];
    }
    return below / all;
}

double bench_mann_whitney(const double *a, int na, const double *b, int nb) {
    if (na < 1 || nb < 1) return 1;
    double u = 0, ties = 0;
    for (int i = 0; i < na; i++)
        for (int j = 0; j < nb; j++) u += a[i] > b[j] ? 1 : a[i] == b[j] ? 0.5 : 0;
    const int n = na + nb;
    double *all = malloc(sizeof *all * (size_t)n);
    if (all == NULL) return 1;
    memcpy(all, a, sizeof *a * (size_t)na);
    memcpy(all + na, b, sizeof *b * (size_t)nb);
    qsort(all, (size_t)n, sizeof *all, ascending);
    for (int i = 0, k; i < n; i = k) {
        for (k = i; k < n && all[k] == all[i]; k++) continue;
        ties += pow(k - i, 3) - (k - i);
    }
    free(all);
    const double mean = 0.5 * na * nb;
    if (ties == 0 && n <= 40) return fmin(1, 2 * exact_tail(na, nb, (int)fmin(u, (double)na * nb - u)));
    const double variance = na * (double)nb / 12 * (n + 1 - ties / ((double)n * (n - 1)));
    if (variance <= 0) return 1;
    return erfc(fmax(0, fabs(u - mean) - 0.5) / sqrt(2 * variance));
}
