/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtures of von Mises-Fisher distributions on the sphere of d dimensions, fitted by expectation and maximization
 * (Banerjee et al. 2005), whose normalizer asks for Bessel functions that no float64 holds when d is large (Plesner,
 * Sorensen and Hauberg 2024):
 *
 *     log p(x | k) = log C_d(kappa_k) + kappa_k m_k'x
 *     r[i,k]       = softmax over k of log weight_k + log p(x_i | k)
 *     s_k          = sum_i r[i,k] x_i,  m_k = s_k/|s_k|,  A_d(kappa_k) = |s_k| / sum_i r[i,k]
 *
 * matmul makes the logits, with log C_d(kappa) by vmf_log_norm in their bias, softmax r, and matmul the sums. The last
 * equation is solved for kappa by Newton's method (Sra 2012): -A_d is the gradient of vmf_log_norm. Points are drawn by
 * Wood's method (1994). With a file's name the points of the sphere in space are drawn as an SVG picture. */
#include <string.h>

#include "papers.h"

enum { CLUSTERS = 3, POINTS = 3000, ROUNDS = 30, NEWTON = 6 };

static trine_queue *queue;

/* In `d` dimensions: unit vectors, means as rows, and what belongs to a cluster each. */
typedef struct mixture {
    int64_t d;
    float *points, *means, *logits;
    int32_t *cluster; /* that a point was drawn from */
    float weight[CLUSTERS];
    double kappa[CLUSTERS], norm[CLUSTERS];
} mixture;

static void normalize(float *x, int64_t d, double *length_out) {
    double square = 0;
    for (int64_t j = 0; j < d; j++) square += (double)x[j] * x[j];
    *length_out = sqrt(square);
    for (int64_t j = 0; j < d; j++) x[j] = (float)(x[j] / *length_out);
}

static double chi_square(int64_t count) {
    double sum = 0;
    for (int64_t j = 0; j < count; j++) {
        const double x = (double)normal();
        sum += x * x;
    }
    return sum;
}

/* The cosine of a point's angle with the mean. */
static double draw_cosine(int64_t d, double kappa) {
    const double n = (double)(d - 1), b = n / (2 * kappa + sqrt(4 * kappa * kappa + n * n)), x = (1 - b) / (1 + b),
                 c = kappa * x + n * log(1 - x * x);
    for (;;) {
        const double a = chi_square(d - 1), z = a / (a + chi_square(d - 1)), w = (1 - (1 + b) * z) / (1 - (1 - b) * z);
        if (kappa * w + n * log(1 - x * w) - c >= log(1 - uniform())) return w;
    }
}

static void draw_point(const float *mean, int64_t d, double kappa, float *x) {
    const double w = draw_cosine(d, kappa);
    double along = 0, length;
    for (int64_t j = 0; j < d; j++) x[j] = normal(), along += (double)x[j] * mean[j];
    for (int64_t j = 0; j < d; j++) x[j] -= (float)(along * mean[j]);
    normalize(x, d, &length);
    for (int64_t j = 0; j < d; j++) x[j] = (float)(sqrt(1 - w * w) * x[j] + w * mean[j]);
    normalize(x, d, &length);
}

/* Of the clusters 0, 1, 1, 2, 2, 2, .. in turn. */
static mixture make_mixture(int64_t d, const double kappa[CLUSTERS], float *means) {
    mixture m = { .d = d,
                  .points = floats(POINTS * d),
                  .means = floats(CLUSTERS * d),
                  .logits = floats(POINTS * CLUSTERS),
                  .cluster = calloc(POINTS, sizeof(int32_t)) };
    double length;
    if (m.cluster == NULL) exit(1);
    for (int k = 0; k < CLUSTERS; k++) {
        for (int64_t j = 0; j < d; j++) means[k * d + j] = normal();
        normalize(means + k * d, d, &length);
    }
    for (int64_t i = 0; i < POINTS; i++) {
        const int turn = (int)(i % 6), k = turn < 1 ? 0 : turn < 3 ? 1 : 2;
        m.cluster[i] = k;
        draw_point(means + k * d, d, kappa[k], m.points + i * d);
    }
    return m;
}

static void free_mixture(mixture *m) { free(m->points), free(m->means), free(m->logits), free(m->cluster); }

