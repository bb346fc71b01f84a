/* SPDX-License-Identifier: Apache-2.0 */
/* What the scan of Mamba-2 (Dao and Gu 2024) does, with weights that are made, not trained. Selective copying (Gu
 * and Dao 2023): some tokens among much noise are kept in the state and told again at the end, as a step's length
 * is 0 for noise; with steps that are all alike they drown. A rod that cools: heads are its modes, which decay as
 * they are known to. And a long sequence in pieces is the same as in one, whose time grows as its length does;
 * attention's does not. */
#include <string.h>

#include "papers.h"

enum { HEADS = 4, P = 64, N = 64, KEPT = 16, WORDS = 64, LENGTH = 1024, TASKS = 8 }; /* P: of a token's vector */
enum { MODES = 24, PLACES = 32, TIMES = 40 };
enum { LONGEST = 8192, PIECE = 192, ROUNDS = 3 };
static const double pi = 3.141592653589793;

static trine_queue *queue;

/* x is steps heads P, dt steps heads, a heads, b and c steps N. */
typedef struct sequence {
    int64_t steps, heads, p, n;
    float *x, *dt, *a, *b, *c;
} sequence;

static sequence make_sequence(int64_t steps, int64_t heads, int64_t p, int64_t n) {
    sequence s = { steps, heads, p, n, floats(steps * heads * p), floats(steps * heads), NULL, NULL, NULL };
    s.a = floats(heads), s.b = floats(steps * n), s.c = floats(steps * n);
    return s;
}

static void free_sequence(sequence *s) { free(s->x), free(s->dt), free(s->a), free(s->b), free(s->c); }

/* Steps first .. first + steps - 1, from and to a state, which is heads p n; without one, from 0. */
static void scan(const sequence *s, int64_t first, int64_t steps, float *state, float *y) {
    const int64_t row = s->heads * s->p;
    const trine_tensor x = trine_tensor_3d(s->x + first * row, TRINE_F32, steps, s->heads, s->p),
                       dt = matrix(s->dt + first * s->heads, steps, s->heads), a = vector(s->a, s->heads),
                       b = trine_tensor_3d(s->b + first * s->n, TRINE_F32, steps, 1, s->n),
                       c = trine_tensor_3d(s->c + first * s->n, TRINE_F32, steps, 1, s->n),
                       from = trine_tensor_3d(state, TRINE_F32, s->heads, s->p, s->n),
                       to = trine_tensor_3d(y + first * row, TRINE_F32, steps, s->heads, s->p);
    RUN(ssd, .x = &x, .dt = &dt, .a = &a, .b = &b, .c = &c, .s0 = state ? &from : NULL, .y = &to,
        .last = state ? &from : NULL);
    need(trine_queue_wait(queue));
}

/* By definition, in f64. */
static void direct(const sequence *s, float *y) {
    double *state = calloc((size_t)(s->p * s->n), sizeof *state);
    for (int64_t h = 0; h < s->heads; h++) {
        memset(state, 0, (size_t)(s->p * s->n) * sizeof *state);
        for (int64_t t = 0; t < s->steps; t++) {
            const double l = s->dt[t * s->heads + h], keep = exp(l * s->a[h]);
            for (int64_t i = 0; i < s->p; i++) {
                const int64_t at = (t * s->heads + h) * s->p + i;
                double sum = 0;
                for (int64_t j = 0; j < s->n; j++) {
                    double *z = &state[i * s->n + j];
                    *z = keep * *z + l * s->x[at] * s->b[t * s->n + j];
                    sum += *z * s->c[t * s->n + j];
                }
                y[at] = (float)sum;
            }
        }
    }
    free(state);
}

/* KEPT words at random places among LENGTH; then KEPT steps ask for one after the other. The word of place i has a
 * key of its own, b, by which c asks for it. Returns the share of right answers over heads, which have words each. */
static double copied(bool selective, const float *words) {
    sequence s = make_sequence(LENGTH + KEPT, HEADS, P, N);
    float *keys = floats(KEPT * N), *y = floats(s.steps * HEADS * P), *want = floats(s.steps * HEADS * P);
    int word[KEPT][HEADS], seen = 0;
    double right = 0;
    for (int i = 0; i < KEPT * N; i++) keys[i] = normal() / sqrtf(N);
    for (int h = 0; h < HEADS; h++) s.a[h] = -1.0f / (LENGTH << h); /* so slowly do heads forget */
    for (int64_t t = 0; t < LENGTH; t++) {
        const bool kept = uniform() * (double)(LENGTH - t) < KEPT - seen;
        for (int h = 0; h < HEADS; h++) {
            const int w = (int)(uniform() * WORDS); /* noise is words, too */
            if (kept) word[seen][h] = w;
            memcpy(s.x + (t * HEADS + h) * P, words + w * P, P * sizeof *s.x);
            s.dt[t * HEADS + h] = kept || !selective;
        }
        for (int i = 0; i < N; i++) s.b[t * N + i] = kept ? keys[seen * N + i] : normal() / sqrtf(N);
        seen += kept;
    }
    memcpy(s.c + LENGTH * N, keys, KEPT * N * sizeof *keys);
    scan(&s, 0, s.steps, NULL, y);
    direct(&s, want);
    agree("selective copying beside the definition", distance(y, want, s.steps * HEADS * P), 1e-5);
    for (int i = 0; i < KEPT * HEADS; i++) {
        const float *out = y + LENGTH * HEADS * P + i * P;
        double most = -INFINITY;
        int best = 0;
        for (int w = 0; w < WORDS; w++) {
            double like = 0;
            for (int j = 0; j < P; j++) like += (double)out[j] * words[w * P + j];
            if (like > most) most = like, best = w;
        }
        right += best == word[i / HEADS][i % HEADS];
    }
    free_sequence(&s), free(keys), free(y), free(want);
    return right / (KEPT * HEADS);
}

