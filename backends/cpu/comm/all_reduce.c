/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce on the CPU, in pieces that have room in a half. In one step: every rank reads the pieces of all, and adds
 * them up for itself. In two: each rank adds up its part of the piece, and then reads the parts of the others. The bits
 * are the same. */
#include "backends/cpu/comm/sums.h"
#include "spec/places/all_reduce.h"

enum { ONE_STEP = 1, TWO_STEPS = 2, STEP_NS = 4000 };

typedef struct piece {
    const trine_call *call;
    trine_dtype T;
    int32_t kind;
    int ranks, rank;
    int64_t n;
    char *y;
} piece;

static sums sums_of(const piece *p) {
    sums s = { .T = p->T, .kind = p->kind, .ranks = p->ranks };
    for (int r = 0; r < p->ranks; r++) s.from[r] = trine_cpu_group_half(p->call, r);
    return s;
}

static trine_status in_one(const piece *p) {
    sums s = sums_of(p);
    s.n = p->n;
    s.to = p->y;
    sum_all(p->call, &s);
    return TRINE_OK;
}

/* Elements of a rank's part, the last ones' less: whole lines. */
static int64_t part_of(const piece *p, int rank, int64_t *first_out) {
    const int64_t part = cpu_round_up((p->n + p->ranks - 1) / p->ranks, 64), first = rank * part;
    *first_out = first < p->n ? first : p->n;
    return p->n - *first_out < part ? p->n - *first_out : part;
}

static trine_status in_two(const piece *p) {
    const int64_t width = (int64_t)trine_dtype_size(p->T);
    sums s = sums_of(p);
    int64_t first;
    s.n = part_of(p, p->rank, &first);
    for (int r = 0; r < p->ranks; r++) s.from[r] += first * width;
    trine_status status = trine_cpu_group_ready(p->call, &s.to);
    if (status != TRINE_OK) return status;
    sum_all(p->call, &s);
    if ((status = trine_cpu_group_post(p->call, false, TWO_STEPS)) != TRINE_OK) return status;
    for (int r = 0; r < p->ranks; r++) {
        const int64_t count = part_of(p, r, &first);
        copy_row(p->call, p->y + first * width, trine_cpu_group_half(p->call, r), count * width);
    }
    return TRINE_OK;
}

static trine_status run(const trine_call *call, int way) {
    const trine_all_reduce_args *args = call->args;
    const trine_tensor *x = &call->tensor[ALL_REDUCE_X], *y = &call->tensor[ALL_REDUCE_Y];
    const int64_t n = call->dim[ALL_REDUCE_DIM_N], room = copy_room(call, x->dtype, 1),
                  width = (int64_t)trine_dtype_size(x->dtype);
    piece p = { .call = call,
                .T = x->dtype,
                .kind = args->kind,
                .ranks = (int)call->dim[ALL_REDUCE_DIM_RANKS],
                .rank = trine_cpu_group_rank(call) };
    for (int64_t at = 0; at == 0 || at < n; at += room) {
        char *half;
        trine_status status = trine_cpu_group_ready(call, &half);
        if (status != TRINE_OK) return status;
        p.n = n - at < room ? n - at : room;
        p.y = (char *)y->data + at * width;
        copy_row(call, half, (const char *)x->data + at * width, p.n * width);
        status = trine_cpu_group_post(call, at == 0, way);
        if (status == TRINE_OK && p.n > 0) status = way == ONE_STEP ? in_one(&p) : in_two(&p);
        if (status != TRINE_OK) return status;
    }
    return TRINE_OK;
}

static trine_status launch_one(const trine_call *call) { return run(call, ONE_STEP); }
static trine_status launch_two(const trine_call *call) { return run(call, TWO_STEPS); }

/* A prediction that all ranks must have alike: of bytes that are read and written, and of steps, with an order of
 * magnitude of a core's speed in place of the device's. */
static double seconds_of(const trine_call *call, int way) {
    const double ranks = (double)call->dim[ALL_REDUCE_DIM_RANKS], n = (double)call->dim[ALL_REDUCE_DIM_N],
                 bytes = n * (double)trine_dtype_size(call->type[ALL_REDUCE_TYPE_T]),
                 pieces = 1 + floor(n / (double)copy_room(call, call->type[ALL_REDUCE_TYPE_T], 1));
    return 1e-10 * bytes * (way == ONE_STEP ? 3 + ranks : 6) + 1e-9 * STEP_NS * pieces * way;
}
static double seconds_one(const trine_call *call) { return seconds_of(call, ONE_STEP); }
static double seconds_two(const trine_call *call) { return seconds_of(call, TWO_STEPS); }

/* The faster by prediction. */
static int best_of(const trine_call *call) { return seconds_two(call) < seconds_one(call) ? TWO_STEPS : ONE_STEP; }
static trine_status launch_best(const trine_call *call) { return run(call, best_of(call)); }
static double seconds_best(const trine_call *call) { return seconds_of(call, best_of(call)); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ALL_REDUCE_DIM_N, VL);
    trine_kernel_edge(edges, ALL_REDUCE_DIM_N, SUM_PIECE);
    trine_kernel_edge(edges, ALL_REDUCE_DIM_N, copy_room(call, call->type[ALL_REDUCE_TYPE_T], 1));
    cpu_team_edge(edges, ALL_REDUCE_DIM_N, (int64_t)trine_dtype_size(call->type[ALL_REDUCE_TYPE_T]));
}

CPU_KERNELS(all_reduce) = {
    { CPU_NAME, NULL, NULL, launch_best, seconds_best, .edges = edges, .same = true },
    { CPU_VARIANT("one_step"), NULL, NULL, launch_one, seconds_one, .edges = edges, .same = true },
    { CPU_VARIANT("two_steps"), NULL, NULL, launch_two, seconds_two, .edges = edges, .same = true },
    { 0 }
};
