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

/* Of an expert the last rank's slots come first. */
static void ranks_turned(trine_ref *ref, void *args) {
    const int64_t ranks = D("ranks"), own = D("t") * D("k");
    (void)args;
    for (int64_t i = 0; ranks > 1 && i < own; i++) {
        double *first = V("experts") + i, *last = V("experts") + (ranks - 1) * own + i, swap = *first;
        *first = *last, *last = swap;
    }
}

/* Places are those on the expert's rank. */
static void places_of_rank(trine_ref *ref) {
    const int64_t p = D("p");
    for (int64_t i = 0; i < D("ranks") * D("t") * D("k"); i++)
        if (V("places")[i] >= 0) V("places")[i] = (double)((int64_t)V("places")[i] % p);
}

/* Slots that are dropped do not count. */
static void dropped_uncounted(trine_ref *ref) {
    const int64_t ranks = D("ranks"), e = D("e");
    for (int64_t i = 0; i < ranks * e; i++)
        V("counts")[i] = V("offsets")[i / e * (e + 1) + i % e + 1] - V("offsets")[i / e * (e + 1) + i % e];
}

/* Rows that no token came to are left as a token was. */
static void rows_left(trine_ref *ref) {
    const int64_t e = D("e"), p = D("p"), n = D("n");
    for (int64_t r = 0; D("t") > 0 && r < D("ranks"); r++)
        for (int64_t q = (int64_t)V("offsets")[r * (e + 1) + e]; q < p; q++)
            memcpy(V("y") + (r * p + q) * n, V("x"), (size_t)n * sizeof(double));
}

/* An expert that is out of range is taken for the last. */
static void clamped(trine_ref *ref, void *args) {
    const int64_t experts = D("ranks") * D("e");
    (void)args;
    for (int64_t i = 0; experts > 0 && i < D("ranks") * D("t") * D("k"); i++)
        if (V("experts")[i] >= (double)experts) V("experts")[i] = (double)(experts - 1);
}

/* What is needed is no more than there is. */
static void needed_cut(trine_ref *ref) {
    for (int64_t i = 0; V("needed") && i < D("ranks") * D("ranks"); i++)
        V("needed")[i] = fmin(V("needed")[i], (double)D("p"));
}

/* A slot without a place counts the first row. */
static void first_for_none(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("ranks") * D("t") * D("k"); i++)
        if (V("places")[i] < 0) V("places")[i] = 0;
}

/* Rows of other ranks are not fetched. */
static void own_rows(trine_ref *ref, void *args) {
    const int64_t own = D("t") * D("k"), p = D("p");
    (void)args;
    for (int64_t i = 0; i < D("ranks") * own; i++)
        if (V("places")[i] >= 0 && (int64_t)V("places")[i] / (p > 0 ? p : 1) != i / own) V("places")[i] = -1;
}

/* Of matrices: the last rank's product counts for nothing. */
static void last_product_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t ranks = D("ranks"), own = D("k") * D("n");
    if (ranks > 1) memset(V("b") + (ranks - 1) * own, 0, (size_t)own * sizeof(double));
}

/* The last rank multiplies by the matrix of the first. */
static void matrix_of_first(trine_ref *ref, void *args) {
    (void)args;
    const int64_t own = D("k") * D("n");
    memcpy(V("b") + (D("ranks") - 1) * own, V("b"), (size_t)own * sizeof(double));
}

/* Each product is rounded to d's type before it is added: what rank 0's is off by, as if all others were exact. */
static void rounded_before(trine_ref *ref) {
    const int64_t ranks = D("ranks"), k = D("k"), n = D("n"), parts = ref->plan->tensor[0].rank == 4 ? ranks : 1,
                  rows = D("m") * parts, copies = parts == 1 ? ranks : 1;
    for (int64_t at = 0; ranks > 1 && at < rows * n; at++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++) sum += V("a")[at / n * k + p] * V("b")[p * n + at % n];
        const double moved = trine_round(sum, trine_ref_type(ref, "O"), false) - sum;
        for (int64_t c = 0; isfinite(moved) && c < copies; c++) V("d")[c * rows * n + at] += moved;
    }
}

/* The last column of more than 64 is the one before it. */
static void column_lost(trine_ref *ref) {
    const int64_t n = D("n"), rows = D("ranks") * D("m");
    for (int64_t i = 0; n > 64 && i < rows; i++) V("d")[i * n + n - 1] = V("d")[i * n + n - 2];
}

