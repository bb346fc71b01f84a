/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of a relational graph network (Schlichtkrull et al. 2018) as Hector (Wu et al. 2023) has it: edges have
 * types, and a node's message goes through the matrix of its edge's type.
 *
 *     y[v] = sum over edges (u, v) of type r of x[u] w[r]' / (edges of type r into v)
 *
 * Edges sorted by type, by moe_align, are the groups of one grouped_matmul, which gathers the nodes as it reads them
 * and scales the messages; scatter_add_rows adds these up. A loop over the edges checks it. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <trine/trine.h>

enum { NODES = 2000, EDGES = 24000, TYPES = 12, IN = 64, OUT = 48 };

typedef struct graph {
    int32_t source[EDGES], target[EDGES], type[EDGES];
    float x[NODES * IN], w[TYPES * OUT * IN];
} graph;

static void need(trine_status status) {
    if (status == TRINE_OK) return;
    fprintf(stderr, "%s: %s\n", trine_status_name(status), trine_error_message());
    exit(1);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint32_t draw(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}
static float draw_float(void) { return (float)draw() / (1u << 30) - 1; }

/* Few types have most edges, and the last has none. */
static void make_graph(graph *g) {
    for (int i = 0; i < EDGES; i++) {
        const uint32_t a = draw() % (TYPES - 1), b = draw() % (TYPES - 1);
        g->source[i] = (int32_t)(draw() % NODES), g->target[i] = (int32_t)(draw() % NODES);
        g->type[i] = (int32_t)(a < b ? a : b);
    }
    for (int i = 0; i < NODES * IN; i++) g->x[i] = draw_float();
    for (int i = 0; i < TYPES * OUT * IN; i++) g->w[i] = draw_float();
}

/* One over the number of edges of its type into its target, for each edge. */
static void norms(const graph *g, float *norm) {
    static int count[NODES][TYPES];
    for (int i = 0; i < EDGES; i++) count[g->target[i]][g->type[i]]++;
    for (int i = 0; i < EDGES; i++) norm[i] = 1.0f / (float)count[g->target[i]][g->type[i]];
}

/* The edges in the order of their types, and where each type's begin. */
static void sort_edges(trine_queue *queue, graph *g, int32_t *order, int32_t *offsets) {
    static int32_t counts[TYPES], places[EDGES];
    const trine_tensor types = trine_tensor_2d(g->type, TRINE_I32, EDGES, 1),
                       to_counts = trine_tensor_1d(counts, TRINE_I32, TYPES),
                       to_offsets = trine_tensor_1d(offsets, TRINE_I32, TYPES + 1),
                       rows = trine_tensor_2d(order, TRINE_I32, EDGES, 1),
                       to_places = trine_tensor_2d(places, TRINE_I32, EDGES, 1);
    need(
        trine_moe_align(queue, &(trine_moe_align_args){ TRINE_ARGS(moe_align), .experts = &types, .counts = &to_counts,
                                                        .offsets = &to_offsets, .rows = &rows, .places = &to_places }));
    need(trine_queue_wait(queue));
}

/* What a layer needs of the graph, edges in the order of their types. */
typedef struct sorted {
    int32_t order[EDGES], offsets[TYPES + 1], source[EDGES], target[EDGES];
    float norm[EDGES], message[EDGES * OUT];
} sorted;

static void layer(trine_queue *queue, graph *g, sorted *s, float *y) {
    const trine_tensor x = trine_tensor_2d(g->x, TRINE_F32, NODES, IN),
                       w = trine_tensor_3d(g->w, TRINE_F32, TYPES, OUT, IN),
                       offsets = trine_tensor_1d(s->offsets, TRINE_I32, TYPES + 1),
                       source = trine_tensor_1d(s->source, TRINE_I32, EDGES),
                       target = trine_tensor_1d(s->target, TRINE_I32, EDGES),
                       norm = trine_tensor_1d(s->norm, TRINE_F32, EDGES),
                       message = trine_tensor_2d(s->message, TRINE_F32, EDGES, OUT),
                       to = trine_tensor_2d(y, TRINE_F32, NODES, OUT);
    need(trine_grouped_matmul(queue, &(trine_grouped_matmul_args){ TRINE_ARGS(grouped_matmul), .x = &x, .w = &w,
                                                                   .offsets = &offsets, .gather = &source,
                                                                   .row_scale = &norm, .y = &message }));
    need(trine_scatter_add_rows(queue, &(trine_scatter_add_rows_args){ TRINE_ARGS(scatter_add_rows), .x = &message,
                                                                       .index = &target, .y = &to, .overwrite = 1 }));
    need(trine_queue_wait(queue));
}

static void by_loop(const graph *g, const float *norm, double *y) {
    for (int i = 0; i < NODES * OUT; i++) y[i] = 0;
    for (int i = 0; i < EDGES; i++)
        for (int j = 0; j < OUT; j++) {
            const float *x = g->x + g->source[i] * IN, *w = g->w + (g->type[i] * OUT + j) * IN;
            double sum = 0;
            for (int q = 0; q < IN; q++) sum += (double)x[q] * (double)w[q];
            y[g->target[i] * OUT + j] += sum * (double)norm[i];
        }
}

/* The largest difference, and the largest element. */
static void compare(const float *y, const double *want, double *off_out, double *largest_out) {
    double off = 0, largest = 0;
    for (int i = 0; i < NODES * OUT; i++) {
        const double apart = fabs((double)y[i] - want[i]), size = fabs(want[i]);
        if (apart > off) off = apart;
        if (size > largest) largest = size;
    }
    *off_out = off, *largest_out = largest;
}

int main(void) {
    static graph g;
    static sorted s;
    static float norm[EDGES], y[NODES * OUT];
    static double want[NODES * OUT];
    trine_library *library = NULL;
    trine_queue *queue = NULL;
    need(trine_open(NULL, &library));
    need(trine_queue_open(library, 0, NULL, &queue));
    make_graph(&g);
    norms(&g, norm);
    sort_edges(queue, &g, s.order, s.offsets);
    for (int i = 0; i < EDGES; i++) {
        s.source[i] = g.source[s.order[i]], s.target[i] = g.target[s.order[i]];
        s.norm[i] = norm[s.order[i]];
    }
    layer(queue, &g, &s, y);
    const double start = seconds();
    layer(queue, &g, &s, y);
    const double between = seconds();
    by_loop(&g, norm, want);
    const double end = seconds();
    double off, largest;
    compare(y, want, &off, &largest);
    trine_queue_close(queue);
    trine_close(library);
    printf("type   edges\n");
    for (int r = 0; r < TYPES; r++) printf("%4d %7d\n", r, s.offsets[r + 1] - s.offsets[r]);
    printf("%d nodes, %d edges, %d to %d columns: %.2f ms, by a loop %.2f ms\n", NODES, EDGES, IN, OUT,
           1e3 * (between - start), 1e3 * (end - between));
    printf("largest difference %.1e, of %.1f\n", off, largest);
    return off <= 1e-5 * largest ? 0 : 1;
}
