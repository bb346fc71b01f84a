/* SPDX-License-Identifier: Apache-2.0 */
/* SnapKV (Li et al. 2024): which keys of a prompt are kept follows from what its last queries attend to. The prompt is
 * made: some of its keys are what all queries look for. window_score scores the keys, topk chooses, gather_rows gathers
 * them, and attention to what was kept is held against attention to all. */
#include "papers.h"

enum { HEADS = 4, KEY_HEADS = 2, D = 64, KEYS = 1024, WINDOW = 16, OLD = KEYS - WINDOW, NEW = 8, PLANTED = 24 };
enum { ROW = KEY_HEADS * D, RADIUS = 1 };

typedef struct prompt {
    float *k, *v;     /* KEYS KEY_HEADS D */
    float *last, *to; /* queries: the window's, and those that come behind the prompt; WINDOW or NEW, HEADS, D */
} prompt;

static void queries(float *q, int64_t count, const float *sought) {
    for (int64_t i = 0; i < count * HEADS; i++)
        for (int c = 0; c < D; c++) q[i * D + c] = sought[i % HEADS / (HEADS / KEY_HEADS) * D + c] + 0.5f * normal();
}

static prompt make_prompt(void) {
    prompt p = { floats(KEYS * ROW), floats(KEYS * ROW), floats(WINDOW * HEADS * D), floats(NEW * HEADS * D) };
    float *sought = floats(ROW);
    for (int c = 0; c < ROW; c++) sought[c] = normal();
    for (int64_t i = 0; i < KEYS * ROW; i++) p.k[i] = 0.5f * normal(), p.v[i] = normal();
    for (int g = 0; g < KEY_HEADS; g++)
        for (int i = 0; i < PLANTED; i++) {
            float *k = p.k + ((int64_t)(uniform() * OLD) * KEY_HEADS + g) * D;
            for (int c = 0; c < D; c++) k[c] += 0.9f * sought[g * D + c];
        }
    queries(p.last, WINDOW, sought), queries(p.to, NEW, sought);
    free(sought);
    return p;
}

/* softmax(q k) v in float64, for NEW queries; keys of query heads that share them lie side by side. */
static void attend(const float *q, const float *k, const float *v, int64_t keys, float *out) {
    double *p = calloc((size_t)keys, sizeof *p);
    for (int64_t row = 0; row < NEW * HEADS; row++) {
        const int64_t g = row % HEADS / (HEADS / KEY_HEADS);
        double sum = 0;
        for (int64_t j = 0; j < keys; j++) {
            double z = 0;
            for (int c = 0; c < D; c++) z += (double)q[row * D + c] * k[j * ROW + g * D + c];
            sum += p[j] = exp(z / sqrt(D));
        }
        for (int c = 0; c < D; c++) {
            double x = 0;
            for (int64_t j = 0; j < keys; j++) x += p[j] * v[j * ROW + g * D + c];
            out[row * D + c] = (float)(x / sum);
        }
    }
    free(p);
}

/* The scores of all keys before the window, in float64. */
static void score(const prompt *p, float *scores) {
    double *e = calloc(KEYS, sizeof *e), *sum = calloc(KEY_HEADS * OLD, sizeof *sum);
    for (int64_t row = 0; row < WINDOW * HEADS; row++) {
        const int64_t g = row % HEADS / (HEADS / KEY_HEADS), sees = OLD + row / HEADS + 1;
        double all = 0;
        for (int64_t j = 0; j < sees; j++) {
            double z = 0;
            for (int c = 0; c < D; c++) z += (double)p->last[row * D + c] * p->k[j * ROW + g * D + c];
            all += e[j] = exp(z / sqrt(D));
        }
        for (int64_t j = 0; j < OLD; j++) sum[g * OLD + j] += e[j] / all;
    }
    for (int64_t i = 0; i < KEY_HEADS * OLD; i++) {
        double x = 0;
        for (int64_t j = i % OLD - RADIUS; j <= i % OLD + RADIUS; j++)
            x += j < 0 || j >= OLD ? 0 : sum[i - i % OLD + j];
        scores[i] = (float)(x / (2 * RADIUS + 1));
    }
    free(e), free(sum);
}