/* Temperatures of a rod whose ends are kept at 0, at times that are not evenly apart: u = sum of modes m of w[m]
 * exp(-(m pi)^2 t) sin(m pi z). Mode m is head m - 1 with a = -(m pi)^2; its row of the state has w[m] sin(m pi z) for
 * the places z, c is 1, and x is 0. Returns how far they are from the formula. */
static double cooled(double *warmest_out) {
    sequence s = make_sequence(TIMES, MODES, PLACES, 1);
    float *state = floats(MODES * PLACES), *y = floats(TIMES * MODES * PLACES), u[PLACES], known[PLACES];
    double now = 0, off = 0;
    for (int m = 0; m < MODES; m++) {
        const double rate = (m + 1) * pi, w = 2 * (1 - cos(rate)) / rate; /* of a rod that is 1 warm all along */
        s.a[m] = -(float)(rate * rate);
        for (int z = 0; z < PLACES; z++) state[m * PLACES + z] = (float)(w * sin(rate * (z + 0.5) / PLACES));
    }
    for (int64_t t = 0; t < TIMES; t++) {
        const float apart = (float)(0.005 * uniform());
        for (int m = 0; m < MODES; m++) s.dt[t * MODES + m] = apart;
        s.c[t] = 1;
    }
    scan(&s, 0, TIMES, state, y);
    for (int64_t t = 0; t < TIMES; t++) {
        now += s.dt[t * MODES];
        for (int z = 0; z < PLACES; z++) {
            double warm = 0, by_modes = 0;
            for (int m = 0; m < MODES; m++) {
                const double rate = (m + 1) * pi;
                warm += 2 * (1 - cos(rate)) / rate * exp(-rate * rate * now) * sin(rate * (z + 0.5) / PLACES);
                by_modes += y[(t * MODES + m) * PLACES + z];
            }
            u[z] = (float)by_modes, known[z] = (float)warm;
        }
        off = worst(off, distance(u, known, PLACES));
    }
    *warmest_out = u[PLACES / 2];
    free_sequence(&s), free(state), free(y);
    return off;
}

/* Seconds of causal attention of as many heads and sizes. */
static double attend(const sequence *s, int64_t steps, float *o) {
    const trine_tensor x = trine_tensor_3d(s->x, TRINE_F32, steps, HEADS, P),
                       to = trine_tensor_3d(o, TRINE_F32, steps, HEADS, P);
    const double start = seconds();
    RUN(attention, .q = &x, .k = &x, .v = &x, .o = &to, .causal = 1);
    need(trine_queue_wait(queue));
    return seconds() - start;
}

int main(void) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    double right[2] = { 0 }, warmest;
    float *words = floats(WORDS * P);
    for (int i = 0; i < WORDS * P; i++) words[i] = normal();
    for (int i = 0; i < 2 * TASKS; i++) right[i % 2] += copied(i % 2, words) / TASKS;
    printf("%d of %d tokens told again: %.1f%% right, %.1f%% where all steps are alike (by chance %.1f%%)\n", KEPT,
           LENGTH, 100 * right[1], 100 * right[0], 100.0 / WORDS);
    agree("selective copying: wrong answers", 1 - right[1], 0.02);
    agree("copying that is not selective: right answers", right[0], 0.5);
    const double off = cooled(&warmest);
    printf("a rod of %d modes cools to %.3f: off by %.1e of itself at most, over %d times\n", MODES, warmest, off,
           TIMES);
    agree("the rod beside the formula", off, 1e-4);

    sequence s = make_sequence(LONGEST, HEADS, P, N);
    float *y = floats(LONGEST * HEADS * P), *pieces = floats(LONGEST * HEADS * P);
    for (int64_t i = 0; i < LONGEST * HEADS * P; i++) s.x[i] = normal();
    for (int64_t i = 0; i < LONGEST * N; i++) s.b[i] = normal() / sqrtf(N), s.c[i] = normal();
    for (int64_t i = 0; i < LONGEST * HEADS; i++) s.dt[i] = (float)uniform();
    for (int h = 0; h < HEADS; h++) s.a[h] = -1.0f / (float)(8 << h);
    printf("\n%d heads of %d, state %d, ms:\nlength   scan   in pieces of %d   attention\n", HEADS, P, N, PIECE);
    for (int64_t steps = 512; steps <= LONGEST; steps *= 2) {
        float *state = floats(HEADS * P * N);
        double least[2] = { INFINITY, INFINITY };
        for (int round = 0; round < ROUNDS; round++) {
            double start = seconds();
            scan(&s, 0, steps, NULL, y);
            least[0] = fmin(least[0], seconds() - start);
            memset(state, 0, HEADS * P * N * sizeof *state);
            start = seconds();
            for (int64_t t = 0; t < steps; t += PIECE)
                scan(&s, t, steps - t < PIECE ? steps - t : PIECE, state, pieces);
            least[1] = fmin(least[1], seconds() - start);
        }
        printf("%6d %6.1f   %16.1f", (int)steps, 1e3 * least[0], 1e3 * least[1]);
        agree("pieces beside the whole", distance(pieces, y, steps * HEADS * P), 1e-5);
        printf("   %9.1f\n", 1e3 * attend(&s, steps, pieces));
        free(state);
    }
    free_sequence(&s), free(words), free(y), free(pieces);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
