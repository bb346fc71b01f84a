/* SPDX-License-Identifier: Apache-2.0 */
/* A cube of hyperspectral images is denoised as HyDe's methods do (Coquelin et al. 2022, HyDe): principal components of
 * its bands, whose images are made of wavelets, of which soft thresholds of least estimated risk (SURE) leave the
 * large ones. The cube is made: materials with smooth spectra in patches, and normal noise. Prints the ratio of signal
 * to noise before and after, beside each of the two steps alone. With a file's name: a picture, as PPM, of three bands
 * in their noise, denoised, and as they were. */
#include <string.h>

#include "papers.h"

enum { SIDE = 96, BANDS = 48, MATERIALS = 5, KEPT = 8, LEVELS = 3, THRESHOLDS = 32 };
enum { PIXELS = SIDE * SIDE, CUBE = BANDS * PIXELS };
static const double DEVIATION = 0.12;
static trine_queue *queue;

/* Patches with edges that are straight or round, and a slow change of light over them. */
static int material_at(int y, int x) {
    const double u = (double)x / SIDE, v = (double)y / SIDE;
    if (hypot(u - 0.3, v - 0.35) < 0.2) return 1;
    if (hypot(u - 0.7, v - 0.7) < 0.22) return hypot(u - 0.72, v - 0.66) < 0.08 ? 4 : 2;
    return u + 0.6 * v > 0.95 ? 3 : 0;
}

static void make_cube(float *clean, float *noisy) {
    for (int band = 0; band < BANDS; band++) {
        double spectrum[MATERIALS];
        for (int m = 0; m < MATERIALS; m++)
            spectrum[m] = 0.5 + 0.3 * sin(0.12 * band * (m + 1) + m) + 0.15 * cos(0.31 * band - 2 * m);
        for (int i = 0; i < PIXELS; i++) {
            const double light = 0.8 + 0.2 * sin(3.0 * (i % SIDE) / SIDE) * cos(2.0 * (i / SIDE) / SIDE);
            clean[band * PIXELS + i] = (float)(light * spectrum[material_at(i / SIDE, i % SIDE)]);
            noisy[band * PIXELS + i] = clean[band * PIXELS + i] + (float)DEVIATION * normal();
        }
    }
}

static double ratio(const float *clean, const float *x) {
    double signal = 0, noise = 0;
    for (int i = 0; i < CUBE; i++) {
        signal += (double)clean[i] * clean[i];
        noise += ((double)x[i] - clean[i]) * ((double)x[i] - clean[i]);
    }
    return 10 * log10(signal / noise);
}

/* Jacobi's rotations: a becomes diagonal, and the columns of v its vectors. */
static void find_vectors(double a[BANDS][BANDS], double v[BANDS][BANDS]) {
    for (int i = 0; i < BANDS; i++)
        for (int j = 0; j < BANDS; j++) v[i][j] = i == j;
    for (int turn = 0; turn < 12; turn++)
        for (int p = 0; p < BANDS; p++)
            for (int q = p + 1; q < BANDS; q++) {
                const double angle = 0.5 * atan2(2 * a[p][q], a[q][q] - a[p][p]), c = cos(angle), s = sin(angle);
                for (int k = 0; k < BANDS; k++) {
                    const double x = a[k][p], y = a[k][q];
                    a[k][p] = c * x - s * y, a[k][q] = s * x + c * y;
                }
                for (int k = 0; k < BANDS; k++) {
                    const double x = a[p][k], y = a[q][k], vx = v[k][p], vy = v[k][q];
                    a[p][k] = c * x - s * y, a[q][k] = s * x + c * y;
                    v[k][p] = c * vx - s * vy, v[k][q] = s * vx + c * vy;
                }
            }
}

/* The rows of `vectors` are the `kept` principal components of the bands, the largest first. */
static void principal(float *x, float *vectors, int kept) {
    static double a[BANDS][BANDS], v[BANDS][BANDS];
    float *gram = floats(BANDS * BANDS);
    const trine_tensor bands = matrix(x, BANDS, PIXELS), across = trine_tensor_transpose(&bands),
                       products = matrix(gram, BANDS, BANDS);
    RUN(matmul, .a = &bands, .b = &across, .d = &products);
    need(trine_queue_wait(queue));
    for (int i = 0; i < BANDS * BANDS; i++) a[i / BANDS][i % BANDS] = gram[i];
    find_vectors(a, v);
    for (int k = 0; k < kept; k++) {
        int best = 0;
        for (int i = 1; i < BANDS; i++)
            if (a[i][i] > a[best][best]) best = i;
        a[best][best] = -1;
        for (int i = 0; i < BANDS; i++) vectors[k * BANDS + i] = (float)v[i][best];
    }
    free(gram);
}

