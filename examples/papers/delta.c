/* SPDX-License-Identifier: Apache-2.0 */
/* Associative recall by a state of fixed size: linear attention (Katharopoulos et al. 2020), the delta rule (Schlag et
 * al. 2021, Yang et al. 2024) and attention. Pairs of a key and a value are written one after the other, and then each
 * key asks for its value; nothing is trained. Keys are random unit vectors. Where half of them are written again with
 * another value, the later value counts: the delta rule puts it in the place of the former, at the cost of keys that
 * are alike and older, to which linear attention does less. */
#include <string.h>

#include "papers.h"

enum { HEADS = 8, D = 64, E = 64, WORDS = 64, MOST = 256, STEPS = 2 * MOST };
typedef enum way { LINEAR, DELTA, ATTENTION, WAYS } way;

/* STEPS: the pairs are written in the first ones, the others ask. [steps][HEADS][D] and so on. */
typedef struct task {
    int64_t pairs, asked;
    float *q, *k, *v, *beta;
    int32_t *answer; /* asked HEADS */
} task;

static trine_queue *queue;
static float words[WORDS * E]; /* what values may be */

static void unit(float *x, int count) {
    float squares = 0;
    for (int i = 0; i < count; i++) x[i] = normal(), squares += x[i] * x[i];
    for (int i = 0; i < count; i++) x[i] /= sqrtf(squares);
}

/* With `again` the first half of the keys comes again in the second half. Of `pairs` written, as many as there are keys
 * are asked for. A step that asks has k and v of 0, and writes nothing. */
static task make_task(int64_t pairs, bool again) {
    task t = { pairs,
               again ? pairs / 2 : pairs,
               floats(STEPS * HEADS * D),
               floats(STEPS * HEADS * D),
               floats(STEPS * HEADS * E),
               floats(STEPS * HEADS),
               calloc((size_t)(pairs * HEADS), sizeof(int32_t)) };
    for (int64_t i = 0; i < pairs * HEADS; i++) {
        const int64_t before = i - pairs / 2 * HEADS, word = (int64_t)(uniform() * WORDS);
        if (again && before >= 0)
            memcpy(t.k + i * D, t.k + before * D, D * sizeof *t.k);
        else
            unit(t.k + i * D, D);
        memcpy(t.v + i * E, words + word * E, E * sizeof *t.v);
        t.answer[again && before >= 0 ? before : i] = (int32_t)word;
        t.beta[i] = 1;
    }
    memcpy(t.q + pairs * HEADS * D, t.k, (size_t)(t.asked * HEADS * D) * sizeof *t.q);
    return t;
}

static void free_task(task *t) { free(t->q), free(t->k), free(t->v), free(t->beta), free(t->answer); }

/* Steps from `first` on, by the state, which is NULL for a whole pass. */
static void recur(const task *t, way way, int64_t first, int64_t steps, float *state, float *o) {
    const int64_t at = first * HEADS;
    const trine_tensor q = trine_tensor_3d(t->q + at * D, TRINE_F32, steps, HEADS, D),
                       k = trine_tensor_3d(t->k + at * D, TRINE_F32, steps, HEADS, D),
                       v = trine_tensor_3d(t->v + at * E, TRINE_F32, steps, HEADS, E),
                       beta = matrix(t->beta + at, steps, HEADS), s = trine_tensor_3d(state, TRINE_F32, HEADS, D, E),
                       to = trine_tensor_3d(o + at * E, TRINE_F32, steps, HEADS, E);
    RUN(gated_delta, .q = &q, .k = &k, .v = &v, .beta = way == DELTA ? &beta : NULL, .s0 = first > 0 ? &s : NULL,
        .o = &to, .last = state ? &s : NULL, .scale = 1);
}

/* Sharp enough to find a key among all. */
static void attend(const task *t, float *o) {
    const int64_t asks = t->pairs * HEADS;
    const trine_tensor q = trine_tensor_3d(t->q + asks * D, TRINE_F32, t->asked, HEADS, D),
                       k = trine_tensor_3d(t->k, TRINE_F32, t->pairs, HEADS, D),
                       v = trine_tensor_3d(t->v, TRINE_F32, t->pairs, HEADS, E),
                       to = trine_tensor_3d(o + asks * E, TRINE_F32, t->asked, HEADS, E);
    RUN(attention, .q = &q, .k = &k, .v = &v, .o = &to, .scale = 32);
}

