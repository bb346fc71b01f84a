/* SPDX-License-Identifier: Apache-2.0 */
/* An image as a neural field (Muller et al. 2022, section 5.1): features of a multiresolution hash grid, a network of
 * two hidden layers, and AdamW on random pixels. It prints the signal-to-noise ratio by step, holds the network against
 * the same ops one by one, and times both.
 *
 *     papers-ngp [FROM.ppm [TO.ppm]]      an image to learn, "-" for a made one; where what was learnt is written */
#include <string.h>

#include "papers.h"

enum {
    LEVELS = 12,
    FEATURES = 2,
    ROWS = 1 << 12, /* of a level, at most */
    BASE = 8,
    IN = LEVELS * FEATURES,
    WIDTH = 32,
    OUT = 3,
    BATCH = 2048,
    STEPS = 300,
    SHOWN = 50,
    MADE = 96, /* pixels of an edge of the made image */
    PARTS = 4  /* of what is learnt: the table, and weights of three layers */
};
static const float growth = 1.4f, rate = 0.01f;
static trine_queue *queue;

typedef struct image {
    int64_t width, height;
    float *pixel; /* OUT a pixel, 0 .. 1 */
} image;

typedef struct field {
    int32_t offsets[LEVELS + 1];
    int64_t count[PARTS];
    float *value[PARTS], *gradient[PARTS], *m[PARTS], *v[PARTS];
    /* of BATCH places: features, both hidden layers, colours, and gradients of these and of the features */
    float *place, *feature, *hidden, *colour, *dcolour, *dfeature;
} field;

/* Discs and stripes on a slope of colours. */
static image make_image(void) {
    image a = { MADE, MADE, floats((int64_t)MADE * MADE * OUT) };
    for (int64_t i = 0; i < MADE * MADE; i++) {
        const double x = ((double)(i % MADE) + 0.5) / MADE, y = ((double)(i / MADE) + 0.5) / MADE;
        const double disc = hypot(x - 0.6, y - 0.4) < 0.25, ring = fabs(hypot(x - 0.3, y - 0.65) - 0.15) < 0.03,
                     stripe = y > 0.85 && fmod(x * 16, 1) < 0.5;
        a.pixel[i * OUT] = (float)(disc > 0 ? 0.9 : ring > 0 ? 0.1 : 0.3 + 0.4 * x);
        a.pixel[i * OUT + 1] = (float)(stripe > 0 ? 0.95 : 0.2 + 0.5 * y * (1 - disc));
        a.pixel[i * OUT + 2] = (float)(0.5 + 0.4 * sin(12 * x * y) * (1 - ring));
    }
    return a;
}

/* Of a binary PPM of 8 bits a colour, without comments. */
static image read_image(const char *name) {
    FILE *file = fopen(name, "rb");
    int width = 0, height = 0, most = 0;
    if (file == NULL || fscanf(file, "P6 %5d %5d %3d", &width, &height, &most) != 3 || width < 1 || height < 1 ||
        most != 255) {
        fprintf(stderr, "%s is no P6 image of 255 steps\n", name);
        exit(1);
    }
    fgetc(file);
    image a = { width, height, floats((int64_t)width * height * OUT) };
    for (int64_t i = 0; i < a.width * a.height * OUT; i++) a.pixel[i] = (float)fgetc(file) / 255;
    fclose(file);
    return a;
}

static void write_image(const char *name, const image *a) {
    FILE *file = fopen(name, "wb");
    if (file == NULL) {
        fprintf(stderr, "%s cannot be written\n", name);
        exit(1);
    }
    fprintf(file, "P6\n%d %d\n255\n", (int)a->width, (int)a->height);
    for (int64_t i = 0; i < a->width * a->height * OUT; i++)
        fputc((int)(255 * fminf(fmaxf(a->pixel[i], 0), 1) + 0.5f), file);
    fclose(file);
}

