/* SPDX-License-Identifier: Apache-2.0 */
/* MoBA (Lu et al. 2025): each query attends to its own block of keys and to those of the blocks before whose mean is
 * most like it. block_mean finds the means, matmul what a query says of each, topk the blocks, whose numbers are, as
 * they are, the lists of attention_blocks: of one query each. The keys are made: a block's are alike, and each query
 * looks for what one of the blocks is about. */
#include "papers.h"

enum { HEADS = 2, TOKENS = 512, D = 32, BLOCK = 32, BLOCKS = TOKENS / BLOCK, ROWS = HEADS * TOKENS };

typedef struct text {
    float *q, *k, *v; /* HEADS TOKENS D */
} text;

static text make_text(void) {
    text t = { floats(ROWS * D), floats(ROWS * D), floats(ROWS * D) };
    float *topic = floats(HEADS * BLOCKS * D);
    for (int64_t i = 0; i < HEADS * BLOCKS * D; i++) topic[i] = normal();
    for (int64_t row = 0; row < ROWS; row++) {
        const int64_t head = row / TOKENS, own = row % TOKENS / BLOCK,
                      sought = (int64_t)(uniform() * (double)(own + 1));
        for (int c = 0; c < D; c++) {
            t.q[row * D + c] = 1.5f * topic[(head * BLOCKS + sought) * D + c] + 0.5f * normal();
            t.k[row * D + c] = topic[(head * BLOCKS + own) * D + c] + normal();
            t.v[row * D + c] = normal();
        }
    }
    free(topic);
    return t;
}

/* What each query says of each block; its own comes first, and those of the future never do. */
static void gates(trine_queue *queue, const text *t, float *gate) {
    float *mean = floats(HEADS * BLOCKS * D);
    trine_tensor q = trine_tensor_3d(t->q, TRINE_F32, HEADS, TOKENS, D),
                 k = trine_tensor_3d(t->k, TRINE_F32, HEADS, TOKENS, D),
                 means = trine_tensor_3d(mean, TRINE_F32, HEADS, BLOCKS, D),
                 to = trine_tensor_3d(gate, TRINE_F32, HEADS, TOKENS, BLOCKS), across = trine_tensor_transpose(&means);
    need(trine_block_mean(queue,
                          &(trine_block_mean_args){ TRINE_ARGS(block_mean), .x = &k, .y = &means, .size = BLOCK }));
    need(trine_matmul(queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &q, .b = &across, .d = &to }));
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < ROWS * BLOCKS; i++) {
        const int64_t own = i / BLOCKS % TOKENS / BLOCK, block = i % BLOCKS;
        if (block >= own) gate[i] = block == own ? INFINITY : -INFINITY;
    }
    free(mean);
}

/* Attention of each query to the `kept` blocks with the largest gates. */
static void attend(trine_queue *queue, const text *t, float *gate, int64_t kept, float *out) {
    int32_t *index = calloc((size_t)(ROWS * kept), sizeof *index), start[TOKENS + 1];
    float *value = floats(ROWS * kept);
    trine_tensor x = trine_tensor_2d(gate, TRINE_F32, ROWS, BLOCKS),
                 values = trine_tensor_2d(value, TRINE_F32, ROWS, kept),
                 places = trine_tensor_2d(index, TRINE_I32, ROWS, kept);
    need(trine_topk(queue, &(trine_topk_args){ TRINE_ARGS(topk), .x = &x, .values = &values, .indices = &places }));
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < ROWS * kept; i++)
        if (value[i] == -INFINITY) index[i] = -1; /* there are not so many blocks before */
    for (int64_t i = 0; i <= TOKENS; i++) start[i] = (int32_t)(i * kept);
    trine_tensor q = trine_tensor_4d(t->q, TRINE_F32, HEADS, TOKENS, 1, D),
                 k = trine_tensor_4d(t->k, TRINE_F32, HEADS, TOKENS, 1, D),
                 v = trine_tensor_4d(t->v, TRINE_F32, HEADS, TOKENS, 1, D),
                 o = trine_tensor_4d(out, TRINE_F32, HEADS, TOKENS, 1, D),
                 starts = trine_tensor_3d(start, TRINE_I32, HEADS, 1, TOKENS + 1),
                 indices = trine_tensor_3d(index, TRINE_I32, HEADS, 1, TOKENS * kept);
    starts.stride[0] = 0; /* all heads' lists begin at the same places */
    need(trine_attention_blocks(queue,
                                &(trine_attention_blocks_args){ TRINE_ARGS(attention_blocks), .q = &q, .k = &k, .v = &v,
                                                                .starts = &starts, .indices = &indices, .o = &o,
                                                                .causal = 1, .query_block = 1, .key_block = BLOCK }));
    need(trine_queue_wait(queue));
    free(index), free(value);
}

static double dot(const float *a, const double *b) {
    double sum = 0;
    for (int c = 0; c < D; c++) sum += a[c] * b[c];
    return sum;
}

/* The paper's definition, in float64 and with a mask. Returns the share of all probability that the mask lets
 * through. */
static double direct(const text *t, int64_t kept, float *out) {
    double share = 0;
    for (int64_t row = 0; row < ROWS; row++) {
        const int64_t head = row / TOKENS, i = row % TOKENS, own = i / BLOCK;
        double gate[BLOCKS], all = 0, seen = 0, o[D] = { 0 };
        for (int64_t n = 0; n < own; n++) {
            double mean[D] = { 0 };
            for (int64_t j = n * BLOCK; j < (n + 1) * BLOCK; j++)
                for (int c = 0; c < D; c++) mean[c] += (double)t->k[(head * TOKENS + j) * D + c] / BLOCK;
            gate[n] = dot(t->q + row * D, mean);
        }
        for (int64_t j = 0; j <= i; j++) {
            const int64_t n = j / BLOCK;
            int64_t better = 1; /* the own block is */
            for (int64_t m = 0; m < own && n < own; m++) better += gate[m] > gate[n];
            double key[D];
            for (int c = 0; c < D; c++) key[c] = t->k[(head * TOKENS + j) * D + c];
            const double p = exp(dot(t->q + row * D, key) / sqrt(D));
            all += p;
            if (n < own && better >= kept) continue;
            seen += p;
            for (int c = 0; c < D; c++) o[c] += p * t->v[(head * TOKENS + j) * D + c];
        }
        for (int c = 0; c < D; c++) out[row * D + c] = (float)(o[c] / seen);
        share += seen / all / ROWS;
    }
    return share;
}

int main(void) {
    trine_library *lib;
    trine_queue *queue = cpu_queue(&lib);
    const text t = make_text();
    float *gate = floats(ROWS * BLOCKS), *out = floats(ROWS * D), *want = floats(ROWS * D), *full = floats(ROWS * D);
    gates(queue, &t, gate);
    direct(&t, BLOCKS, full);
    printf("%d queries and keys, %d heads, blocks of %d keys\n\n", TOKENS, HEADS, BLOCK);
    printf("blocks of a query   share of all probability   distance from attention to all\n");
    for (int64_t kept = 1; kept <= BLOCKS; kept *= 2) {
        const double share = direct(&t, kept, want);
        attend(queue, &t, gate, kept, out);
        agree("attention to the chosen blocks", distance(out, want, ROWS * D), 1e-5);
        printf("%17d   %24.3f   %30.4f\n", (int)kept, share, distance(out, full, ROWS * D));
    }
    free(t.q), free(t.k), free(t.v), free(gate), free(out), free(want), free(full);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
