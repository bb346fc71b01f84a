/* SPDX-License-Identifier: Apache-2.0 */
/* crop_resize_normalize: the table and the reference.
 *
 * Bound, in u = 2^-24. A weight is a quotient of whole numbers, each rounded to f32: 3 u of itself, and one more where
 * those of pixels beyond the box are added to the last one's: 4 |w|. A cubic weight has its argument t < 2 within
 * 3 u t; its slope is at most 3/2 up to 1 and 1 beyond, so that moves it by 6 u; (1 - t)(1 + t - (m+2) t^2) and
 * m (t - 1)(t - 2)^2 are computed with 10 u of 1 at most, no factor being larger than 3: 16, and 17 with the addition.
 * With antialias weights are divided by their sum W: that is off by what they are, and by one u of sum |w| for each of
 * K terms; a weight by its own error over W, by |w| / W times the sum's over W, and by 1 u.
 *
 * If weights are off by e and f, a product of two is by e |H| + f |V| + u |V H|; products and sums of R rows and C
 * columns in any order add R + C + 1 u of sum |V H x|, and 1 is for second order. Then a product, a difference and a
 * division: 3 u of (|scale| sum + |mean|) / |deviation|. Nearest pixels have no error but these last. Products below
 * 2^-126 may be 0, which the slack has. The sum of a row or of a column, whose weights may still want to be divided by
 * theirs, may overflow before a small weight of the other side takes it: then anything may come out. */
#include <stdlib.h>

#include <trine/image.h>

#include "spec/spec.h"

#define ARGS trine_crop_resize_normalize_args

/* The pixels of a side that one of the output is made of, their weights and how far those are off. */
typedef struct side {
    int64_t first, count;
    double *weight, *off, all; /* all: the sum of weights that these were divided by, if it is more than 1 */
} side;

static double cubic_at(double t, double m) {
    t = fabs(t);
    if (t <= 1) return ((m + 2) * t - (m + 3)) * t * t + 1;
    return t < 2 ? m * (((t - 5) * t + 8) * t - 4) : 0;
}

static int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static int64_t within(int64_t at, int64_t n) { return at < 0 ? 0 : at < n ? at : n - 1; }

static void add(side *s, int64_t at, double weight, double off) {
    if (s->count == 0) s->first = at;
    while (s->first + s->count <= at) s->weight[s->count] = 0, s->off[s->count++] = 0;
    s->weight[at - s->first] += weight;
    s->off[at - s->first] += off;
}

/* The plain filters: pixels about num/den. */
static void put_near(side *s, const ARGS *a, int64_t at, int64_t in, int64_t out) {
    int64_t num = (2 * at + 1) * in - out, den = 2 * out;
    if (a->coordinates == TRINE_COORDINATES_ALIGN_CORNERS) num = at * (in - 1), den = out > 1 ? out - 1 : 1;
    if (a->coordinates == TRINE_COORDINATES_ASYMMETRIC) num = at * in, den = out;
    const int64_t first = floor_of(num, den);
    const double t = (double)(num - first * den) / (double)den;
    if (a->filter == TRINE_RESIZE_NEAREST) {
        const bool down = a->coordinates == TRINE_COORDINATES_ASYMMETRIC;
        add(s, within(down ? first : floor_of(2 * num + den, 2 * den), in), 1, 0);
    } else if (t == 0) {
        add(s, within(first, in), 1, 0);
    } else if (a->filter == TRINE_RESIZE_BILINEAR) {
        add(s, within(first, in), 1 - t, 4 * (1 - t));
        add(s, within(first + 1, in), t, 4 * t);
    } else {
        for (int64_t i = -1; i <= 2; i++) add(s, within(first + i, in), cubic_at((double)i - t, (double)a->cubic), 17);
    }
}

static void put_area(side *s, int64_t at, int64_t in, int64_t out) {
    const double low = (double)(at * in), high = (double)((at + 1) * in);
    for (int64_t i = at * in / out; i < in && (double)(i * out) < high; i++) {
        const double covered = (fmin(high, (double)((i + 1) * out)) - fmax(low, (double)(i * out))) / (double)in;
        add(s, i, covered, 4 * covered);
    }
}