/* A row for each corner where there is room: as many as tiny-cuda-nn's levels have. */
static field make_field(void) {
    field f = { 0 };
    double resolution = BASE;
    for (int l = 0; l < LEVELS; l++, resolution *= (double)growth) {
        const int64_t edge = (int64_t)ceil(resolution - 1) + 1, corners = (edge * edge + 7) / 8 * 8;
        f.offsets[l + 1] = f.offsets[l] + (int32_t)(corners < ROWS ? corners : ROWS);
    }
    const int64_t count[PARTS] = { f.offsets[LEVELS] * (int64_t)FEATURES, WIDTH * IN, WIDTH * WIDTH, OUT * WIDTH };
    for (int part = 0; part < PARTS; part++) {
        f.count[part] = count[part];
        f.value[part] = floats(count[part]), f.gradient[part] = floats(count[part]);
        f.m[part] = floats(count[part]), f.v[part] = floats(count[part]);
        const float size = part == 0 ? 1e-4f : sqrtf(2.0f / (part == 1 ? IN : WIDTH));
        for (int64_t i = 0; i < count[part]; i++)
            f.value[part][i] = size * (part == 0 ? 2 * (float)uniform() - 1 : normal());
    }
    f.place = floats(BATCH * 2), f.feature = floats(BATCH * IN), f.hidden = floats(2 * BATCH * WIDTH);
    f.colour = floats(BATCH * OUT), f.dcolour = floats(BATCH * OUT), f.dfeature = floats(BATCH * IN);
    return f;
}

static void free_field(field *f) {
    for (int part = 0; part < PARTS; part++)
        free(f->value[part]), free(f->gradient[part]), free(f->m[part]), free(f->v[part]);
    free(f->place), free(f->feature), free(f->hidden), free(f->colour), free(f->dcolour), free(f->dfeature);
}

/* Tensors of what is learnt, or of its gradient. */
typedef struct tensors {
    trine_tensor table, first, behind, last, offsets, place, encoded, feature, hidden, colour;
} tensors;
static tensors tensors_of(field *f, float *const part[PARTS], float *feature, float *colour) {
    return (tensors){ .table = matrix(part[0], f->offsets[LEVELS], FEATURES),
                      .first = matrix(part[1], WIDTH, IN),
                      .behind = trine_tensor_3d(part[2], TRINE_F32, 1, WIDTH, WIDTH),
                      .last = matrix(part[3], OUT, WIDTH),
                      .offsets = trine_tensor_1d(f->offsets, TRINE_I32, LEVELS + 1),
                      .place = matrix(f->place, BATCH, 2),
                      .encoded = trine_tensor_3d(feature, TRINE_F32, BATCH, LEVELS, FEATURES),
                      .feature = matrix(feature, BATCH, IN),
                      .hidden = trine_tensor_3d(f->hidden, TRINE_F32, 2, BATCH, WIDTH),
                      .colour = matrix(colour, BATCH, OUT) };
}

static void look(field *f, bool learns) {
    const tensors t = tensors_of(f, f->value, f->feature, f->colour);
    RUN(hash_encode, .x = &t.place, .table = &t.table, .offsets = &t.offsets, .y = &t.encoded,
        .per_level_scale = growth, .base_resolution = BASE);
    RUN(mlp_fused, .x = &t.feature, .w_in = &t.first, .w = &t.behind, .w_out = &t.last, .y = &t.colour,
        .hidden = learns ? &t.hidden : NULL, .activation = TRINE_MLP_RELU, .output_activation = TRINE_MLP_SIGMOID);
    need(trine_queue_wait(queue));
}

static void learn(field *f, int step) {
    const tensors t = tensors_of(f, f->value, f->feature, f->colour),
                  d = tensors_of(f, f->gradient, f->dfeature, f->dcolour);
    RUN(mlp_fused_backward, .dy = &d.colour, .x = &t.feature, .w_in = &t.first, .w = &t.behind, .w_out = &t.last,
        .hidden = &t.hidden, .y = &t.colour, .dx = &d.feature, .dw_in = &d.first, .dw = &d.behind, .dw_out = &d.last,
        .activation = TRINE_MLP_RELU, .output_activation = TRINE_MLP_SIGMOID);
    RUN(hash_encode_backward, .dy = &d.encoded, .x = &t.place, .table = &t.table, .offsets = &t.offsets,
        .dtable = &d.table, .per_level_scale = growth, .base_resolution = BASE);
    for (int part = 0; part < PARTS; part++) {
        const trine_tensor value = vector(f->value[part], f->count[part]),
                           g = vector(f->gradient[part], f->count[part]), m = vector(f->m[part], f->count[part]),
                           v = vector(f->v[part], f->count[part]);
        RUN(adamw, .param = &value, .grad = &g, .m = &m, .v = &v, .lr = rate, .beta2 = 0.99f, .eps = 1e-15f,
            .step = step);
    }
    need(trine_queue_wait(queue));
}

/* Puts a pixel's middle where the batch's place i is. */
static void put_place(field *f, const image *a, int64_t i, int64_t pixel) {
    f->place[2 * i] = ((float)(pixel % a->width) + 0.5f) / (float)a->width;
    f->place[2 * i + 1] = ((float)(pixel / a->width) + 0.5f) / (float)a->height;
}