static int compare(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The deviation of noise by the median of the finest diagonal detail (Donoho 1995). */
static float noise_of(const float *y, int64_t images, int64_t band) {
    float *size = floats(images * band);
    for (int64_t i = 0; i < images * band; i++) size[i] = fabsf(y[(i / band * 4 + 3) * band + i % band]);
    qsort(size, (size_t)(images * band), sizeof *size, compare);
    const float deviation = size[images * band / 2] / 0.6745f;
    free(size);
    return deviation;
}

/* Each image's detail band `s` by the threshold of least risk. */
static void shrink(const trine_tensor *y, int s, int64_t images, float sigma) {
    float candidate[THRESHOLDS], *risk = floats(images * THRESHOLDS), *chosen = floats(images);
    trine_tensor band =
        trine_tensor_3d((float *)y->data + s * y->stride[1], TRINE_F32, images, y->shape[2], y->shape[3]);
    band.stride[0] = y->stride[0];
    const double most = sigma * sqrt(2 * log((double)(y->shape[2] * y->shape[3])));
    for (int i = 0; i < THRESHOLDS; i++) candidate[i] = (float)(most * i / (THRESHOLDS - 1));
    const trine_tensor candidates = vector(candidate, THRESHOLDS), risks = matrix(risk, images, THRESHOLDS),
                       thresholds = vector(chosen, images);
    RUN(sure_risk, .x = &band, .threshold = &candidates, .risk = &risks, .sigma = sigma);
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < images; i++) {
        int best = 0;
        for (int g = 1; g < THRESHOLDS; g++)
            if (risk[i * THRESHOLDS + g] < risk[i * THRESHOLDS + best]) best = g;
        chosen[i] = candidate[best];
    }
    RUN(soft_threshold, .x = &band, .threshold = &thresholds, .y = &band);
    need(trine_queue_wait(queue));
    free(risk), free(chosen);
}

/* Images in place. Each level's approximation is the next one's images, a view. */
static void denoise(float *x, int64_t images, bool thresholds) {
    trine_tensor image[LEVELS], y[LEVELS];
    float sigma = 0;
    image[0] = trine_tensor_3d(x, TRINE_F32, images, SIDE, SIDE);
    for (int l = 0; l < LEVELS; l++) {
        const int64_t side = image[l].shape[1] / 2;
        y[l] = trine_tensor_4d(floats(images * 4 * side * side), TRINE_F32, images, 4, side, side);
        RUN(dwt, .x = &image[l], .y = &y[l], .wavelet = TRINE_WAVELET_DB5, .edge = TRINE_WAVELET_PERIODIZATION);
        need(trine_queue_wait(queue));
        if (l == 0) sigma = noise_of(y[0].data, images, side * side);
        for (int s = 1; s < 4 && thresholds; s++) shrink(&y[l], s, images, sigma);
        if (l + 1 == LEVELS) break;
        image[l + 1] = trine_tensor_3d(y[l].data, TRINE_F32, images, side, side);
        image[l + 1].stride[0] = 4 * side * side;
    }
    for (int l = LEVELS - 1; l >= 0; l--) {
        RUN(idwt, .y = &y[l], .x = &image[l], .wavelet = TRINE_WAVELET_DB5, .edge = TRINE_WAVELET_PERIODIZATION);
        need(trine_queue_wait(queue));
        free(y[l].data);
    }
}

/* To the principal components, and back; between them the images of these are denoised. */
static void project(float *x, float *to, bool wavelets) {
    float *vectors = floats(KEPT * BANDS), *parts = floats(KEPT * PIXELS);
    principal(x, vectors, KEPT);
    const trine_tensor bands = matrix(x, BANDS, PIXELS), rows = matrix(vectors, KEPT, BANDS),
                       columns = trine_tensor_transpose(&rows), scores = matrix(parts, KEPT, PIXELS),
                       result = matrix(to, BANDS, PIXELS);
    RUN(matmul, .a = &rows, .b = &bands, .d = &scores);
    need(trine_queue_wait(queue));
    if (wavelets) denoise(parts, KEPT, true);
    RUN(matmul, .a = &columns, .b = &scores, .d = &result);
    need(trine_queue_wait(queue));
    free(vectors), free(parts);
}

static void draw(const char *name, const float *const cubes[3]) {
    static const int shown[3] = { 40, 24, 8 };
    FILE *file = fopen(name, "wb");
    if (file == NULL) exit(1);
    fprintf(file, "P6\n%d %d\n255\n", 3 * SIDE, SIDE);
    for (int i = 0; i < 3 * PIXELS; i++)
        for (int colour = 0; colour < 3; colour++) {
            const int x = i % (3 * SIDE), y = i / (3 * SIDE);
            const double v = cubes[x / SIDE][shown[colour] * PIXELS + y * SIDE + x % SIDE];
            fputc((int)fmin(255, fmax(0, 220 * v)), file);
        }
    if (fclose(file) != 0) exit(1);
}

int main(int count, char **names) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    float *clean = floats(CUBE), *noisy = floats(CUBE), *x = floats(CUBE), *best = floats(CUBE);
    make_cube(clean, noisy);
    memcpy(x, noisy, CUBE * sizeof *x);
    denoise(x, BANDS, false);
    agree("a transform and its inverse", distance(x, noisy, CUBE), 1e-6);
    memcpy(x, noisy, CUBE * sizeof *x);
    denoise(x, BANDS, true);
    const double before = ratio(clean, noisy), wavelets = ratio(clean, x);
    project(noisy, x, false);
    const double components = ratio(clean, x), start = seconds();
    project(noisy, best, true);
    const double taken = seconds() - start, both = ratio(clean, best);
    printf("A cube of %d x %d pixels in %d bands, noise of deviation %g\n", SIDE, SIDE, BANDS, DEVIATION);
    printf("signal to noise, in dB\n");
    printf("  as it is                                   %6.2f\n", before);
    printf("  wavelets of each band                      %6.2f\n", wavelets);
    printf("  %d principal components                     %6.2f\n", KEPT, components);
    printf("  wavelets of %d principal components         %6.2f, in %.0f ms\n", KEPT, both, 1e3 * taken);
    agree("decibels that wavelets alone lack", before + 3 - wavelets, 0);
    agree("decibels that components alone lack", before + 5 - components, 0);
    agree("decibels that both lack", fmax(wavelets, components) + 2 - both, 0);
    if (count > 1) draw(names[1], (const float *const[]){ noisy, best, clean });
    free(clean), free(noisy), free(x), free(best);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