static void put_antialiased(side *s, const ARGS *a, int64_t at, int64_t in, int64_t out) {
    const bool linear = a->filter == TRINE_RESIZE_BILINEAR;
    const double wide = (double)(in > out ? in : out), reach = linear ? 1 : 2;
    double sum = 0, size = 0, off = 0;
    for (int64_t i = 0; i < in; i++) {
        const double t = ((double)(2 * i + 1) * (double)out - (double)(2 * at + 1) * (double)in) / (2 * wide);
        if (!(fabs(t) < reach)) continue;
        const double w = linear ? 1 - fabs(t) : cubic_at(t, (double)a->cubic);
        add(s, i, w, linear ? 4 * w : 17);
        sum += w, size += fabs(w), off += linear ? 4 * w : 17;
    }
    s->all = fmax(sum, 1);
    off += (double)s->count * size;
    for (int64_t i = 0; i < s->count; i++) {
        const double w = fabs(s->weight[i]) / sum;
        s->off[i] = s->off[i] / sum + w * (off / sum) + w;
        s->weight[i] /= sum;
    }
}

/* Of all pixels of a side of the output. */
static side *sides_of(const ARGS *a, int64_t in, int64_t out) {
    side *s = calloc((size_t)out, sizeof *s);
    for (int64_t at = 0; at < out; at++) {
        s[at].all = 1;
        s[at].weight = calloc((size_t)in, 2 * sizeof(double));
        s[at].off = s[at].weight + in;
        if (a->filter == TRINE_RESIZE_AREA)
            put_area(&s[at], at, in, out);
        else if (a->antialias && a->filter != TRINE_RESIZE_NEAREST)
            put_antialiased(&s[at], a, at, in, out);
        else
            put_near(&s[at], a, at, in, out);
    }
    return s;
}

static void free_sides(side *s, int64_t out) {
    for (int64_t at = 0; at < out; at++) free(s[at].weight);
    free(s);
}

/* What the elements of a box see of the call. */
typedef struct box {
    const ARGS *args;
    int64_t w, c, left, top;
    const double *image;
    double mean, std, largest, tiny;
} box;

static double pixel(const box *b, int64_t row, int64_t column, int64_t channel) {
    return b->image[((b->top + row) * b->w + b->left + column) * b->c + channel];
}

/* The largest size of a row's sum, or of a column's. */
static double reach_of(const box *b, const side *v, const side *h, int64_t channel) {
    double most = 0;
    for (int64_t i = 0; i < v->count; i++) {
        double line = 0;
        for (int64_t j = 0; j < h->count; j++)
            line += fabs(h->weight[j]) * trine_finite_abs(pixel(b, v->first + i, h->first + j, channel));
        most = fmax(most, line * h->all);
    }
    for (int64_t j = 0; j < h->count; j++) {
        double line = 0;
        for (int64_t i = 0; i < v->count; i++)
            line += fabs(v->weight[i]) * trine_finite_abs(pixel(b, v->first + i, h->first + j, channel));
        most = fmax(most, line * v->all);
    }
    return most;
}

