/* SPDX-License-Identifier: Apache-2.0 */
/* sphere_advect's rows of numbers of the type REAL; NAME() makes names of its own. */

static REAL *NAME(line)(const sphere_field *f, int64_t r, int64_t j) { return (REAL *)f->data + r * f->r + j * f->row; }

/* A thread's lines: what flows either way along a row, with two columns more at each end; what flows through the sides
 * between columns; and through those to the north and to the south. */
typedef struct NAME(room) {
    REAL *eastward, *westward, *around, *north, *south;
} NAME(room);

static NAME(room) NAME(room_of)(const advect *a, int thread) {
    const int64_t p = a->sphere.p;
    REAL *at = (REAL *)(void *)(a->lines + thread * a->slice);
    return (NAME(room)){ at + 2, at + p + 6, at + 2 * p + 8, at + 3 * p + 9, at + 4 * p + 9 };
}

/* sphere_weno of the type. */
typedef struct NAME(weno) {
    REAL m[2], q[2], n_weight[2], p_weight[2], small[2];
} NAME(weno);

static NAME(weno) NAME(weno_of)(const sphere_weno *w) {
    NAME(weno) to;
    for (int i = 0; i < 2; i++) {
        to.m[i] = (REAL)w->m[i], to.q[i] = (REAL)w->q[i], to.small[i] = (REAL)w->small[i];
        to.n_weight[i] = (REAL)w->n_weight[i], to.p_weight[i] = (REAL)w->p_weight[i];
    }
    return to;
}

INLINE REAL NAME(part)(REAL x0, REAL x1, REAL x2, REAL behind, REAL own, REAL beyond, REAL above0, REAL above1,
                       REAL small) {
    const REAL back = behind * (x1 - x0), on = beyond * (x2 - x1), far = (1 + behind) * x1 - behind * x0,
               near = own * x1 + beyond * x2, b0 = small + 4 * back * back, b1 = small + 4 * on * on,
               u0 = above0 / (b0 * b0), u1 = above1 / (b1 * b1);
    return (u0 * far + u1 * near) / (u0 + u1);
}

/* What flows through a side with weights w: n of the two cells before it and the one after, p of the one before and
 * the two after. */
INLINE REAL NAME(side)(const NAME(weno) * w, REAL n0, REAL n1, REAL n2, REAL p0, REAL p1, REAL p2) {
    return NAME(part)(n0, n1, n2, w->m[0], w->m[1], w->q[0], w->n_weight[0], w->n_weight[1], w->small[0]) +
           NAME(part)(p2, p1, p0, w->q[1], w->q[0], w->m[1], w->p_weight[0], w->p_weight[1], w->small[1]);
}

INLINE REAL NAME(larger)(REAL most, REAL v) {
    const REAL size = v < 0 ? -v : v;
    return size > most || v != v ? size : most;
}

/* Of row j the parts of velocities: (v + a)/2 and (v - a)/2, to the south and to the east. */
static void NAME(split)(const advect *a, int64_t j) {
    const sphere *s = &a->sphere;
    const int64_t t = s->t, p = s->p;
    REAL *const to[4] = { NAME(line)(&a->part[0], 0, j), NAME(line)(&a->part[1], 0, j), NAME(line)(&a->part[2], 0, j),
                          NAME(line)(&a->part[3], 0, j) };
    const int64_t own = j < 1 ? 1 : j, next = j + 1 > t - 1 ? t - 1 : j + 1;
    for (int64_t k = 0; k < p; k++) {
        REAL most = 0;
        for (int64_t side = j - 2; side <= j + 3; side++)
            if (side >= 1 && side < t)
                most = NAME(larger)(most, NAME(line)(&a->v_theta, 0, side - 1)[k * a->v_theta.column]);
        to[0][k] = (NAME(line)(&a->v_theta, 0, own - 1)[k * a->v_theta.column] + most) / 2;
        to[1][k] = (NAME(line)(&a->v_theta, 0, next - 1)[k * a->v_theta.column] - most) / 2;
    }
    const REAL *v = NAME(line)(&a->v_phi, 0, j);
    for (int64_t k = 0; k < p && j > 0 && j < t - 1; k++) {
        REAL most = 0;
        for (int64_t side = k - 2; side <= k + 3; side++)
            most = NAME(larger)(most, v[(side + 2 * p) % p * a->v_phi.column]);
        to[2][k] = (v[k * a->v_phi.column] + most) / 2;
        to[3][k] = (v[(k + 1) % p * a->v_phi.column] - most) / 2;
    }
}