/* Attention to `kept` keys of each head, which `chosen` names, and to the window. */
static void attend_kept(trine_queue *queue, const prompt *p, const int32_t *chosen, int64_t kept, float *out) {
    const int64_t keys = kept + WINDOW, rows = keys * KEY_HEADS;
    float *k = floats(rows * D), *v = floats(rows * D), *direct = floats(NEW * HEADS * D);
    int32_t *index = calloc((size_t)rows, sizeof *index);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t j = i / KEY_HEADS, g = i % KEY_HEADS;
        index[i] = (int32_t)((j < kept ? chosen[g * kept + j] : OLD + j - kept) * KEY_HEADS + g);
    }
    trine_tensor at = trine_tensor_1d(index, TRINE_I32, rows);
    trine_tensor all_k = trine_tensor_2d(p->k, TRINE_F32, KEYS * KEY_HEADS, D),
                 k_rows = trine_tensor_2d(k, TRINE_F32, rows, D);
    trine_tensor all_v = trine_tensor_2d(p->v, TRINE_F32, KEYS * KEY_HEADS, D),
                 v_rows = trine_tensor_2d(v, TRINE_F32, rows, D);
    need(trine_gather_rows(
        queue, &(trine_gather_rows_args){ TRINE_ARGS(gather_rows), .x = &all_k, .index = &at, .y = &k_rows }));
    need(trine_gather_rows(
        queue, &(trine_gather_rows_args){ TRINE_ARGS(gather_rows), .x = &all_v, .index = &at, .y = &v_rows }));
    trine_tensor tq = trine_tensor_3d(p->to, TRINE_F32, NEW, HEADS, D),
                 tk = trine_tensor_3d(k, TRINE_F32, keys, KEY_HEADS, D),
                 tv = trine_tensor_3d(v, TRINE_F32, keys, KEY_HEADS, D),
                 to = trine_tensor_3d(out, TRINE_F32, NEW, HEADS, D);
    need(trine_attention(queue,
                         &(trine_attention_args){ TRINE_ARGS(attention), .q = &tq, .k = &tk, .v = &tv, .o = &to }));
    need(trine_queue_wait(queue));
    attend(p->to, k, v, keys, direct);
    agree("attention to what was kept", distance(out, direct, NEW * HEADS * D), 1e-5);
    free(k), free(v), free(direct), free(index);
}

/* The largest scores by topk; each of them must be one of the largest of the direct ones. */
static void choose(trine_queue *queue, float *scores, const float *direct, int64_t kept, int32_t *chosen) {
    trine_tensor x = trine_tensor_2d(scores, TRINE_F32, KEY_HEADS, OLD),
                 to = trine_tensor_2d(chosen, TRINE_I32, KEY_HEADS, kept);
    need(trine_topk(queue, &(trine_topk_args){ TRINE_ARGS(topk), .x = &x, .indices = &to }));
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < KEY_HEADS * kept; i++) {
        const float *row = direct + i / kept * OLD, own = row[chosen[i]];
        int64_t larger = 0;
        for (int64_t j = 0; j < OLD; j++) larger += row[j] > own * 1.0001f;
        agree("place among the largest scores", (double)larger, (double)(kept - 1));
    }
}

/* Any keys, or the latest. */
static void choose_blindly(int32_t *chosen, int64_t kept, bool any) {
    int32_t key[OLD];
    for (int32_t i = 0; i < OLD; i++) key[i] = OLD - 1 - i;
    for (int64_t i = 0; i < kept; i++) {
        const int64_t at = any ? i + (int64_t)(uniform() * (double)(OLD - i)) : i;
        chosen[i] = key[at];
        key[at] = key[i];
    }
}

int main(void) {
    trine_library *lib = NULL;
    trine_queue *queue = cpu_queue(&lib);
    const prompt p = make_prompt();
    const int64_t outputs = NEW * HEADS * D;
    float *scores = floats(KEY_HEADS * OLD), *direct = floats(KEY_HEADS * OLD), *whole = floats(outputs),
          *out = floats(outputs);
    int32_t *chosen = calloc(KEY_HEADS * OLD, sizeof *chosen);
    trine_tensor q = trine_tensor_4d(p.last, TRINE_F32, 1, WINDOW, HEADS, D),
                 k = trine_tensor_4d(p.k, TRINE_F32, 1, KEYS, KEY_HEADS, D),
                 s = trine_tensor_3d(scores, TRINE_F32, 1, KEY_HEADS, OLD);
    need(trine_window_score(queue, &(trine_window_score_args){ TRINE_ARGS(window_score), .q = &q, .k = &k, .scores = &s,
                                                               .radius = RADIUS }));
    need(trine_queue_wait(queue));
    score(&p, direct);
    agree("scores", distance(scores, direct, KEY_HEADS * OLD), 1e-5);
    attend(p.to, p.k, p.v, KEYS, whole);

    printf("A prompt of %d keys, %d of which matter to each head; its last %d are kept in any case.\n", KEYS, PLANTED,
           WINDOW);
    printf("How far attention to the kept keys is from attention to all:\n\n");
    printf("  keys kept   SnapKV   by chance   the latest\n");
    double apart[3] = { 0 };
    for (int64_t kept = OLD / 64; kept <= OLD; kept *= 2) {
        for (int way = 0; way < 3; way++) {
            if (way == 0) choose(queue, scores, direct, kept, chosen);
            for (int64_t g = 0; way > 0 && g < KEY_HEADS; g++) choose_blindly(chosen + g * kept, kept, way == 1);
            attend_kept(queue, &p, chosen, kept, out);
            apart[way] = distance(out, whole, outputs);
        }
        printf("  %8.1f%% %7.1f%% %10.1f%% %11.1f%%\n", 100.0 * (double)kept / OLD, 100 * apart[0], 100 * apart[1],
               100 * apart[2]);
        if (kept >= 4 * PLANTED && kept < OLD / 2) agree("SnapKV beside the latest", apart[0], apart[2]);
    }
    free(p.k), free(p.v), free(p.last), free(p.to);
    free(scores), free(direct), free(whole), free(out), free(chosen);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
