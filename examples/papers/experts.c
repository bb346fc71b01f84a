/* SPDX-License-Identifier: Apache-2.0 */
/* Experts over ranks (Lepikhin et al. 2021, GShard): a mixture's layer on 1, 2 and 4 ranks, threads here, each of which
 * has a part of the tokens and of the experts. Tokens are routed, sent to the ranks of their experts, go through these,
 * and come back and are added up. On any number of ranks the output has the bits of moe_mlp on one; and so has the
 * gradient, which is made of the same two ops, those of moe_combine_backward, but for the weights', whose sums have
 * another order. Printed is what a rank's calls took, and how many rows a rank had room for and needed. */
#include <pthread.h>
#include <string.h>

#include "papers.h"

enum { TOKENS = 256, WIDTH = 96, EXPERTS = 16, CHOICES = 4, INNER = 64, MOST = 4, RECORD = 1024 };

/* What all ranks compute together: inputs, and outputs to which each writes its tokens'. */
static float *x, *router, *up, *down, *dy, *y, *dx, *dweights;
static trine_library *lib;

/* Where ranks meet when they open a group. */
static pthread_barrier_t meeting;
static char records[MOST][RECORD];

typedef struct member {
    int rank, ranks;
    pthread_t thread;
    int32_t needed[MOST];
    int64_t room;
    double took;
} member;

static int gather(void *context, const void *mine, void *all, size_t bytes) {
    const member *m = context;
    if (bytes > RECORD) return 1;
    memcpy(records[m->rank], mine, bytes);
    pthread_barrier_wait(&meeting);
    for (int r = 0; r < m->ranks; r++) memcpy((char *)all + (size_t)r * bytes, records[r], bytes);
    pthread_barrier_wait(&meeting);
    return 0;
}

static trine_tensor whole_numbers(int64_t rows, int64_t columns) {
    int32_t *memory = calloc((size_t)(rows * columns), sizeof *memory);
    if (memory == NULL) exit(1);
    return trine_tensor_2d(memory, TRINE_I32, rows, columns);
}
static trine_tensor room_for(int64_t rows, int64_t columns) { return matrix(floats(rows * columns), rows, columns); }
static trine_tensor line(const trine_tensor *t) { return trine_tensor_1d(t->data, t->dtype, trine_tensor_count(t)); }

static void route(trine_queue *queue, float *tokens, int64_t count, const trine_tensor *weights,
                  const trine_tensor *experts) {
    const trine_tensor t = matrix(tokens, count, WIDTH), w = matrix(router, EXPERTS, WIDTH),
                       across = trine_tensor_transpose(&w), logits = room_for(count, EXPERTS);
    RUN(matmul, .a = &t, .b = &across, .d = &logits);
    RUN(moe_route, .logits = &logits, .weights = weights, .experts = experts, .renormalise = 1);
    free(logits.data);
}

/* This rank's experts, of which `rows` has the tokens in order. */
static void run_experts(trine_queue *queue, const member *m, const trine_tensor *rows, const trine_tensor *offsets,
                        const trine_tensor *made) {
    const int64_t count = rows->shape[0], own = EXPERTS / m->ranks;
    const trine_tensor first =
                           trine_tensor_3d(up + m->rank * own * 2 * INNER * WIDTH, TRINE_F32, own, 2 * INNER, WIDTH),
                       second = trine_tensor_3d(down + m->rank * own * WIDTH * INNER, TRINE_F32, own, WIDTH, INNER),
                       both = room_for(count, 2 * INNER);
    trine_tensor gate = matrix(both.data, count, INNER), other = matrix((float *)both.data + INNER, count, INNER);
    gate.stride[0] = other.stride[0] = 2 * INNER;
    RUN(grouped_matmul, .x = rows, .w = &first, .offsets = offsets, .y = &both);
    RUN(swiglu, .gate = &gate, .up = &other, .y = &gate);
    RUN(grouped_matmul, .x = &gate, .w = &second, .offsets = offsets, .y = made);
    free(both.data);
}

