/* SPDX-License-Identifier: Apache-2.0 */
/* sphere_diffuse's rows of numbers of the type REAL; NAME() makes names of its own. */

static REAL *NAME(line)(const sphere_field *f, int64_t r, int64_t j) { return (REAL *)f->data + r * f->r + j * f->row; }

/* The rows that row j reads, and what it writes. */
typedef struct NAME(rows) {
    const REAL *up, *here, *down, *above, *below, *before, *f;
    REAL *rate, *to;
    REAL north, south, along;
} NAME(rows);

INLINE REAL NAME(flow)(REAL a, REAL b, REAL here, REAL there) { return (REAL)0.5 * (a + b) * (there - here); }

/* D at column k; nu in steps that are known to be 1 or 0. */
INLINE REAL NAME(node)(const NAME(rows) * w, int64_t k, int64_t west, int64_t east, const int STEP) {
    const REAL here = w->here[k], above = w->above[k * STEP], below = w->below[k * STEP],
               above_east = w->above[east * STEP], below_east = w->below[east * STEP];
    return (w->north * NAME(flow)(above, above_east, here, w->up[k]) +
            w->south * NAME(flow)(below, below_east, here, w->down[k])) +
           w->along * (NAME(flow)(above, below, here, w->here[west]) +
                       NAME(flow)(above_east, below_east, here, w->here[east]));
}

/* D of the first stage is kept. */
INLINE void NAME(put)(const NAME(rows) * w, const sphere_rkl *c, int64_t k, REAL rate, const bool FIRST) {
    if (FIRST) {
        w->rate[k] = rate;
        w->to[k] = (REAL)c->first * w->f[k] + (REAL)c->last_rate * rate;
    } else {
        w->to[k] = (REAL)c->last * w->here[k] + (REAL)c->before * w->before[k] + (REAL)c->first * w->f[k] +
                   (REAL)c->last_rate * rate + (REAL)c->first_rate * w->rate[k];
    }
}

INLINE void NAME(nodes)(const NAME(rows) * rows, const sphere_rkl *stage, int64_t p, const int STEP, const bool FIRST) {
    const NAME(rows) w = *rows;
    const sphere_rkl c = *stage;
    NAME(put)(&w, &c, 0, NAME(node)(&w, 0, p - 1, p > 1 ? 1 : 0, STEP), FIRST);
    for (int64_t k = 1; k < p - 1; k++) NAME(put)(&w, &c, k, NAME(node)(&w, k, k - 1, k + 1, STEP), FIRST);
    if (p > 1) NAME(put)(&w, &c, p - 1, NAME(node)(&w, p - 1, p - 2, 0, STEP), FIRST);
}

/* A pole, beside whose row `next` lie the corners. */
static void NAME(pole)(const NAME(rows) * w, const sphere_rkl *c, const REAL *next, const REAL *corner, int64_t p,
                       int64_t step, bool first) {
    REAL sum = 0;
    for (int64_t k = 0; k < p; k++)
        sum += (corner[k * step] + corner[(k + 1 < p ? k + 1 : 0) * step]) * (next[k] - w->here[k]);
    const REAL rate = (w->north + w->south) * sum;
    for (int64_t k = 0; k < p; k++) {
        if (first)
            NAME(put)(w, c, k, rate, true);
        else
            NAME(put)(w, c, k, rate, false);
    }
}

static void NAME(row)(const diffuse *a, int64_t number) {
    const sphere *s = &a->sphere;
    const int64_t r = number / s->t, j = number % s->t, p = s->p, step = a->nu.column;
    const sphere_row grid = a->rows[j];
    const bool first = a->stage == 1;
    const int64_t up = j > 0 ? j - 1 : 0, down = j < s->t - 1 ? j + 1 : j, below = j < s->t - 1 ? j : j - 1;
    const NAME(rows) w = { .up = NAME(line)(&a->last, r, up),
                           .here = NAME(line)(&a->last, r, j),
                           .down = NAME(line)(&a->last, r, down),
                           .above = NAME(line)(&a->nu, 0, up),
                           .below = NAME(line)(&a->nu, 0, below),
                           .before = NAME(line)(&a->before, r, j),
                           .f = NAME(line)(&s->f, r, j),
                           .rate = NAME(line)(&a->rate, r, j),
                           .to = NAME(line)(&a->to, r, j),
                           .north = (REAL)grid.north,
                           .south = (REAL)grid.south,
                           .along = (REAL)grid.along };
    if (j == 0)
        NAME(pole)(&w, &a->number, w.down, w.below, p, step, first);
    else if (j == s->t - 1)
        NAME(pole)(&w, &a->number, w.up, w.above, p, step, first);
    else if (first && step)
        NAME(nodes)(&w, &a->number, p, 1, true);
    else if (first)
        NAME(nodes)(&w, &a->number, p, 0, true);
    else if (step)
        NAME(nodes)(&w, &a->number, p, 1, false);
    else
        NAME(nodes)(&w, &a->number, p, 0, false);
}