/* Begins with points that are far from each other. */
static void begin(mixture *m) {
    int64_t first[CLUSTERS] = { 0 };
    for (int k = 1; k < CLUSTERS; k++) {
        double least = INFINITY;
        for (int64_t i = 0; i < POINTS; i++) {
            double near = -1;
            for (int c = 0; c < k; c++) {
                double dot = 0;
                for (int64_t j = 0; j < m->d; j++)
                    dot += (double)m->points[i * m->d + j] * m->points[first[c] * m->d + j];
                near = fmax(near, dot);
            }
            if (near < least) least = near, first[k] = i;
        }
    }
    for (int k = 0; k < CLUSTERS; k++) {
        memcpy(m->means + k * m->d, m->points + first[k] * m->d, (size_t)m->d * sizeof(float));
        m->kappa[k] = (double)m->d, m->weight[k] = 1.0f / CLUSTERS;
    }
}

/* Logits and, from them, r in m->logits; returns the mean log-likelihood. */
static double expect(mixture *m) {
    float *scaled = floats(CLUSTERS * m->d), bias[CLUSTERS];
    const trine_tensor kappa = trine_tensor_1d(m->kappa, TRINE_F64, CLUSTERS),
                       norm = trine_tensor_1d(m->norm, TRINE_F64, CLUSTERS), x = matrix(m->points, POINTS, m->d),
                       mean = matrix(scaled, CLUSTERS, m->d), across = trine_tensor_transpose(&mean),
                       logits = matrix(m->logits, POINTS, CLUSTERS), added = vector(bias, CLUSTERS);
    RUN(vmf_log_norm, .kappa = &kappa, .y = &norm, .dimension = m->d);
    need(trine_queue_wait(queue));
    double likelihood = 0, base = m->norm[0];
    for (int k = 0; k < CLUSTERS; k++) {
        bias[k] = (float)(m->norm[k] - base + log((double)m->weight[k]));
        for (int64_t j = 0; j < m->d; j++) scaled[k * m->d + j] = (float)(m->kappa[k] * m->means[k * m->d + j]);
    }
    RUN(matmul, .a = &x, .b = &across, .bias = &added, .d = &logits);
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < POINTS; i++) {
        const float *row = m->logits + i * CLUSTERS;
        double most = -INFINITY, sum = 0;
        for (int k = 0; k < CLUSTERS; k++) most = fmax(most, (double)row[k]);
        for (int k = 0; k < CLUSTERS; k++) sum += exp(row[k] - most);
        likelihood += (base + most + log(sum)) / POINTS;
    }
    RUN(softmax, .x = &logits, .y = &logits);
    need(trine_queue_wait(queue));
    free(scaled);
    return likelihood;
}

/* kappa of A_d(kappa) = length for each cluster, by Newton's method from Banerjee's estimate. A' is
 * 1 - A^2 - (d-1) A/kappa. */
static void solve(mixture *m, const double length[CLUSTERS]) {
    double minus[CLUSTERS], slope[CLUSTERS];
    const double d = (double)m->d;
    for (int k = 0; k < CLUSTERS; k++) {
        m->kappa[k] = length[k] * (d - length[k] * length[k]) / (1 - length[k] * length[k]);
        minus[k] = -1;
    }
    const trine_tensor kappa = trine_tensor_1d(m->kappa, TRINE_F64, CLUSTERS),
                       dy = trine_tensor_1d(minus, TRINE_F64, CLUSTERS),
                       a = trine_tensor_1d(slope, TRINE_F64, CLUSTERS);
    for (int turn = 0; turn < NEWTON; turn++) {
        RUN(vmf_log_norm_backward, .dy = &dy, .kappa = &kappa, .dkappa = &a, .dimension = m->d);
        need(trine_queue_wait(queue));
        for (int k = 0; k < CLUSTERS; k++)
            m->kappa[k] -= (slope[k] - length[k]) / (1 - slope[k] * slope[k] - (d - 1) / m->kappa[k] * slope[k]);
    }
}

static void maximize(mixture *m) {
    const trine_tensor r = matrix(m->logits, POINTS, CLUSTERS), down = trine_tensor_transpose(&r),
                       x = matrix(m->points, POINTS, m->d), sums = matrix(m->means, CLUSTERS, m->d),
                       counts = vector(m->weight, CLUSTERS);
    RUN(matmul, .a = &down, .b = &x, .d = &sums);
    RUN(reduce_sum, .x = &r, .column_sums = &counts);
    need(trine_queue_wait(queue));
    double length[CLUSTERS];
    for (int k = 0; k < CLUSTERS; k++) {
        normalize(m->means + k * m->d, m->d, &length[k]);
        length[k] /= m->weight[k];
        m->weight[k] /= POINTS;
    }
    solve(m, length);
}