static void train_step(field *f, const image *a, int step) {
    static int64_t pixel[BATCH];
    for (int64_t i = 0; i < BATCH; i++) {
        pixel[i] = (int64_t)(uniform() * (double)(a->width * a->height));
        put_place(f, a, i, pixel[i]);
    }
    look(f, true);
    for (int64_t i = 0; i < BATCH * OUT; i++)
        f->dcolour[i] = 2 * (f->colour[i] - a->pixel[pixel[i / OUT] * OUT + i % OUT]) / (BATCH * OUT);
    learn(f, step);
}

/* The whole image as the field has it; returns the peak signal-to-noise ratio in dB. */
static double render(field *f, const image *a, image *out) {
    const int64_t all = a->width * a->height;
    double squares = 0;
    for (int64_t first = 0; first < all; first += BATCH) {
        const int64_t count = all - first < BATCH ? all - first : BATCH;
        for (int64_t i = 0; i < count; i++) put_place(f, a, i, first + i);
        look(f, false);
        memcpy(out->pixel + first * OUT, f->colour, (size_t)(count * OUT) * sizeof *f->colour);
    }
    for (int64_t i = 0; i < all * OUT; i++)
        squares += ((double)out->pixel[i] - a->pixel[i]) * (out->pixel[i] - a->pixel[i]);
    return -10 * log10(squares / (double)(all * OUT));
}

/* The network by products of matrices, one by one, but for the last activation. */
static void one_by_one(field *f, float *colour) {
    const tensors t = tensors_of(f, f->value, f->feature, colour);
    const trine_tensor first = trine_tensor_transpose(&t.first), last = trine_tensor_transpose(&t.last),
                       square = matrix(f->value[2], WIDTH, WIDTH), behind = trine_tensor_transpose(&square),
                       a = matrix(f->hidden, BATCH, WIDTH), b = matrix(f->hidden + BATCH * WIDTH, BATCH, WIDTH);
    RUN(matmul, .a = &t.feature, .b = &first, .d = &a, .activation = TRINE_ACTIVATION_RELU);
    RUN(matmul, .a = &a, .b = &behind, .d = &b, .activation = TRINE_ACTIVATION_RELU);
    RUN(matmul, .a = &b, .b = &last, .d = &t.colour);
    need(trine_queue_wait(queue));
}

static void compare(field *f) {
    float *colour = floats(BATCH * OUT);
    double least[2] = { INFINITY, INFINITY };
    look(f, false);
    one_by_one(f, colour);
    for (int64_t i = 0; i < BATCH * OUT; i++) colour[i] = 1 / (1 + expf(-colour[i]));
    agree("the network beside its layers", distance(f->colour, colour, BATCH * OUT), 1e-5);
    const tensors t = tensors_of(f, f->value, f->feature, f->colour);
    for (int round = 0; round < 20; round++) {
        const double start = seconds();
        if (round % 2)
            one_by_one(f, colour);
        else
            RUN(mlp_fused, .x = &t.feature, .w_in = &t.first, .w = &t.behind, .w_out = &t.last, .y = &t.colour,
                .activation = TRINE_MLP_RELU, .output_activation = TRINE_MLP_SIGMOID);
        need(trine_queue_wait(queue));
        least[round % 2] = fmin(least[round % 2], seconds() - start);
    }
    printf("\nms of the network for %d pixels: %.3f fused, %.3f layer by layer\n", BATCH, 1e3 * least[0],
           1e3 * least[1]);
    free(colour);
}

int main(int count, char **words) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    const bool given = count > 1 && strcmp(words[1], "-") != 0;
    image a = given ? read_image(words[1]) : make_image(), out = { a.width, a.height, NULL };
    out.pixel = floats(a.width * a.height * OUT);
    field f = make_field();
    double ratio = 0;
    printf("%d x %d pixels, %d numbers in %d levels, %d in the network\n\nstep   PSNR, dB\n", (int)a.width,
           (int)a.height, (int)f.count[0], LEVELS, (int)(f.count[1] + f.count[2] + f.count[3]));
    for (int step = 0; step <= STEPS; step++) {
        if (step > 0) train_step(&f, &a, step);
        if (step % SHOWN == 0) printf("%4d   %8.2f\n", step, ratio = render(&f, &a, &out));
    }
    if (!given) agree("what is lacking to 30 dB", 30 - ratio, 0);
    if (count > 2) write_image(words[2], &out);
    compare(&f);
    free_field(&f), free(a.pixel), free(out.pixel);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
