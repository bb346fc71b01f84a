/* SPDX-License-Identifier: Apache-2.0 */
/* Log-linear sparse attention (LLSA, 2025): queries find their blocks of keys from coarse to fine, and read beside them
 * means that stand for all the others. block_mean makes means of BLOCK tokens, and means of BLOCK of these; matmul and
 * topk choose coarse blocks, then fine ones among their children. All three levels lie behind each other in k and v,
 * and attention_blocks takes them by one list, with the logarithm of what a mean stands for as bias. As the authors'
 * code has it, means of what is read itself are not left out. The keys are made: neighbours are alike. */
#include "papers.h"

enum { BLOCK = 8, COARSEST = 8, COARSE = COARSEST * BLOCK, TOKENS = COARSE * BLOCK, D = 32 };
enum { MIDDLE = TOKENS / BLOCK, LAST = (TOKENS + COARSE) / BLOCK, ALL = TOKENS + COARSE + COARSEST };
enum { LEVELS = 3 }; /* where their blocks begin among those of all keys: 0, MIDDLE, LAST */

typedef struct tokens {
    float *q, *k, *v; /* ALL D: tokens, their means, and the means of these */
} tokens;

static tokens make_tokens(void) {
    tokens t = { floats(ALL * D), floats(ALL * D), floats(ALL * D) };
    float wide[D] = { 0 }, near[D] = { 0 };
    for (int64_t i = 0; i < TOKENS; i++)
        for (int c = 0; c < D; c++) {
            if (i % COARSE == 0) wide[c] = normal();
            if (i % BLOCK == 0) near[c] = wide[c] + 0.5f * normal();
            t.k[i * D + c] = near[c] + 0.3f * normal();
            t.q[i * D + c] = 2 * near[c] + normal();
            t.v[i * D + c] = near[c] + 0.3f * normal();
        }
    return t;
}

static void pool(trine_queue *queue, float *x) {
    trine_tensor level[LEVELS] = { trine_tensor_2d(x, TRINE_F32, TOKENS, D),
                                   trine_tensor_2d(x + TOKENS * D, TRINE_F32, COARSE, D),
                                   trine_tensor_2d(x + (TOKENS + COARSE) * D, TRINE_F32, COARSEST, D) };
    for (int i = 1; i < LEVELS; i++)
        need(trine_block_mean(queue, &(trine_block_mean_args){ TRINE_ARGS(block_mean), .x = &level[i - 1],
                                                               .y = &level[i], .size = BLOCK }));
    need(trine_queue_wait(queue));
}

/* The best of each row of q k^T, of n rows at row `first`; `among`, if not NULL, has the parents that are allowed. */
static void choose(trine_queue *queue, const tokens *t, int64_t first, int64_t n, int64_t kept, const int32_t *among,
                   int32_t *best) {
    float *score = floats(n * n);
    trine_tensor q = trine_tensor_2d(t->q + first * D, TRINE_F32, n, D),
                 k = trine_tensor_2d(t->k + first * D, TRINE_F32, n, D), across = trine_tensor_transpose(&k),
                 scores = trine_tensor_2d(score, TRINE_F32, n, n), places = trine_tensor_2d(best, TRINE_I32, n, kept);
    need(trine_matmul(queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &q, .b = &across, .d = &scores }));
    need(trine_queue_wait(queue));
    for (int64_t i = 0; among && i < n * n; i++) {
        bool allowed = false;
        for (int64_t a = 0; a < kept; a++) allowed |= among[i / n / BLOCK * kept + a] == i % n / BLOCK;
        if (!allowed) score[i] = -INFINITY;
    }
    need(trine_topk(queue, &(trine_topk_args){ TRINE_ARGS(topk), .x = &scores, .indices = &places }));
    need(trine_queue_wait(queue));
    free(score);
}

/* A list for each block of queries: fine blocks, blocks of means, and all means of means; with one level the first. */
static void attend(trine_queue *queue, const tokens *t, int64_t kept, int levels, const int32_t *coarse,
                   const int32_t *fine, float *out) {
    const int64_t entries = levels == 1 ? kept : 2 * kept + COARSEST / BLOCK;
    int32_t *index = calloc((size_t)(COARSE * entries), sizeof *index), start[COARSE + 1];
    float *bias = floats(COARSE * entries);
    for (int64_t m = 0; m <= COARSE; m++) start[m] = (int32_t)(m * entries);
    for (int64_t m = 0; m < COARSE; m++)
        for (int64_t e = 0; e < entries; e++) {
            int32_t *to = &index[m * entries + e];
            if (e < kept)
                *to = fine[m * kept + e];
            else if (e < 2 * kept)
                *to = MIDDLE + coarse[m / BLOCK * kept + e - kept], bias[m * entries + e] = logf(BLOCK);
            else
                *to = LAST + (int32_t)(e - 2 * kept), bias[m * entries + e] = logf(BLOCK * BLOCK);
        }
    trine_tensor q = trine_tensor_3d(t->q, TRINE_F32, TOKENS, 1, D), k = trine_tensor_3d(t->k, TRINE_F32, ALL, 1, D),
                 v = trine_tensor_3d(t->v, TRINE_F32, ALL, 1, D), o = trine_tensor_3d(out, TRINE_F32, TOKENS, 1, D),
                 starts = trine_tensor_2d(start, TRINE_I32, 1, COARSE + 1),
                 indices = trine_tensor_2d(index, TRINE_I32, 1, COARSE * entries),
                 weights = trine_tensor_2d(bias, TRINE_F32, 1, COARSE * entries);
    need(trine_attention_blocks(queue, &(trine_attention_blocks_args){ TRINE_ARGS(attention_blocks), .q = &q, .k = &k,
                                                                       .v = &v, .starts = &starts, .indices = &indices,
                                                                       .bias = &weights, .o = &o, .query_block = BLOCK,
                                                                       .key_block = BLOCK }));
    need(trine_queue_wait(queue));
    free(index), free(bias);
}

