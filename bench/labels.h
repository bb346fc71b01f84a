/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a plot, put where they lie on no other. */
#ifndef TRINE_BENCH_LABELS_H
#define TRINE_BENCH_LABELS_H

#include <stdbool.h>
#include <stdio.h>

/* A rectangle in the plot's units, y downwards. */
typedef struct label_box {
    double left, top, right, bottom;
} label_box;

/* What lies in the plot already. */
typedef struct labels {
    int count, size;
    label_box *box;
    label_box edge; /* beyond which no label is put */
} labels;

/* The box of a text in the plot's font: `x` is its left edge, `y` its base line. */
label_box label_text_box(const char *text, double x, double y);

/* Notes a box as taken. False if memory is short: the box is then free for others. */
bool labels_take(labels *all, label_box box);

/* The place nearest to the point (x, y), of those round it in growing rings, where the text lies on nothing; taken from
 * now on. Right of the point if there is none. */
void labels_place(labels *all, const char *text, double x, double y, double *x_out, double *y_out);

/* The same for a text at a fixed x: the first free place from `y` on downwards, or else upwards. */
double labels_place_below(labels *all, const char *text, double x, double y);

void labels_free(labels *all);

#endif
