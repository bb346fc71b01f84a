/* SPDX-License-Identifier: Apache-2.0 */
/* Quest (Tang et al. 2024): a query reads only those pages of a cache whose keys may matter to it. Of each page the
 * least and the largest number of every column are known, and with them a bound of what any of its keys can be worth to
 * a query: sum_c max(q_c least_c, q_c largest_c). argmax finds these numbers, matmul the bounds, topk the pages, and
 * attention_decode attends to them by a table. The keys are made: a page's are alike. Each head is a sequence of its
 * own, so that it may choose pages of its own. */
#include "papers.h"

enum { HEADS = 4, D = 64, PAGE = 16, PAGES = 128, KEYS = PAGE * PAGES };

typedef struct cache {
    float *k, *v; /* HEADS PAGES PAGE D */
    float *q;     /* HEADS D */
} cache;

static cache make_cache(void) {
    cache m = { floats(HEADS * KEYS * D), floats(HEADS * KEYS * D), floats(HEADS * D) };
    float topic[D];
    for (int64_t i = 0; i < HEADS * D; i++) m.q[i] = 2.5f * normal();
    for (int64_t page = 0; page < HEADS * PAGES; page++) {
        for (int c = 0; c < D; c++) topic[c] = normal();
        for (int64_t i = 0; i < PAGE * D; i++) m.k[page * PAGE * D + i] = topic[i % D] + 0.3f * normal();
    }
    for (int64_t i = 0; i < HEADS * KEYS * D; i++) m.v[i] = normal();
    return m;
}

static double worth(const cache *m, int64_t head, int64_t key) {
    double z = 0;
    for (int c = 0; c < D; c++) z += (double)m->q[head * D + c] * m->k[(head * KEYS + key) * D + c];
    return z;
}

/* The least and the largest of every column of a page, by argmax: it takes rows, which columns are made. */
static void columns(trine_queue *queue, const cache *m, float *least, float *largest) {
    const int64_t rows = HEADS * PAGES * D;
    float *turned = floats(rows * PAGE);
    int32_t *places = calloc((size_t)rows, sizeof *places);
    for (int64_t i = 0; i < rows * PAGE; i++) turned[i] = m->k[(i / PAGE / D * PAGE + i % PAGE) * D + i / PAGE % D];
    trine_tensor x = trine_tensor_2d(turned, TRINE_F32, rows, PAGE), at = trine_tensor_1d(places, TRINE_I32, rows);
    for (int smallest = 0; smallest < 2; smallest++) {
        trine_tensor y = trine_tensor_1d(smallest ? least : largest, TRINE_F32, rows);
        need(trine_argmax(queue, &(trine_argmax_args){ TRINE_ARGS(argmax), .x = &x, .indices = &at, .values = &y,
                                                       .smallest = smallest }));
    }
    need(trine_queue_wait(queue));
    free(turned), free(places);
}

/* bounds[head][page] = (positive part of q) . largest + (negative part of q) . least */
static void bound(trine_queue *queue, const cache *m, float *least, float *largest, float *bounds) {
    float above[HEADS * D], below[HEADS * D];
    for (int i = 0; i < HEADS * D; i++) above[i] = fmaxf(m->q[i], 0), below[i] = fminf(m->q[i], 0);
    trine_tensor ta = trine_tensor_3d(above, TRINE_F32, HEADS, 1, D),
                 tb = trine_tensor_3d(below, TRINE_F32, HEADS, 1, D);
    trine_tensor most = trine_tensor_3d(largest, TRINE_F32, HEADS, PAGES, D),
                 few = trine_tensor_3d(least, TRINE_F32, HEADS, PAGES, D);
    trine_tensor to = trine_tensor_3d(bounds, TRINE_F32, HEADS, 1, PAGES);
    most = trine_tensor_transpose(&most), few = trine_tensor_transpose(&few);
    need(trine_matmul(queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &ta, .b = &most, .d = &to }));
    need(trine_matmul(queue,
                      &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &tb, .b = &few, .c = &to, .d = &to, .beta = 1 }));
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < HEADS * PAGES; i++) {
        double direct = 0, best = -INFINITY;
        for (int c = 0; c < D; c++) {
            const double q = m->q[i / PAGES * D + c], a = q * (double)least[i * D + c],
                         b = q * (double)largest[i * D + c];
            direct += a > b ? a : b;
        }
        for (int64_t j = 0; j < PAGE; j++) best = fmax(best, worth(m, i / PAGES, i % PAGES * PAGE + j));
        agree("bound of a page", fabs(bounds[i] - direct), 1e-4 * (1 + fabs(direct)));
        agree("worth of a key above its page's bound", best - bounds[i], 1e-4 * (1 + fabs(best)));
    }
}