/* Gradients of the sum: of what the experts made, to `dmade`, which goes on to theirs, and of the weights. */
static void sum_backward(trine_queue *queue, const member *m, trine_comm *comm, const trine_tensor *made,
                         const trine_tensor *weights, const trine_tensor *experts, const trine_tensor *places,
                         const trine_tensor *dmade) {
    const int64_t own = TOKENS / m->ranks, room = made->shape[0];
    const trine_tensor dout = matrix(dy + m->rank * own * WIDTH, own, WIDTH), g = room_for(room, WIDTH),
                       v = room_for(room, 1), dots = room_for(room, 1), dot = vector(dots.data, room),
                       slots = matrix(weights->data, own * CHOICES, 1),
                       slot_experts = trine_tensor_2d(experts->data, TRINE_I32, own * CHOICES, 1),
                       slot_places = trine_tensor_2d(places->data, TRINE_I32, own * CHOICES, 1),
                       dslots = matrix(dweights + m->rank * own * CHOICES, own * CHOICES, 1),
                       counts = whole_numbers(1, EXPERTS / m->ranks),
                       offsets = whole_numbers(1, EXPERTS / m->ranks + 1), again = whole_numbers(own * CHOICES, 1),
                       c = line(&counts), o = line(&offsets), a = trine_tensor_2d(again.data, TRINE_I32, own, CHOICES);
    RUN(moe_dispatch, .comm = comm, .x = &dout, .experts = experts, .y = &g, .counts = &c, .offsets = &o, .places = &a);
    RUN(moe_dispatch, .comm = comm, .x = &slots, .experts = &slot_experts, .y = &v, .counts = &c, .offsets = &o,
        .places = &again);
    RUN(chain, .x0 = &g, .x1 = &v, .x2 = made, .y0 = dmade, .r0 = &dot,
        .program = "y0 = x0 * x1; r0 = sum_row(x0 * x2)");
    RUN(moe_collect, .comm = comm, .x = &dots, .places = &slot_places, .y = &dslots);
    free(g.data), free(v.data), free(dots.data), free(counts.data), free(offsets.data), free(again.data);
}

static void *live(void *context) {
    member *m = context;
    const int64_t own = TOKENS / m->ranks, first = m->rank * own;
    const trine_bootstrap bootstrap = { gather, m };
    trine_queue *queue = NULL;
    trine_comm *comm = NULL;
    need(trine_queue_open(lib, 0, &(trine_queue_options){ .struct_size = sizeof(trine_queue_options), .threads = 1 },
                          &queue));
    need(trine_comm_open(queue, m->rank, m->ranks, &bootstrap, NULL, &comm));
    m->room = TOKENS * CHOICES; /* whatever experts are chosen */
    const trine_tensor tokens = matrix(x + first * WIDTH, own, WIDTH), weights = room_for(own, CHOICES),
                       experts = whole_numbers(own, CHOICES), places = whole_numbers(own, CHOICES),
                       rows = room_for(m->room, WIDTH), made = room_for(m->room, WIDTH),
                       dmade = room_for(m->room, WIDTH), counts = whole_numbers(1, EXPERTS / m->ranks),
                       offsets = whole_numbers(1, EXPERTS / m->ranks + 1), c = line(&counts), o = line(&offsets),
                       needed = trine_tensor_1d(m->needed, TRINE_I32, m->ranks),
                       out = matrix(y + first * WIDTH, own, WIDTH), dtokens = matrix(dx + first * WIDTH, own, WIDTH);
    for (int round = 0; round < 2; round++) {
        const double start = seconds();
        route(queue, tokens.data, own, &weights, &experts);
        RUN(moe_dispatch, .comm = comm, .x = &tokens, .experts = &experts, .y = &rows, .counts = &c, .offsets = &o,
            .places = &places, .needed = &needed);
        run_experts(queue, m, &rows, &o, &made);
        RUN(moe_collect, .comm = comm, .x = &made, .places = &places, .weights = &weights, .y = &out);
        m->took = seconds() - start;
    }
    sum_backward(queue, m, comm, &made, &weights, &experts, &places, &dmade);
    /* The gradient of the tokens, of the way to the experts: here of rows whose gradient is dmade. */
    RUN(moe_collect, .comm = comm, .x = &dmade, .places = &places, .y = &dtokens);
    free(weights.data), free(experts.data), free(places.data), free(rows.data), free(made.data), free(dmade.data);
    free(counts.data), free(offsets.data);
    trine_comm_close(comm);
    trine_queue_close(queue);
    return NULL;
}