/* The element of a channel that two sides make. */
static double element(const box *b, const side *v, const side *h, int64_t channel, double *magnitude_out,
                      double *slack_out) {
    double sum = 0, size = 0, off = 0, reach = reach_of(b, v, h, channel);
    bool wild = false;
    for (int64_t i = 0; i < v->count; i++)
        for (int64_t j = 0; j < h->count; j++) {
            const double x = pixel(b, v->first + i, h->first + j, channel);
            sum += v->weight[i] * h->weight[j] * x;
            size += fabs(v->weight[i] * h->weight[j]) * trine_finite_abs(x);
            off += (v->off[i] * fabs(h->weight[j]) + h->off[j] * fabs(v->weight[i])) * trine_finite_abs(x);
            wild |= !isfinite(x);
        }
    const double scale = fabs((double)b->args->scale), all = scale * size + fabs(b->mean), std = fabs(b->std),
                 most = 0x1p127,
                 terms = b->args->filter == TRINE_RESIZE_NEAREST ? 0 : (double)(v->count + h->count + 3);
    const bool curved = b->args->filter == TRINE_RESIZE_BICUBIC || b->args->antialias;
    *magnitude_out = size < most && reach < most && all < most && all / std < most && std >= 0x1p-126 &&
                             (scale == 0 || scale >= 0x1p-126) && !(wild && curved)
                         ? (scale * (off + terms * size) + 3 * all) / std
                         : INFINITY;
    *slack_out = (2 * (double)((v->count + 1) * (h->count + 1)) * scale + 4) * 0x1p-126 / std + b->tiny;
    return ((double)b->args->scale * sum - b->mean) / b->std;
}

typedef struct sizes {
    int64_t n, h, w, c, b, p, q;
} sizes;

#define SIZE(name) .name = trine_ref_dim(ref, #name)
static sizes sizes_of(const trine_ref *ref) {
    return (sizes){ SIZE(n), SIZE(h), SIZE(w), SIZE(c), SIZE(b), SIZE(p), SIZE(q) };
}

static void put_box(trine_ref *ref, const sizes *n, int64_t i) {
    const double *boxes = trine_ref_value(ref, "boxes"), *images = trine_ref_value(ref, "images"),
                 *mean = trine_ref_value(ref, "mean"), *std = trine_ref_value(ref, "deviation"),
                 image = images ? images[i] : (double)i;
    const trine_dtype type = trine_ref_type(ref, "T");
    const double left = boxes ? fmax(boxes[4 * i], 0) : 0, top = boxes ? fmax(boxes[4 * i + 1], 0) : 0,
                 right = boxes ? fmin(boxes[4 * i + 2], (double)n->w) : (double)n->w,
                 bottom = boxes ? fmin(boxes[4 * i + 3], (double)n->h) : (double)n->h;
    const int64_t count = n->p * n->q * n->c;
    double *y = trine_ref_value(ref, "y") + i * count;
    for (int64_t at = 0; at < count; at++) y[at] = NAN;
    if (!(left < right && top < bottom && image >= 0 && image < (double)n->n)) return;
    box b = { .args = ref->args, .w = n->w, .c = n->c, .left = (int64_t)left, .top = (int64_t)top };
    b.image = trine_ref_value(ref, "x") + (int64_t)image * n->h * n->w * n->c;
    b.tiny = 2 * trine_smallest_normal(type) * trine_unit_roundoff(type);
    side *v = sides_of(b.args, (int64_t)(bottom - top), n->p), *h = sides_of(b.args, (int64_t)(right - left), n->q);
    for (int64_t at = 0; at < count; at++) {
        const int64_t c = at % n->c;
        b.mean = mean ? mean[c] : 0, b.std = std ? std[c] : 1;
        y[at] = element(&b, &v[at / n->c / n->q], &h[at / n->c % n->q], b.args->reverse ? n->c - 1 - c : c,
                        trine_ref_magnitude(ref, "y") + i * count + at, trine_ref_slack(ref, "y") + i * count + at);
    }
    free_sides(v, n->p), free_sides(h, n->q);
}

static void reference(trine_ref *ref) {
    const sizes n = sizes_of(ref);
    for (int64_t i = 0; i < n.b; i++) put_box(ref, &n, i);
}

/* Boxes of any size, most of them within the images. */
static void prepare(trine_ref *ref) {
    const int64_t b = trine_ref_dim(ref, "b"), side[2] = { trine_ref_dim(ref, "w"), trine_ref_dim(ref, "h") };
    double *boxes = trine_ref_value(ref, "boxes");
    uint64_t state = (uint64_t)(b + 3 * side[0] + 5 * side[1]);
    for (int64_t i = 0; boxes && i < 4 * b; i++) {
        const int64_t n = side[i % 2];
        state = state * 6364136223846793005u + 1442695040888963407u;
        const int64_t at = n > 0 ? (int64_t)(state >> 33) % (n + 2) : 0;
        boxes[i] = (double)(i % 4 < 2 ? at / 2 - (at == 1) : n - at / 2 + (at == 1));
    }
}

