/* SPDX-License-Identifier: Apache-2.0 */
/* Places labels greedily: the nearest free place first. */
#include "labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a sans-serif font of 12 units, generously. */
/* the gap: two numbers side by side are not to read as one */
static const double advance = 7.5, ascent = 10, descent = 3, gap = 4;

label_box label_text_box(const char *text, double x, double y) {
    return (label_box){ x, y - ascent, x + advance * (double)strlen(text) + gap, y + descent };
}

static bool apart(const label_box *a, const label_box *b) {
    return a->right <= b->left || b->right <= a->left || a->bottom <= b->top || b->bottom <= a->top;
}

static bool is_free(const labels *all, const label_box *box) {
    const label_box *edge = &all->edge;
    if (box->left < edge->left || box->top < edge->top || box->right > edge->right || box->bottom > edge->bottom)
        return false;
    for (int i = 0; i < all->count; i++)
        if (!apart(&all->box[i], box)) return false;
    return true;
}

bool labels_take(labels *all, label_box box) {
    if (all->count == all->size) {
        const int size = all->size ? 2 * all->size : 64;
        label_box *grown = realloc(all->box, (size_t)size * sizeof *grown);
        if (grown == NULL) return false;
        all->box = grown;
        all->size = size;
    }
    all->box[all->count++] = box;
    return true;
}

void labels_place(labels *all, const char *text, double x, double y, double *x_out, double *y_out) {
    enum { RINGS = 40, DIRECTIONS = 16 };
    const double width = advance * (double)strlen(text), step = 4, first = 6;
    *x_out = x + first;
    *y_out = y + 4;
    for (int ring = 0; ring < RINGS; ring++)
        for (int k = 0; k < DIRECTIONS; k++) {
            const double angle = 2 * M_PI * k / DIRECTIONS, far = first + step * ring, dx = cos(angle), dy = sin(angle);
            /* The text's middle is so far from the point that its edge is at the distance of the ring. */
            const double left = x + dx * (far + width / 2) - width / 2, base = y - dy * (far + ascent / 2) + 4;
            const label_box box = label_text_box(text, left, base);
            if (!is_free(all, &box)) continue;
            *x_out = left;
            *y_out = base;
            labels_take(all, box);
            return;
        }
}

double labels_place_below(labels *all, const char *text, double x, double y) {
    for (int pass = 0; pass < 2; pass++)
        for (double at = y; at > all->edge.top && at < all->edge.bottom; at += pass ? -1 : 1) {
            const label_box box = label_text_box(text, x, at);
            if (!is_free(all, &box)) continue;
            labels_take(all, box);
            return at;
        }
    return y;
}

void labels_free(labels *all) {
    free(all->box);
    *all = (labels){ 0 };
}