/* The fitted cluster whose mean is nearest to a true one, and the cosine of their angle. */
static int nearest(const mixture *m, const float *mean, double *cosine_out) {
    int best = 0;
    *cosine_out = -2;
    for (int k = 0; k < CLUSTERS; k++) {
        double dot = 0;
        for (int64_t j = 0; j < m->d; j++) dot += (double)mean[j] * m->means[k * m->d + j];
        if (dot > *cosine_out) *cosine_out = dot, best = k;
    }
    return best;
}

/* The hemisphere towards the reader, and behind it the other one, paler. */
static void draw(const mixture *m, const char *name) {
    static const char *const colour[CLUSTERS] = { "#c1440e", "#1f6f8b", "#5b8c2a" };
    FILE *file = fopen(name, "w");
    if (file == NULL) {
        fprintf(stderr, "%s: cannot be written\n", name);
        exit(1);
    }
    fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-1.1 -1.1 2.2 2.2\" width=\"600\">\n"
                  "<circle r=\"1\" fill=\"#f6f6f2\" stroke=\"#999\" stroke-width=\".005\"/>\n");
    for (int front = 0; front < 2; front++)
        for (int64_t i = 0; i < POINTS; i++) {
            const float *x = m->points + 3 * i, *r = m->logits + CLUSTERS * i;
            const int k = r[1] > r[0] ? (r[2] > r[1] ? 2 : 1) : r[2] > r[0] ? 2 : 0;
            if ((x[2] >= 0) == front)
                fprintf(file, "<circle cx=\"%.4f\" cy=\"%.4f\" r=\".011\" fill=\"%s\" opacity=\"%s\"/>\n", (double)x[0],
                        (double)-x[1], colour[k], front ? ".8" : ".2");
        }
    fprintf(file, "</svg>\n");
    if (fclose(file) != 0) exit(1);
}

/* Fits one mixture, and prints a line for each of its clusters. */
static void fit(int64_t d, const double kappa[CLUSTERS], const char *picture) {
    float *means = floats(CLUSTERS * d);
    mixture m = make_mixture(d, kappa, means);
    begin(&m);
    const double start = seconds();
    double first = expect(&m), before = first, now = first;
    for (int round = 0; round < ROUNDS; round++, before = now) {
        maximize(&m);
        now = expect(&m);
        agree("a step's loss of likelihood", before - now, 1e-4 * (1 + fabs(now)));
    }
    const double took = seconds() - start;
    for (int k = 0; k < CLUSTERS; k++) {
        double cosine;
        const int found = nearest(&m, means + k * d, &cosine);
        int64_t right = 0, all = 0;
        for (int64_t i = 0; i < POINTS; i++) {
            if (m.cluster[i] != k) continue;
            all++;
            right += m.logits[i * CLUSTERS + found] > 0.5f;
        }
        const double share = (double)right / (double)all;
        printf("%6lld   %8.0f   %9.1f   %7.5f   %6.3f   %6.3f", (long long)d, kappa[k], m.kappa[found], cosine,
               (double)m.weight[found], share);
        if (k == 0) printf("   %12.2f   %7.2f", now, 1e3 * took / ROUNDS);
        printf("\n");
        agree("kappa, relative to what points were drawn with", fabs(m.kappa[found] / kappa[k] - 1), 0.25);
        agree("1 - share of a cluster's points that it has", 1 - share, 0.15);
    }
    if (picture != NULL) draw(&m, picture);
    free_mixture(&m), free(means);
}

int main(int argc, char **argv) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    static const struct {
        int64_t d;
        double kappa[CLUSTERS];
    } made[] = { { 3, { 20, 60, 200 } }, { 64, { 60, 120, 400 } }, { 1024, { 700, 1500, 4000 } } };
    printf("%d points of %d clusters, %d rounds\n\n", POINTS, CLUSTERS, ROUNDS);
    printf("     d      kappa      fitted    cosine   weight    right   likelihood    ms a round\n");
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        fit(made[i].d, made[i].kappa, made[i].d == 3 && argc > 1 ? argv[1] : NULL);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
