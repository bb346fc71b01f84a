/* SPDX-License-Identifier: Apache-2.0 */
/* Generalized advantage estimation (Schulman et al. 2016), as VLA-RL (2025) trains a robot's policy with it:
 *
 *     delta[t] = r[t] + gamma (1 - done[t]) V[t+1] - V[t],  A[t] = delta[t] + gamma lambda (1 - done[t]) A[t+1]
 *
 * mul and add make the differences, and linear_scan with reverse the advantages: its gate is 0 where an episode ends.
 * Episodes that are packed one behind the other need no gates, but cu_seqlens. The process is made: a state moves
 * towards 0, is the mean of the reward, and its value is known. */
#include "papers.h"

enum { STEPS = 128, ROBOTS = 4096, ALL = STEPS * ROBOTS, ROUNDS = 5 };
static const float discount = 0.99f, kept = 0.8f; /* gamma; what is left of a state after a step */
static const double ends = 0.02;                  /* how probable it is that a step is the last of its episode */

typedef struct rollout {
    float *reward, *live; /* STEPS ROBOTS; live is 1 - done */
    float *value;         /* STEPS + 1 ROBOTS: what a critic believes */
    float *actual; /* STEPS ROBOTS: what a step brings with all after it, as known before what is drawn after it */
} rollout;

static rollout make_rollout(void) {
    rollout m = { floats(ALL), floats(ALL), floats(ALL + ROBOTS), floats(ALL) };
    const float worth = 1 / (1 - discount * kept * (float)(1 - ends)), spread = 1 / sqrtf(1 - kept * kept);
    for (int64_t i = 0; i < ROBOTS; i++) {
        float state = spread * normal();
        for (int64_t t = 0; t < STEPS; t++) {
            const int64_t at = t * ROBOTS + i;
            m.value[at] = 0.5f * worth * state + 20; /* which is wrong */
            m.live[at] = uniform() >= ends;
            m.reward[at] = state + normal();
            state = m.live[at] > 0 ? kept * state + normal() : spread * normal();
            m.actual[at] = m.reward[at] + discount * m.live[at] * worth * state;
        }
        m.value[ALL + i] = 0.5f * worth * state + 20;
    }
    return m;
}

/* By ops. Returns the seconds that they take, and in `scan_out` those of the scan. */
static double by_ops(trine_queue *queue, const rollout *m, float lambda, float *delta, float *gate, float *advantage,
                     double *scan_out) {
    const trine_tensor live = matrix(m->live, STEPS, ROBOTS), reward = matrix(m->reward, STEPS, ROBOTS),
                       value = matrix(m->value, STEPS, ROBOTS), next = matrix(m->value + ROBOTS, STEPS, ROBOTS),
                       x = matrix(delta, STEPS, ROBOTS), g = matrix(gate, STEPS, ROBOTS),
                       y = matrix(advantage, STEPS, ROBOTS);
    const double start = seconds();
    need(trine_mul(queue, &(trine_mul_args){ TRINE_ARGS(mul), .a = &live, .b = &next, .y = &x, .alpha = discount }));
    need(trine_add(queue, &(trine_add_args){ TRINE_ARGS(add), .a = &x, .b = &reward, .y = &x }));
    need(trine_add(queue, &(trine_add_args){ TRINE_ARGS(add), .a = &x, .b = &value, .y = &x, .beta = -1 }));
    /* lambda 0 is written -0, as 0 stands for 1 */
    need(trine_scale(queue, &(trine_scale_args){ TRINE_ARGS(scale), .x = &live, .y = &g,
                                                 .alpha = lambda > 0 ? discount * lambda : -0.0f }));
    need(trine_queue_wait(queue));
    const double between = seconds();
    need(trine_linear_scan(
        queue, &(trine_linear_scan_args){ TRINE_ARGS(linear_scan), .x = &x, .g = &g, .y = &y, .reverse = 1 }));
    need(trine_queue_wait(queue));
    *scan_out = seconds() - between;
    return seconds() - start;
}

/* As programs have it, from the last step to the first. */
static double by_loop(const rollout *m, float lambda, float *advantage) {
    const double start = seconds();
    for (int64_t t = STEPS - 1; t >= 0; t--)
        for (int64_t i = t * ROBOTS; i < (t + 1) * ROBOTS; i++) {
            const float delta = m->reward[i] + discount * m->live[i] * m->value[i + ROBOTS] - m->value[i];
            const float later = t + 1 < STEPS ? advantage[i + ROBOTS] : 0;
            advantage[i] = delta + discount * lambda * m->live[i] * later;
        }
    return seconds() - start;
}