/* Attention to the pages that `table` names, in float64, and in `share_out` their part of all probability. */
static void attend(const cache *m, const int32_t *table, int64_t kept, float *out, double *share_out) {
    double part = 0;
    for (int64_t head = 0; head < HEADS; head++) {
        double x[D] = { 0 }, sum = 0, all = 0;
        for (int64_t j = 0; j < KEYS; j++) all += exp(worth(m, head, j) / sqrt(D));
        for (int64_t j = 0; j < kept * PAGE; j++) {
            const int64_t key = (table[head * kept + j / PAGE] - head * PAGES) * PAGE + j % PAGE;
            const double p = exp(worth(m, head, key) / sqrt(D));
            sum += p;
            for (int c = 0; c < D; c++) x[c] += p * (double)m->v[(head * KEYS + key) * D + c];
        }
        for (int c = 0; c < D; c++) out[head * D + c] = (float)(x[c] / sum);
        part += sum / all / HEADS;
    }
    *share_out = part;
}

static void decode(trine_queue *queue, const cache *m, int32_t *table, int64_t kept, float *out) {
    int32_t lengths[HEADS];
    for (int head = 0; head < HEADS; head++) lengths[head] = (int32_t)(kept * PAGE);
    trine_tensor q = trine_tensor_4d(m->q, TRINE_F32, HEADS, 1, 1, D),
                 to = trine_tensor_4d(out, TRINE_F32, HEADS, 1, 1, D);
    trine_tensor k = trine_tensor_4d(m->k, TRINE_F32, HEADS * PAGES, PAGE, 1, D),
                 v = trine_tensor_4d(m->v, TRINE_F32, HEADS * PAGES, PAGE, 1, D);
    trine_tensor pages = trine_tensor_2d(table, TRINE_I32, HEADS, kept), n = trine_tensor_1d(lengths, TRINE_I32, HEADS);
    need(trine_attention_decode(
        queue, &(trine_attention_decode_args){ TRINE_ARGS(attention_decode), .q = &q, .k_cache = &k, .v_cache = &v,
                                               .block_table = &pages, .lengths = &n, .out = &to }));
    need(trine_queue_wait(queue));
}

int main(void) {
    trine_library *lib = NULL;
    trine_queue *queue = cpu_queue(&lib);
    const cache m = make_cache();
    float *least = floats(HEADS * PAGES * D), *largest = floats(HEADS * PAGES * D), bounds[HEADS * PAGES];
    float whole[HEADS * D], out[HEADS * D], direct[HEADS * D];
    int32_t table[HEADS * PAGES];
    double share = 0, error = 0;
    columns(queue, &m, least, largest);
    bound(queue, &m, least, largest, bounds);
    for (int32_t i = 0; i < HEADS * PAGES; i++) table[i] = i;
    attend(&m, table, PAGES, whole, &share);

    printf("A cache of %d keys in %d pages; each of %d heads reads the pages whose bounds are largest.\n\n", KEYS,
           PAGES, HEADS);
    printf("  pages read   probability   error of the output   of as many latest pages\n");
    for (int64_t kept = 2; kept <= PAGES; kept *= 2) {
        trine_tensor x = trine_tensor_2d(bounds, TRINE_F32, HEADS, PAGES),
                     chosen = trine_tensor_2d(table, TRINE_I32, HEADS, kept);
        for (int64_t i = 0; i < HEADS * kept; i++) table[i] = (int32_t)(i / kept * PAGES + PAGES - 1 - i % kept);
        decode(queue, &m, table, kept, out);
        const double latest = distance(out, whole, HEADS * D);
        need(trine_topk(queue, &(trine_topk_args){ TRINE_ARGS(topk), .x = &x, .indices = &chosen }));
        need(trine_queue_wait(queue));
        for (int64_t i = 0; i < HEADS * kept; i++) table[i] += (int32_t)(i / kept * PAGES);
        decode(queue, &m, table, kept, out);
        attend(&m, table, kept, direct, &share);
        error = distance(out, whole, HEADS * D);
        printf("  %10d %12.1f%% %20.2f%% %24.2f%%\n", (int)kept, 100 * share, 100 * error, 100 * latest);
        agree("attention to the chosen pages", distance(out, direct, HEADS * D), 1e-5);
        agree("error beside that of the latest pages", error, latest + 1e-5);
    }
    agree("error with all pages", error, 1e-5);
    free(least), free(largest), free(m.k), free(m.v), free(m.q);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