/* How many of n tokens from `first` on are liked better than token j of these, among children of what is `taken`. */
static int64_t rank_of(const tokens *t, int64_t query, int64_t first, int64_t n, int64_t j, const bool *taken) {
    int64_t better = 0;
    double own = 0;
    for (int c = 0; c < D; c++) own += (double)t->q[(first + query) * D + c] * t->k[(first + j) * D + c];
    for (int64_t i = 0; i < n; i++) {
        double other = 0;
        for (int c = 0; c < D; c++) other += (double)t->q[(first + query) * D + c] * t->k[(first + i) * D + c];
        better += (taken == NULL || taken[i / BLOCK]) && other > own;
    }
    return better;
}

/* The definition, in float64: sum of w e^s v over that of w e^s. `levels` 0: attention to all tokens. */
static void direct(const tokens *t, int64_t kept, int levels, float *out) {
    for (int64_t m = 0; m < COARSE; m++) {
        double weight[ALL] = { 0 };
        bool taken[COARSEST];
        for (int64_t j = 0; j < COARSEST; j++)
            taken[j] = rank_of(t, m / BLOCK, TOKENS + COARSE, COARSEST, j, NULL) < kept;
        for (int64_t j = 0; j < COARSE; j++) {
            const bool child = taken[j / BLOCK], chosen = child && rank_of(t, m, TOKENS, COARSE, j, taken) < kept;
            for (int64_t i = 0; i < BLOCK; i++) weight[j * BLOCK + i] = chosen || levels == 0;
            weight[TOKENS + j] = levels > 1 && child ? BLOCK : 0;
        }
        for (int64_t j = 0; j < COARSEST; j++) weight[TOKENS + COARSE + j] = levels > 1 ? BLOCK * BLOCK : 0;
        for (int64_t i = m * BLOCK; i < (m + 1) * BLOCK; i++) {
            double sum = 0, o[D] = { 0 };
            for (int64_t j = 0; j < ALL; j++) {
                double s = 0;
                if (weight[j] == 0) continue;
                for (int c = 0; c < D; c++) s += (double)t->q[i * D + c] * t->k[j * D + c];
                const double p = weight[j] * exp(s / sqrt(D));
                sum += p;
                for (int c = 0; c < D; c++) o[c] += p * t->v[j * D + c];
            }
            for (int c = 0; c < D; c++) out[i * D + c] = (float)(o[c] / sum);
        }
    }
}

int main(void) {
    trine_library *lib;
    trine_queue *queue = cpu_queue(&lib);
    const tokens t = make_tokens();
    float *out = floats(TOKENS * D), *want = floats(TOKENS * D), *full = floats(TOKENS * D);
    pool(queue, t.q), pool(queue, t.k), pool(queue, t.v);
    direct(&t, 0, 0, full);
    printf("%d tokens, blocks of %d, two levels of means\n\n", TOKENS, BLOCK);
    printf("blocks of a level   keys read   distance from attention to all   without the means\n");
    for (int64_t kept = 1; kept <= COARSEST; kept *= 2) {
        int32_t coarse[COARSEST * COARSEST], fine[COARSE * COARSEST];
        double apart[2];
        choose(queue, &t, TOKENS + COARSE, COARSEST, kept, NULL, coarse);
        choose(queue, &t, TOKENS, COARSE, kept, coarse, fine);
        for (int levels = 1; levels <= LEVELS; levels += 2) {
            direct(&t, kept, levels, want);
            attend(queue, &t, kept, levels, coarse, fine, out);
            agree("attention to the chosen blocks", distance(out, want, TOKENS * D), 1e-5);
            apart[levels > 1] = distance(out, full, TOKENS * D);
        }
        printf("%17d   %9d   %30.4f   %17.4f\n", (int)kept, (int)(2 * kept * BLOCK + COARSEST), apart[1], apart[0]);
    }
    free(t.q), free(t.k), free(t.v), free(out), free(want), free(full);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