/* Two ranks' rows are exchanged in what the last rank has gathered. */
static void gathered_exchanged(trine_ref *ref) {
    const int64_t ranks = D("ranks"), own = D("m") * D("k");
    double *all = V("gathered");
    for (int64_t j = 0; all != NULL && ranks > 1 && j < own; j++) {
        double *first = all + (ranks - 1) * ranks * own + j;
        const double kept = first[0];
        first[0] = first[own], first[own] = kept;
    }
}

/* The rows of the ranks are one further. */
static void rows_of_next(trine_ref *ref, void *args) {
    (void)args;
    const int64_t ranks = D("ranks"), own = D("m") * D("k");
    for (int64_t j = 0; j < own; j++) {
        const double first = V("a")[j];
        for (int64_t r = 0; r + 1 < ranks; r++) V("a")[r * own + j] = V("a")[(r + 1) * own + j];
        V("a")[(ranks - 1) * own + j] = first;
    }
}

/* Of rows: what the last rank has counts for nothing. */
static void last_rows_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t ranks = D("ranks"), own = D("r") * D("n");
    if (ranks > 1) memset(V("x") + (ranks - 1) * own, 0, (size_t)own * sizeof(double));
}

/* The last rank adds the first one's residual. */
static void first_residual(trine_ref *ref, void *args) {
    (void)args;
    const int64_t ranks = D("ranks"), own = D("r") * D("n");
    if (V("residual") != NULL) memcpy(V("residual") + (ranks - 1) * own, V("residual"), (size_t)own * sizeof(double));
}

/* Counts are what a rank gets. */
static void counts_of_receivers(trine_ref *ref, void *args) {
    (void)args;
    const int64_t ranks = D("ranks");
    for (int64_t i = 0; i < ranks; i++)
        for (int64_t q = 0; q < i; q++) {
            double *a = V("counts") + i * ranks + q, *b = V("counts") + q * ranks + i;
            const double kept = *a;
            *a = *b, *b = kept;
        }
}

/* A count below 0 is as many rows. */
static void counts_by_size(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; k < D("ranks") * D("ranks"); k++) V("counts")[k] = fabs(V("counts")[k]);
}

/* The last row of y is not cleared. */
static void rest_kept(trine_ref *ref) {
    const int64_t ranks = D("ranks"), capacity = D("capacity"), n = D("n");
    for (int64_t j = 0; capacity > 0 && j < n; j++) {
        double *last = V("y") + (ranks * capacity - 1) * n + j;
        if (*last == 0) *last = 1;
    }
}

/* What is received is told as far as there is room for it. */
static void received_cut(trine_ref *ref) {
    const int64_t ranks = D("ranks"), capacity = D("capacity");
    for (int64_t q = 0; V("received") != NULL && q < ranks; q++) {
        double room = (double)capacity, *received = V("received") + q * ranks;
        for (int64_t i = 0; i < ranks; i++) {
            received[i] = fmin(received[i], room);
            room -= received[i];
        }
    }
}

/* The norm is of the first rank's part alone. */
static void first_part(trine_ref *ref, void *args) {
    (void)args;
    const int64_t ranks = D("ranks"), n = D("n");
    memset(V("x") + n, 0, (size_t)((ranks - 1) * n) * sizeof(double));
}

/* Each rank has a coefficient of its own, the last one's a little less. */
static void coefficients_differ(trine_ref *ref) {
    if (V("coefficient") != NULL) V("coefficient")[D("ranks") - 1] *= 1 - 0x1p-20;
}

/* What the last rank has counts for nothing: it is of probability 0. */
static void last_classes_lost(trine_ref *ref, void *args) {
    const trine_vocab_parallel_cross_entropy_args *a = args;
    const int64_t ranks = D("ranks"), own = D("r") * D("v");
    for (int64_t k = 0; ranks > 1 && k < own; k++)
        V("logits")[(ranks - 1) * own + k] = a->logit_scale < 0 ? INFINITY : -INFINITY;
}

/* Labels are counted from the first class of the last rank. */
static void labels_of_last(trine_ref *ref, void *args) {
    (void)args;
    const int64_t ranks = D("ranks"), r = D("r"), v = D("v");
    for (int64_t i = 0; i < ranks * r; i++) {
        double *label = &V("labels")[i];
        if (*label >= 0 && *label < (double)(ranks * v)) *label = fmod(*label + (double)v, (double)(ranks * v));
    }
}

/* The last rank multiplies by the first one's dloss. */
static void first_dloss(trine_ref *ref, void *args) {
    (void)args;
    const int64_t ranks = D("ranks"), r = D("r");
    if (V("dloss") != NULL) memcpy(V("dloss") + (ranks - 1) * r, V("dloss"), (size_t)r * sizeof(double));
}