const trine_spec trine_spec_crop_resize_normalize = {
    SPEC(crop_resize_normalize),
    .summary = "Boxes of images, each resized and normalised",
    .formula =
        "y[i,a,b,c] = (scale sum_r,s V[a,r] H[b,s] x[images[i], top+r, left+s, d] - mean[c]) / deviation[c], "
        "(left, top, right, bottom) = boxes[i], d = c, or the last but c with reverse; V and H are weights of the "
        "filter at the coordinates of pixel a and b; NaN of a box that is empty or in no image",
    .source = "Keys 1981 (bicubic); Amoros et al. 2025 (Fused Kernel Library)",
    .tensors = { TENSOR(x, IN | ANY_STRIDE, "U", "n h w c"),
                 TENSOR(boxes, IN | OPTIONAL, "I", "b 4", .fill = "derived"),
                 TENSOR(images, IN | OPTIONAL, "I", "b", .fill = "slots n"), TENSOR(mean, IN | OPTIONAL, "f32", "c"),
                 TENSOR(deviation, IN | OPTIONAL, "f32", "c"),
                 TENSOR(y, OUT | ANY_STRIDE, "T", "b p q c", .terms = "1") },
    .params = { PARAM(filter, ENUM, .values = "nearest bilinear bicubic area", .doc = "TRINE_RESIZE_*"),
                PARAM(coordinates, ENUM, .values = "half_pixel align_corners asymmetric", .doc = "TRINE_COORDINATES_*"),
                PARAM(antialias, BOOL, .values = "0 1",
                      .doc = "1: bilinear and bicubic reach as far as a pixel of y does"),
                PARAM(reverse, BOOL, .values = "0 1", .doc = "1: channels in reverse order"),
                PARAM(scale, F32, .values = "0 0.00392156886 2 -0.5", .fallback = 1,
                      .doc = "of pixels, before the mean is taken off"),
                PARAM(cubic, F32, .values = "0 -0.5 -1", .fallback = -0.75, .min = -1, .max = 0,
                      .doc = "bicubic's slope at 1") },
    .types = { "U=u8|f32 T=f32|f16|bf16 I=i32|i64" },
    .require = { "without images: b == n", "h <= 1073741824", "w <= 1073741824", "p <= 1073741824", "q <= 1073741824" },
    .flops = "12*b*p*q*c",
    .sizes = { "n: 2 0 1 3", "h: 9 0 1 2 5 14 40", "w: 11 0 1 2 7 16 33 130", "c: 3 0 1 2 4 8 17", "b: 2 0 1 3 5",
               "p: 6 0 1 3 8 17", "q: 7 0 1 5 16 33 100" },
    .cases = { "vit 224 u8: U=u8 T=bf16 I=i32 n=8 h=480 w=640 c=3 b=32 p=224 q=224 filter=bilinear +images "
               "+mean +deviation",
               "vit 224 antialias: U=u8 T=f32 I=i32 n=8 h=480 w=640 c=3 b=8 p=224 q=224 filter=bicubic antialias=1 "
               "cubic=-0.5 scale=0.00392156886 +mean +deviation",
               "detector nearest: U=u8 T=f16 I=i32 n=4 h=720 w=1280 c=3 b=4 p=640 q=640 reverse=1",
               "thumbnails area: U=u8 T=f32 I=i64 n=8 h=1080 w=1920 c=3 b=8 p=112 q=112 filter=area",
               "enlarged f32: U=f32 T=f32 I=i32 n=4 h=128 w=128 c=3 b=4 p=512 q=512 filter=bicubic" },
    .reference = reference,
    .prepare = prepare,
};
