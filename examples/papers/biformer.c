/* SPDX-License-Identifier: Apache-2.0 */
/* BiFormer (Zhu et al. 2023): the pixels of a region of an image attend to those of the regions that are most like it.
 * block_mean finds what stands for each region, matmul how alike they are, topk the regions, and attention_blocks takes
 * their numbers for lists, which all heads share. Pixels lie region by region, so that a region is a block. The image
 * is made: regions have one of a few textures. */
#include "papers.h"

enum { SIDE = 32, WINDOW = 4, ACROSS = SIDE / WINDOW, REGIONS = ACROSS * ACROSS, AREA = WINDOW * WINDOW };
enum { PIXELS = SIDE * SIDE, HEADS = 2, D = 16, WIDTH = HEADS * D, TEXTURES = 5 };

typedef struct image {
    float *q, *k, *v; /* PIXELS HEADS D, region by region */
} image;

/* Where a pixel is. */
static int64_t place_of(int64_t y, int64_t x) {
    return (y / WINDOW * ACROSS + x / WINDOW) * AREA + y % WINDOW * WINDOW + x % WINDOW;
}

static image make_image(void) {
    image m = { floats(PIXELS * WIDTH), floats(PIXELS * WIDTH), floats(PIXELS * WIDTH) };
    float texture[TEXTURES][WIDTH];
    for (int i = 0; i < TEXTURES * WIDTH; i++) texture[i / WIDTH][i % WIDTH] = normal();
    for (int64_t region = 0; region < REGIONS; region++) {
        const float *one = texture[(int)(uniform() * TEXTURES)];
        for (int64_t i = region * AREA * WIDTH; i < (region + 1) * AREA * WIDTH; i++) {
            m.q[i] = 2 * one[i % WIDTH] + normal();
            m.k[i] = one[i % WIDTH] + normal();
            m.v[i] = one[i % WIDTH] + 0.5f * normal();
        }
    }
    return m;
}

/* How alike regions are: the products of the means of their queries and keys, over all heads. */
static void compare(trine_queue *queue, const image *m, float *alike) {
    float *means[2] = { floats(REGIONS * WIDTH), floats(REGIONS * WIDTH) }, *const from[2] = { m->q, m->k };
    trine_tensor mean[2], to = trine_tensor_2d(alike, TRINE_F32, REGIONS, REGIONS);
    for (int i = 0; i < 2; i++) {
        trine_tensor x = trine_tensor_2d(from[i], TRINE_F32, PIXELS, WIDTH);
        mean[i] = trine_tensor_2d(means[i], TRINE_F32, REGIONS, WIDTH);
        need(trine_block_mean(
            queue, &(trine_block_mean_args){ TRINE_ARGS(block_mean), .x = &x, .y = &mean[i], .size = AREA }));
    }
    trine_tensor across = trine_tensor_transpose(&mean[1]);
    need(trine_matmul(queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &mean[0], .b = &across, .d = &to }));
    need(trine_queue_wait(queue));
    free(means[0]), free(means[1]);
}

static void attend(trine_queue *queue, const image *m, float *alike, int64_t kept, float *out) {
    int32_t *index = calloc((size_t)(REGIONS * kept), sizeof *index), start[REGIONS + 1];
    trine_tensor x = trine_tensor_2d(alike, TRINE_F32, REGIONS, REGIONS),
                 places = trine_tensor_2d(index, TRINE_I32, REGIONS, kept);
    need(trine_topk(queue, &(trine_topk_args){ TRINE_ARGS(topk), .x = &x, .indices = &places }));
    for (int64_t i = 0; i <= REGIONS; i++) start[i] = (int32_t)(i * kept);
    trine_tensor q = trine_tensor_3d(m->q, TRINE_F32, PIXELS, HEADS, D),
                 k = trine_tensor_3d(m->k, TRINE_F32, PIXELS, HEADS, D),
                 v = trine_tensor_3d(m->v, TRINE_F32, PIXELS, HEADS, D),
                 o = trine_tensor_3d(out, TRINE_F32, PIXELS, HEADS, D),
                 starts = trine_tensor_2d(start, TRINE_I32, 1, REGIONS + 1),
                 indices = trine_tensor_2d(index, TRINE_I32, 1, REGIONS * kept);
    need(trine_attention_blocks(queue, &(trine_attention_blocks_args){ TRINE_ARGS(attention_blocks), .q = &q, .k = &k,
                                                                       .v = &v, .starts = &starts, .indices = &indices,
                                                                       .o = &o, .scale = 1 / sqrtf(WIDTH),
                                                                       .query_block = AREA, .key_block = AREA }));
    need(trine_queue_wait(queue));
    free(index);
}

/* Pixel by pixel of the image, in float64. */
static void direct(const image *m, int64_t kept, float *out) {
    double *mean = calloc(2 * REGIONS * WIDTH, sizeof *mean), alike[REGIONS];
    for (int64_t i = 0; i < PIXELS * WIDTH; i++) {
        const int64_t to = i / WIDTH / AREA * WIDTH + i % WIDTH;
        mean[to] += (double)m->q[i] / AREA, mean[REGIONS * WIDTH + to] += (double)m->k[i] / AREA;
    }
    for (int64_t i = 0; i < PIXELS; i++) {
        const int64_t at = place_of(i / SIDE, i % SIDE), own = at / AREA;
        double sum[HEADS] = { 0 }, o[WIDTH] = { 0 };
        for (int64_t r = 0; r < REGIONS; r++) {
            alike[r] = 0;
            for (int c = 0; c < WIDTH; c++) alike[r] += mean[own * WIDTH + c] * mean[(REGIONS + r) * WIDTH + c];
        }
        for (int64_t j = 0; j < PIXELS; j++) {
            const int64_t key = place_of(j / SIDE, j % SIDE), region = key / AREA;
            int64_t better = 0;
            for (int64_t r = 0; r < REGIONS; r++) better += alike[r] > alike[region];
            for (int h = 0; h < HEADS && better < kept; h++) {
                double z = 0;
                for (int c = h * D; c < (h + 1) * D; c++) z += (double)m->q[at * WIDTH + c] * m->k[key * WIDTH + c];
                const double p = exp(z / sqrt(WIDTH));
                sum[h] += p;
                for (int c = h * D; c < (h + 1) * D; c++) o[c] += p * m->v[key * WIDTH + c];
            }
        }
        for (int c = 0; c < WIDTH; c++) out[at * WIDTH + c] = (float)(o[c] / sum[c / D]);
    }
    free(mean);
}

int main(void) {
    trine_library *lib;
    trine_queue *queue = cpu_queue(&lib);
    const image m = make_image();
    float *alike = floats(REGIONS * REGIONS), *out = floats(PIXELS * WIDTH), *want = floats(PIXELS * WIDTH),
          *full = floats(PIXELS * WIDTH);
    compare(queue, &m, alike);
    direct(&m, REGIONS, full);
    printf("%d x %d pixels, %d heads, %d regions of %d x %d pixels\n\n", SIDE, SIDE, HEADS, REGIONS, WINDOW, WINDOW);
    printf("regions of a region   part of the pixels   distance from attention to all\n");
    for (int64_t kept = 1; kept <= REGIONS; kept *= 4) {
        direct(&m, kept, want);
        attend(queue, &m, alike, kept, out);
        agree("attention to the chosen regions", distance(out, want, PIXELS * WIDTH), 1e-5);
        printf("%19d   %18.3f   %30.4f\n", (int)kept, (double)kept / REGIONS, distance(out, full, PIXELS * WIDTH));
    }
    free(m.q), free(m.k), free(m.v), free(alike), free(out), free(want), free(full);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