/* What the last rank's gradients are counts for nothing. */
static void last_gradients_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t ranks = D("ranks"), n = D("n");
    if (ranks > 1) memset(V("grad") + (ranks - 1) * n, 0, (size_t)n * sizeof(double));
}

/* Only the first rank's word says whether a step is skipped. */
static void found_by_first(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t r = 1; V("found_inf") != NULL && r < D("ranks"); r++) V("found_inf")[r] = V("found_inf")[0];
}

/* All parts have the first rank's scale. */
static void scale_of_first(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t r = 1; V("grad_scale") != NULL && r < D("ranks"); r++) V("grad_scale")[r] = V("grad_scale")[0];
}

static void sharded_late(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_adamw_sharded_args *)args)->step++;
}

/* The last rank gets no part but its own. */
static void others_lost(trine_ref *ref) {
    const int64_t ranks = D("ranks"), n = D("n"), p = D("p");
    for (int64_t j = 0; j < n && j < (ranks - 1) * p; j++) V("copy")[(ranks - 1) * n + j] = 0;
}

/* What is behind the last parameter is cleared. */
static void rest_cleared(trine_ref *ref) {
    for (int64_t i = D("n"); i < D("ranks") * D("p"); i++) V("m")[i] = 0;
}

/* What the last rank's rows are counts for nothing. */
static void summed_rows_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t ranks = D("ranks"), own = D("r") * D("k");
    if (ranks > 1) memset(V("x") + (ranks - 1) * own, 0, (size_t)own * sizeof(double));
}

/* All ranks have the first one's weight. */
static void weight_of_first(trine_ref *ref, void *args) {
    (void)args;
    const int64_t k = D("k");
    for (int64_t q = 1; V("weight") != NULL && q < D("ranks"); q++)
        memcpy(V("weight") + q * k, V("weight"), (size_t)k * sizeof(double));
}

