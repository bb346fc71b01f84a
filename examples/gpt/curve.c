/* SPDX-License-Identifier: Apache-2.0 */
/* The losses of a run as an SVG: every step in grey, a running mean in blue, the held-out text in red. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "trainer.h"

enum { WIDTH = 800, HEIGHT = 480, LEFT = 60, RIGHT = 20, TOP = 40, BOTTOM = 50, MOST_POINTS = 2000 };

typedef struct axes {
    double steps, low, high;
} axes;

static double x_of(const axes *a, double step) { return LEFT + step / a->steps * (WIDTH - LEFT - RIGHT); }
static double y_of(const axes *a, double loss) {
    return TOP + (a->high - loss) / (a->high - a->low) * (HEIGHT - TOP - BOTTOM);
}

static axes axes_of(const gpt_history *h) {
    axes a = { h->count > 1 ? (double)h->count : 1, 0, 1 };
    for (int64_t i = 0; i < h->count; i++) a.high = fmax(a.high, ceil(h->train[i]));
    for (int64_t i = 0; i < h->held_out_count; i++) a.high = fmax(a.high, ceil(h->held_out[i].loss));
    return a;
}

static void draw_axes(FILE *f, const axes *a) {
    const double grid = a->high > 10 ? 5 : a->high > 4 ? 1 : 0.5;
    for (double loss = a->low; loss <= a->high + 1e-9; loss += grid)
        fprintf(f,
                "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#ddd'/><text x='%d' y='%.1f' "
                "text-anchor='end'>%g</text>\n",
                LEFT, WIDTH - RIGHT, y_of(a, loss), y_of(a, loss), LEFT - 8, y_of(a, loss) + 4, loss);
    for (int i = 0; i <= 4; i++)
        fprintf(f, "<text x='%.1f' y='%d' text-anchor='middle'>%.0f</text>\n", x_of(a, a->steps * i / 4),
                HEIGHT - BOTTOM + 18, a->steps * i / 4);
    fprintf(f, "<text x='%d' y='%d' text-anchor='middle'>step</text>\n", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10);
    fprintf(
        f,
        "<text x='16' y='%d' text-anchor='middle' transform='rotate(-90 16 %d)'>cross-entropy, nats per byte</text>\n",
        HEIGHT / 2, HEIGHT / 2);
}

/* At most MOST_POINTS of the steps; with `smoothing`, an exponential mean free of the bias of its start. */
static void draw_train(FILE *f, const axes *a, const gpt_history *h, double smoothing, const char *style) {
    const int64_t every = h->count / MOST_POINTS + 1;
    double mean = 0, weight = 0;
    fprintf(f, "<polyline fill='none' %s points='", style);
    for (int64_t i = 0; i < h->count; i++) {
        mean = smoothing * mean + (1 - smoothing) * h->train[i];
        weight = smoothing * weight + (1 - smoothing);
        if (i % every == 0) fprintf(f, "%.1f,%.1f ", x_of(a, (double)i), y_of(a, mean / weight));
    }
    fprintf(f, "'/>\n");
}

static void draw(FILE *f, const gpt_history *h) {
    const axes a = axes_of(h);
    fprintf(f, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif' font-size='12'>\n",
            WIDTH, HEIGHT);
    fprintf(f, "<rect width='%d' height='%d' fill='white'/>\n", WIDTH, HEIGHT);
    fprintf(f, "<text x='%d' y='22' font-size='14'>Training loss (blue) and held-out loss (red)</text>\n", LEFT);
    draw_axes(f, &a);
    draw_train(f, &a, h, 0, "stroke='#ccd5e5' stroke-width='1'");
    draw_train(f, &a, h, 0.98, "stroke='#2563c9' stroke-width='2'");
    fprintf(f, "<polyline fill='none' stroke='#c92a2a' stroke-width='1.5' points='");
    for (int64_t i = 0; i < h->held_out_count; i++)
        fprintf(f, "%.1f,%.1f ", x_of(&a, (double)h->held_out[i].step), y_of(&a, h->held_out[i].loss));
    fprintf(f, "'/>\n");
    for (int64_t i = 0; i < h->held_out_count; i++)
        fprintf(f, "<circle r='3' fill='#c92a2a' cx='%.1f' cy='%.1f'><title>step %lld: %.4f</title></circle>\n",
                x_of(&a, (double)h->held_out[i].step), y_of(&a, h->held_out[i].loss), (long long)h->held_out[i].step,
                (double)h->held_out[i].loss);
    fprintf(f, "</svg>\n");
}

bool gpt_curve_write(const gpt_history *history, const char *path, char *error_out, size_t error_size) {
    FILE *f = fopen(path, "w");
    bool good = f != NULL;
    if (f) {
        draw(f, history);
        good = !ferror(f);
        good = fclose(f) == 0 && good;
    }
    if (!good) snprintf(error_out, error_size, "%s: not written: %s", path, strerror(errno));
    return good;
}
