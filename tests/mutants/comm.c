/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of collective ops. */
#include "mutant.h"

#include <math.h>
#include <string.h>

/* What the last rank has counts for nothing. */
static void last_rank_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t ranks = D("ranks"), n = D("n"), own = ref->plan->tensor[0].rank == 3 ? ranks * n : n;
    if (ranks > 1) memset(V("x") + (ranks - 1) * own, 0, (size_t)own * sizeof(double));
}

/* The last rank keeps what it had. */
static void last_rank_keeps(trine_ref *ref) {
    const int64_t ranks = D("ranks"), n = D("n");
    memcpy(V("y") + (ranks - 1) * n, V("x") + (ranks - 1) * n, (size_t)n * sizeof(double));
}

/* NaN is no largest. */
static void blind(trine_ref *ref) {
    const int64_t ranks = D("ranks"), n = D("n");
    const int32_t kind = ((const trine_all_reduce_args *)ref->args)->kind;
    for (int64_t k = 0; kind == TRINE_RANKS_MAX && k < ranks * n; k++)
        if (isnan(V("y")[k])) V("y")[k] = 0;
}

/* Each rank has what is meant for the next. */
static void of_next(trine_ref *ref) {
    const int64_t ranks = D("ranks"), n = D("n");
    double first[1 << 14];
    if (ranks < 2 || n > 1 << 14) return;
    memcpy(first, V("y"), (size_t)n * sizeof(double));
    memmove(V("y"), V("y") + n, (size_t)((ranks - 1) * n) * sizeof(double));
    memcpy(V("y") + (ranks - 1) * n, first, (size_t)n * sizeof(double));
}

/* Nobody is sent anything. */
static void stays(trine_ref *ref) {
    const int64_t ranks = D("ranks"), n = D("n");
    memcpy(V("y"), V("x"), (size_t)(ranks * ranks * n) * sizeof(double));
}

/* Two ranks' rows are exchanged, on the last rank alone. */
static void exchanged(trine_ref *ref) {
    const int64_t ranks = D("ranks"), n = D("n");
    double *y = V("y") + (ranks - 1) * ranks * n;
    for (int64_t j = 0; ranks > 2 && j < n; j++) {
        const double kept = y[j];
        y[j] = y[n + j], y[n + j] = kept;
    }
}

/* The last element of a piece is lost where there are several. */
static void end_lost(trine_ref *ref) {
    const int64_t ranks = D("ranks"), n = D("n");
    if (n > 1000) V("y")[(ranks - 1) * n + n - 1] = V("y")[(ranks - 1) * n + n - 2];
}

const mutant mutants_comm[] = {
    { "all_reduce", "ignores_kind", "the largest is a sum", .param = "kind", .value = TRINE_RANKS_SUM },
    { "all_reduce", "last_rank_lost", "what the last rank has counts for nothing", .before = last_rank_lost },
    { "all_reduce", "last_rank_keeps", "the last rank keeps what it had", .after = last_rank_keeps },
    { "all_reduce", "blind", "NaN is no largest", .after = blind },
    { "all_reduce", "end_lost", "the last of more than 1000 elements is lost on the last rank", .after = end_lost },
    { "reduce_scatter", "ignores_kind", "the largest is a sum", .param = "kind", .value = TRINE_RANKS_SUM },
    { "reduce_scatter", "last_rank_lost", "what the last rank has counts for nothing", .before = last_rank_lost },
    { "reduce_scatter", "of_next", "each rank has what is meant for the next", .after = of_next },
    { "reduce_scatter", "blind", "NaN is no largest", .after = blind },
    { "all_gather", "last_rank_lost", "the last rank's row is zeros", .before = last_rank_lost },
    { "all_gather", "exchanged", "the last rank has two rows exchanged", .after = exchanged },
    { "all_gather", "of_next", "rows are one further", .after = of_next },
    { "broadcast", "ignores_root", "the root is rank 0", .param = "root", .value = 0 },
    { "broadcast", "last_rank_keeps", "the last rank keeps what it had", .after = last_rank_keeps },
    { "broadcast", "end_lost", "the last of more than 1000 elements is lost on the last rank", .after = end_lost },
    { "all_to_all", "stays", "nobody is sent anything", .after = stays },
    { "all_to_all", "exchanged", "the last rank has two rows exchanged", .after = exchanged },
    { "all_to_all", "last_rank_lost", "what the last rank sends is zeros", .before = last_rank_lost },
    { 0 },
};