/* The last code of the last rank is 1, or 2 where it is. */
static void last_codes_off(trine_ref *ref) {
    const int64_t ranks = D("ranks"), own = D("r") * D("k");
    if (own > 0) V("codes")[ranks * own - 1] = V("codes")[ranks * own - 1] == 1 ? 2 : 1;
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
    { "moe_dispatch", "ignores_capacity", "no slot is dropped for its expert", .param = "capacity" },
    { "moe_dispatch", "ranks_turned", "the last rank's slots come before the first's", .before = ranks_turned },
    { "moe_dispatch", "places_of_rank", "places do not say on which rank", .after = places_of_rank },
    { "moe_dispatch", "dropped_uncounted", "slots that are dropped do not count", .after = dropped_uncounted },
    { "moe_dispatch", "rows_left", "rows without a token are a token", .after = rows_left },
    { "moe_dispatch", "clamped", "an expert beyond the last is the last", .before = clamped },
    { "moe_dispatch", "needed_cut", "what is needed is what there is", .after = needed_cut },
    { "moe_collect", "ignores_weights", "all weights are 1", .without = "weights" },
    { "moe_collect", "first_for_none", "a slot that was dropped counts row 0", .before = first_for_none },
    { "moe_collect", "own_rows", "rows of other ranks count for nothing", .before = own_rows },
    { "matmul_reduce_scatter", "last_product_lost", "the last rank's product counts for nothing",
      .before = last_product_lost },
    { "matmul_reduce_scatter", "matrix_of_first", "the last rank multiplies by the matrix of the first",
      .before = matrix_of_first },
    { "matmul_reduce_scatter", "rounded_before", "the first rank's product is rounded to d's type before the sum",
      .after = rounded_before },
    { "matmul_reduce_scatter", "column_lost", "the last of more than 64 columns is the one before it",
      .after = column_lost },
    { "matmul_all_reduce", "last_product_lost", "the last rank's product counts for nothing",
      .before = last_product_lost },
    { "matmul_all_reduce", "rounded_before", "the first rank's product is rounded to d's type before the sum",
      .after = rounded_before },
    { "matmul_all_reduce", "column_lost", "the last of more than 64 columns is the one before it",
      .after = column_lost },
    { "all_gather_matmul", "matrix_of_first", "the last rank multiplies by the matrix of the first",
      .before = matrix_of_first },
    { "all_gather_matmul", "rows_of_next", "the ranks' rows are one further", .before = rows_of_next },
    { "all_gather_matmul", "gathered_exchanged", "the last rank has two ranks' rows exchanged",
      .after = gathered_exchanged },
    { "all_reduce_rms_norm", "last_rows_lost", "what the last rank has counts for nothing", .before = last_rows_lost },
    { "all_reduce_rms_norm", "first_residual", "the last rank adds the first one's residual",
      .before = first_residual },
    { "all_reduce_rms_norm", "without_residual", "the residual is not added", .without = "residual" },
    { "all_reduce_rms_norm", "ignores_weight_offset", "nothing is added to the weight", .param = "weight_offset" },
    { "all_reduce_rms_norm", "ignores_rounding", "y is rounded once", .param = "rounding" },
    { "all_to_all_v", "counts_of_receivers", "counts are what a rank gets", .before = counts_of_receivers },
    { "all_to_all_v", "counts_by_size", "a count below 0 is as many rows", .before = counts_by_size },
    { "all_to_all_v", "rest_kept", "the last row of y is not cleared", .after = rest_kept },
    { "all_to_all_v", "received_cut", "what is received is told as far as there is room for it",
      .after = received_cut },
    { "all_reduce_quantized", "ignores_codes", "codes are i8", .param = "codes" },
    { "all_reduce_quantized", "ignores_block", "blocks are of 128", .param = "block", .value = 128 },
    { "all_reduce_quantized", "last_rank_lost", "what the last rank has counts for nothing", .before = last_rank_lost },
    { "all_reduce_quantized", "end_lost", "the last of more than 1000 elements is lost on the last rank",
      .after = end_lost },
    { "all_reduce_norm_clip", "first_part", "the norm is of the first rank's part", .before = first_part },
    { "all_reduce_norm_clip", "without_other_squares", "other squares count for nothing", .without = "other_squares" },
    { "all_reduce_norm_clip", "ignores_max_norm", "nothing is clipped", .param = "max_norm" },
    { "all_reduce_norm_clip", "coefficients_differ", "the last rank has another coefficient",
      .after = coefficients_differ },
    { "vocab_parallel_cross_entropy", "last_classes_lost", "the last rank's classes have probability 0",
      .before = last_classes_lost },
    { "vocab_parallel_cross_entropy", "labels_of_last", "labels are of the next rank", .before = labels_of_last },
    { "vocab_parallel_cross_entropy", "first_dloss", "the last rank multiplies by the first one's dloss",
      .before = first_dloss },
    { "vocab_parallel_cross_entropy", "ignores_label_smoothing", "targets are not smooth", .param = "label_smoothing" },
    { "vocab_parallel_cross_entropy", "ignores_z_loss", "lse^2 counts for nothing", .param = "z_loss" },
    { "adamw_sharded", "last_gradients_lost", "the last rank's gradients count for nothing",
      .before = last_gradients_lost },
    { "adamw_sharded", "ignores_max_norm", "nothing is clipped", .param = "max_norm" },
    { "adamw_sharded", "without_grad_scale", "the sum is not scaled", .without = "grad_scale" },
    { "adamw_sharded", "scale_of_first", "all parts have the first rank's scale", .before = scale_of_first },
    { "adamw_sharded", "found_by_first", "only the first rank's found_inf counts", .before = found_by_first },
    { "adamw_sharded", "late_step", "the step's number is one more", .before = sharded_late },
    { "adamw_sharded", "others_lost", "the last rank gets no part but its own", .after = others_lost },
    { "adamw_sharded", "rest_cleared", "what is behind the last parameter is cleared", .after = rest_cleared },
    { "all_reduce_rms_norm_quantize", "summed_rows_lost", "the last rank's rows count for nothing",
      .before = summed_rows_lost },
    { "all_reduce_rms_norm_quantize", "ignores_residual", "the residual is not added", .without = "residual" },
    { "all_reduce_rms_norm_quantize", "weight_of_first", "all ranks have the first one's weight",
      .before = weight_of_first },
    { "all_reduce_rms_norm_quantize", "ignores_weight_offset", "nothing is added to the weight",
      .param = "weight_offset" },
    { "all_reduce_rms_norm_quantize", "ignores_upward", "powers of two are those below", .param = "upward",
      .types = "S=e8m0" },
    { "all_reduce_rms_norm_quantize", "last_codes_off", "the last code of the last rank is 1",
      .after = last_codes_off },
    { "all_reduce_rms_norm_quantize", "scale_off", "scales are off by the last bit", .output = "scales",
      .factor = 1 + 0x1p-23, .types = "S=f32" },
    { 0 },
};