/* Through the sides before row i. */
static void NAME(down)(const advect *a, REAL *to, int64_t r, int64_t i) {
    const int64_t p = a->sphere.p, t = a->sphere.t, step = a->v_theta.column;
    if (!a->weno || i == 1 || i == t - 1) {
        const REAL *v = NAME(line)(&a->v_theta, 0, i - 1), *before = NAME(line)(&a->last, r, i - 1),
                   *after = NAME(line)(&a->last, r, i);
        for (int64_t k = 0; k < p; k++) to[k] = v[k * step] * (v[k * step] >= 0 ? before[k] : after[k]);
        return;
    }
    const REAL *f[4], *n[4], *q[4];
    const NAME(weno) w = NAME(weno_of)(&a->sides[i]);
    for (int c = 0; c < 4; c++) {
        f[c] = NAME(line)(&a->last, r, i - 2 + c);
        n[c] = NAME(line)(&a->part[0], 0, i - 2 + c);
        q[c] = NAME(line)(&a->part[1], 0, i - 2 + c);
    }
    for (int64_t k = 0; k < p; k++)
        to[k] = NAME(side)(&w, f[0][k] * n[0][k], f[1][k] * n[1][k], f[2][k] * n[2][k], f[1][k] * q[1][k],
                           f[2][k] * q[2][k], f[3][k] * q[3][k]);
}

/* Through the sides before columns 0 to p of row j. */
static void NAME(along)(const advect *a, const NAME(room) * room, int64_t r, int64_t j) {
    const int64_t p = a->sphere.p;
    const REAL *f = NAME(line)(&a->last, r, j), *v = NAME(line)(&a->v_phi, 0, j);
    REAL *to = room->around;
    if (!a->weno) {
        const int64_t step = a->v_phi.column;
        to[0] = v[0] * (v[0] >= 0 ? f[p - 1] : f[0]);
        for (int64_t k = 1; k < p; k++) to[k] = v[k * step] * (v[k * step] >= 0 ? f[k - 1] : f[k]);
    } else {
        const REAL *n = NAME(line)(&a->part[2], 0, j), *q = NAME(line)(&a->part[3], 0, j);
        REAL *east = room->eastward, *west = room->westward;
        const NAME(weno) w = NAME(weno_of)(&a->around);
        for (int64_t k = 0; k < p; k++) east[k] = f[k] * n[k], west[k] = f[k] * q[k];
        for (int64_t k = 0; k < 2; k++) {
            east[k - 2] = east[(k + 2 * p - 2) % p], west[k - 2] = west[(k + 2 * p - 2) % p];
            east[p + k] = east[k % p], west[p + k] = west[k % p];
        }
        for (int64_t k = 0; k < p; k++)
            to[k] = NAME(side)(&w, east[k - 2], east[k - 1], east[k], west[k - 1], west[k], west[k + 1]);
    }
    to[p] = to[0];
}

INLINE void NAME(put)(const sphere_ssp *c, REAL *to, const REAL *f, const REAL *last, int64_t k, REAL rate) {
    REAL sum = (REAL)c->last * last[k] - (REAL)c->rate * rate;
    if (c->first != 0) sum += (REAL)c->first * f[k];
    to[k] = sum;
}

/* `known`: has the room what flows in from the north? */
static void NAME(row)(const advect *a, NAME(room) * room, int64_t number, bool known) {
    const sphere *s = &a->sphere;
    const int64_t r = number / s->t, j = number % s->t, p = s->p;
    const sphere_row grid = a->rows[j];
    const REAL *f = NAME(line)(&s->f, r, j), *last = NAME(line)(&a->last, r, j);
    REAL *to = NAME(line)(&a->to, r, j);
    if (j > 0 && !known) NAME(down)(a, room->north, r, j);
    if (j < s->t - 1) NAME(down)(a, room->south, r, j + 1);
    if (j == 0 || j == s->t - 1) {
        REAL sum = 0;
        for (int64_t k = 0; k < p; k++) sum += j == 0 ? room->south[k] : room->north[k];
        const REAL rate = (REAL)(grid.south - grid.north) * sum;
        for (int64_t k = 0; k < p; k++) NAME(put)(&a->number, to, f, last, k, rate);
        return;
    }
    NAME(along)(a, room, r, j);
    const REAL north = (REAL)grid.north, south = (REAL)grid.south, around = (REAL)grid.along;
    const REAL *const g = room->around, *const from = room->north, *const on = room->south;
    for (int64_t k = 0; k < p; k++)
        NAME(put)(&a->number, to, f, last, k, (south * on[k] - north * from[k]) + around * (g[k + 1] - g[k]));
}

static void NAME(rows)(const advect *a, int64_t first, int64_t last, int thread) {
    NAME(room) room = NAME(room_of)(a, thread);
    for (int64_t i = first; i < last; i++) {
        NAME(row)(a, &room, i, i > first && i % a->sphere.t > 0);
        REAL *const south = room.south;
        room.south = room.north;
        room.north = south;
    }
}