/* The robots' steps one robot after the other, a sequence for each episode, and one gate for all steps. */
static void packed(trine_queue *queue, const rollout *m, float lambda, const float *delta, float *advantage) {
    float *x = floats(ALL), *g = floats(ALL), *y = floats(ALL);
    int32_t *first = calloc(ALL + 1, sizeof *first);
    int64_t episodes = 0;
    for (int64_t i = 0; i < ALL; i++) {
        const int64_t from = i % STEPS * ROBOTS + i / STEPS;
        x[i] = delta[from], g[i] = discount * lambda;
        if (m->live[from] == 0 || i % STEPS == STEPS - 1) first[++episodes] = (int32_t)(i + 1);
    }
    const trine_tensor xs = matrix(x, ALL, 1), gs = matrix(g, ALL, 1), ys = matrix(y, ALL, 1),
                       bounds = trine_tensor_1d(first, TRINE_I32, episodes + 1);
    double taken = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = seconds();
        need(trine_linear_scan(queue, &(trine_linear_scan_args){ TRINE_ARGS(linear_scan), .x = &xs, .g = &gs, .y = &ys,
                                                                 .cu_seqlens = &bounds, .reverse = 1 }));
        need(trine_queue_wait(queue));
        taken = fmin(taken, seconds() - start);
    }
    printf("%.2f ms by linear_scan of %d episodes packed into one channel\n", 1e3 * taken, (int)episodes);
    for (int64_t i = 0; i < ALL; i++) advantage[i % STEPS * ROBOTS + i / STEPS] = y[i];
    free(x), free(g), free(y), free(first);
}

/* How far advantage + value, from the robots' first steps, is from what it estimates: on average, and by deviation. */
static void judge(const rollout *m, const float *advantage, double *bias_out, double *deviation_out) {
    const int64_t count = ALL / 2;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        const double off = (double)advantage[i] + (double)m->value[i] - (double)m->actual[i];
        sum += off, squares += off * off;
    }
    *bias_out = sum / (double)count;
    *deviation_out = sqrt(squares / (double)count - *bias_out * *bias_out);
}

int main(void) {
    trine_library *lib;
    trine_queue *queue = cpu_queue(&lib);
    const rollout m = make_rollout();
    const float lambdas[] = { 0, 0.5f, 0.8f, 0.9f, 0.95f, 1 };
    float *delta = floats(ALL), *gate = floats(ALL), *advantage = floats(ALL), *want = floats(ALL);
    double ops = INFINITY, scan = INFINITY, loop = INFINITY, first = 0, best = INFINITY, last = 0, apart = 0;
    printf("%d steps of %d robots, of which 1 in %.0f ends an episode\n\n", STEPS, ROBOTS, 1 / ends);
    printf("lambda    bias   deviation   both\n");
    for (size_t k = 0; k < sizeof lambdas / sizeof *lambdas; k++) {
        for (int round = 0; round < ROUNDS; round++) {
            double part;
            ops = fmin(ops, by_ops(queue, &m, lambdas[k], delta, gate, advantage, &part));
            scan = fmin(scan, part), loop = fmin(loop, by_loop(&m, lambdas[k], want));
        }
        apart = worst(apart, distance(advantage, want, ALL));
        double bias, deviation;
        judge(&m, advantage, &bias, &deviation);
        const double both = sqrt(bias * bias + deviation * deviation);
        if (k == 0) first = both;
        best = fmin(best, both);
        printf("%6.2f   %5.2f   %9.2f   %4.1f\n", (double)lambdas[k], bias, deviation, both);
        last = both;
    }
    agree("advantages and those of a loop", apart, 1e-6);
    agree("the least error, of a lambda between 0 and 1", best, 0.9 * fmin(first, last));
    printf("\n%.2f ms by ops, of which linear_scan %.2f ms; %.2f ms by a loop; apart by %.1e\n", 1e3 * ops, 1e3 * scan,
           1e3 * loop, apart);
    by_ops(queue, &m, 0.95f, delta, gate, want, &(double){ 0 });
    packed(queue, &m, 0.95f, delta, advantage);
    agree("advantages of packed episodes", distance(advantage, want, ALL), 1e-6);
    free(m.reward), free(m.live), free(m.value), free(m.actual);
    free(delta), free(gate), free(advantage), free(want);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