/* The share of answers whose word is nearest of all. */
static double share(const task *t, float *o) {
    const int64_t rows = t->asked * HEADS;
    float *likeness = floats(rows * WORDS);
    int32_t *nearest = calloc((size_t)rows, sizeof *nearest);
    const trine_tensor out = matrix(o + t->pairs * HEADS * E, rows, E), book = matrix(words, WORDS, E),
                       across = trine_tensor_transpose(&book), like = matrix(likeness, rows, WORDS),
                       to = trine_tensor_1d(nearest, TRINE_I32, rows);
    RUN(matmul, .a = &out, .b = &across, .d = &like);
    RUN(argmax, .x = &like, .indices = &to);
    need(trine_queue_wait(queue));
    double right = 0;
    for (int64_t i = 0; i < rows; i++) right += nearest[i] == t->answer[i];
    free(likeness), free(nearest);
    return right / (double)rows;
}

/* By definition, in f64. */
static void direct(const task *t, way way, float *o) {
    for (int64_t head = 0; head < HEADS; head++) {
        static double s[D][E];
        memset(s, 0, sizeof s);
        for (int64_t step = 0; step < t->pairs + t->asked; step++) {
            const int64_t at = step * HEADS + head;
            const float *q = t->q + at * D, *k = t->k + at * D, *v = t->v + at * E;
            for (int j = 0; j < E; j++) {
                double held = 0, x = 0;
                for (int i = 0; i < D; i++) held += s[i][j] * k[i];
                const double u = way == DELTA ? t->beta[at] * (v[j] - held) : v[j];
                for (int i = 0; i < D; i++) s[i][j] += k[i] * u, x += s[i][j] * q[i];
                o[at * E + j] = (float)x;
            }
        }
    }
}

/* A pass over all, and one of half of it and then step by step, beside the definition. Returns seconds of a step. */
static double compare(const task *t, way way, float *o, float *o64) {
    const int64_t steps = t->pairs + t->asked, half = steps / 2, count = steps * HEADS * E;
    float *by_steps = floats(count), *state = floats(HEADS * D * E);
    recur(t, way, 0, steps, NULL, o);
    recur(t, way, 0, half, state, by_steps);
    const double start = seconds();
    for (int64_t i = half; i < steps; i++) recur(t, way, i, 1, state, by_steps);
    need(trine_queue_wait(queue));
    const double taken = seconds() - start;
    direct(t, way, o64);
    agree("a pass beside the definition", distance(o, o64, count), 1e-5);
    agree("steps beside the definition", distance(by_steps, o64, count), 1e-5);
    free(by_steps), free(state);
    return taken / (double)(steps - half);
}

int main(void) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    float *o = floats(STEPS * HEADS * E), *o64 = floats(STEPS * HEADS * E);
    double found[2][WAYS], taken = INFINITY;
    for (int i = 0; i < WORDS; i++) unit(words + i * E, E);
    printf("%d heads whose state is %d x %d; %d values there may be. Share of right answers:\n\n", HEADS, D, E, WORDS);
    printf("                  each key once                   half of them again\n");
    printf("pairs   linear  delta rule   attention    linear  delta rule   attention\n");
    for (int64_t pairs = 8; pairs <= MOST; pairs *= 2) {
        printf("%5d", (int)pairs);
        for (int again = 0; again < 2; again++) {
            task t = make_task(pairs, again);
            for (int way = 0; way < WAYS; way++) {
                if (way == ATTENTION)
                    attend(&t, o);
                else
                    taken = fmin(taken, compare(&t, (enum way)way, o, o64));
                found[again][way] = share(&t, o);
                printf(way ? "  %9.1f%%" : "  %6.1f%%", 100 * found[again][way]);
            }
            free_task(&t);
        }
        printf("\n");
        agree("linear attention beside the delta rule, keys again", found[1][LINEAR], found[1][DELTA]);
        agree("attention of keys that come once: wrong answers", 1 - found[0][ATTENTION], 0.01);
        if (pairs <= D / 2) agree("the delta rule, keys again: wrong answers", 1 - found[1][DELTA], 0.02);
        if (pairs <= D / 2) agree("attention, keys again: right answers", found[1][ATTENTION], 0.8);
    }
    printf("\n%.1f us a step of decoding, whose state is %d bytes; the keys and values of %d pairs are %d\n",
           1e6 * taken, HEADS * D * E * 4, MOST, MOST * HEADS * (D + E) * 4);
    free(o), free(o64);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