/* All of it on one rank, with no group: outputs as above, of `slots` rows in the order of experts. */
static void on_one(float *y_out, float *dx_out, float *dweights_out) {
    trine_queue *queue = NULL;
    const int64_t slots = TOKENS * CHOICES;
    need(trine_queue_open(lib, 0, NULL, &queue));
    const trine_tensor tokens = matrix(x, TOKENS, WIDTH), weights = room_for(TOKENS, CHOICES),
                       experts = whole_numbers(TOKENS, CHOICES), out = matrix(y_out, TOKENS, WIDTH),
                       first = trine_tensor_3d(up, TRINE_F32, EXPERTS, 2 * INNER, WIDTH),
                       second = trine_tensor_3d(down, TRINE_F32, EXPERTS, WIDTH, INNER);
    route(queue, x, TOKENS, &weights, &experts);
    RUN(moe_mlp, .x = &tokens, .weights = &weights, .experts = &experts, .w_gate_up = &first, .w_down = &second,
        .y = &out);
    const trine_tensor counts = whole_numbers(1, EXPERTS), offsets = whole_numbers(1, EXPERTS + 1), c = line(&counts),
                       o = line(&offsets), order = whole_numbers(slots, 1), places = whole_numbers(TOKENS, CHOICES),
                       rows = room_for(slots, WIDTH), made = room_for(slots, WIDTH), dmade = room_for(slots, WIDTH),
                       dout = matrix(dy, TOKENS, WIDTH), dw = matrix(dweights_out, TOKENS, CHOICES),
                       dtokens = matrix(dx_out, TOKENS, WIDTH);
    RUN(moe_align, .experts = &experts, .counts = &c, .offsets = &o, .rows = &order, .places = &places);
    for (int64_t i = 0; i < slots; i++)
        memcpy((float *)rows.data + i * WIDTH, x + ((int32_t *)order.data)[i] / CHOICES * WIDTH, WIDTH * sizeof *x);
    run_experts(queue, &(member){ .ranks = 1 }, &rows, &o, &made);
    RUN(moe_combine_backward, .dy = &dout, .x = &made, .places = &places, .weights = &weights, .dx = &dmade,
        .dweights = &dw);
    RUN(moe_combine, .x = &dmade, .places = &places, .y = &dtokens);
    free(weights.data), free(experts.data), free(counts.data), free(offsets.data), free(order.data), free(places.data);
    free(rows.data), free(made.data), free(dmade.data);
    trine_queue_close(queue);
}

static float *drawn(int64_t count, double size) {
    float *memory = floats(count);
    for (int64_t i = 0; i < count; i++) memory[i] = (float)size * normal();
    return memory;
}

int main(void) {
    enum { ALL = TOKENS * WIDTH };
    x = drawn(ALL, 1), dy = drawn(ALL, 1), router = drawn(EXPERTS * WIDTH, 0.3);
    up = drawn(EXPERTS * 2 * INNER * WIDTH, 0.1), down = drawn(EXPERTS * WIDTH * INNER, 0.1);
    y = floats(ALL), dx = floats(ALL), dweights = floats(TOKENS * CHOICES);
    float *y_one = floats(ALL), *dx_one = floats(ALL), *dweights_one = floats(TOKENS * CHOICES);
    need(trine_open(NULL, &lib));
    on_one(y_one, dx_one, dweights_one);
    for (int ranks = 1; ranks <= MOST; ranks *= 2) {
        member all[MOST] = { { 0 } };
        int32_t most = 0;
        memset(y, 0, ALL * sizeof *y), memset(dx, 0, ALL * sizeof *dx);
        pthread_barrier_init(&meeting, NULL, (unsigned)ranks);
        for (int r = 0; r < ranks; r++) {
            all[r].rank = r, all[r].ranks = ranks;
            if (pthread_create(&all[r].thread, NULL, live, &all[r]) != 0) return 1;
        }
        for (int r = 0; r < ranks; r++) pthread_join(all[r].thread, NULL);
        pthread_barrier_destroy(&meeting);
        for (int r = 0; r < ranks; r++) most = all[0].needed[r] > most ? all[0].needed[r] : most;
        const bool same = memcmp(y, y_one, ALL * sizeof *y) == 0, same_back = memcmp(dx, dx_one, ALL * sizeof *dx) == 0;
        const double apart = distance(dweights, dweights_one, TOKENS * CHOICES);
        printf("%d rank%s: %.2f ms, at most %d rows of %lld; output %s, gradient %s, weights' gradient off by %.1e\n",
               ranks, ranks > 1 ? "s" : "", 1e3 * all[0].took, most, (long long)all[0].room,
               same ? "the same bits" : "DIFFERS", same_back ? "the same bits" : "DIFFERS", apart);
        disagreements += !same + !same_back;
        agree("gradient of the weights", apart, 1e-6);
    }
    free(x), free(dy), free(router), free(up), free(down), free(y), free(dx), free(dweights);
    free(y_one), free(dx_one), free(dweights_one);
    trine_close(lib);
    return disagreements != 0;
}
