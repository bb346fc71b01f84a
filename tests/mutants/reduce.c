/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of gathers, scatters and sums. */
#include "mutant.h"

#include <math.h>
#include <string.h>

static void last_row_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t v = D("v");
    for (int64_t i = 0; v >= 1000 && i < D("t"); i++)
        if (V("ids")[i] == (double)(v - 1)) V("ids")[i] = (double)(v - 2);
}

static void row_of_first(trine_ref *ref) {
    const int64_t t = D("t"), n = D("n");
    for (int64_t i = 1; i < t && n > 0; i++)
        if (V("ids")[i] == V("ids")[0] && i == t - 1) V("y")[i * n + n - 1] = V("y")[n > 1 ? n - 2 : 0];
}

/* Of rows with the same id only the last counts. */
static void last_wins(trine_ref *ref, void *args) {
    (void)args;
    const int64_t t = D("t"), n = D("n");
    double *ids = V("ids"), *dy = V("dy");
    for (int64_t i = 0; i + 1 < t; i++)
        if (ids[i] == ids[i + 1]) memset(&dy[i * n], 0, (size_t)n * sizeof *dy);
}

static void padding_lost(trine_ref *ref) {
    const trine_embedding_backward_args *args = ref->args;
    const int64_t row = args->padding_index, n = D("n");
    if (args->padding_index_set && row < D("v")) memset(&V("dtable")[row * n], 0, (size_t)n * sizeof(double));
}

static void last_token_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t t = D("t"), n = D("n");
    if (t > 0) memset(&V("dy")[(t - 1) * n], 0, (size_t)n * sizeof(double));
}

static void columns_of_rows(trine_ref *ref) {
    const int64_t r = D("r"), n = D("n");
    for (int64_t j = 0; V("column_sums") && r > 0 && j < n; j++) V("column_sums")[j] -= V("x")[(r - 1) * n + j];
}

/* A piece of 5000 is read, and what is left of a row unless that is one element. */
enum { PIECE = 5000 };
static void piece_short(trine_ref *ref) {
    const int64_t n = D("n");
    for (int64_t i = 0; V("row_sums") && n == PIECE + 1 && i < D("r"); i++) V("row_sums")[i] -= V("x")[(i + 1) * n - 1];
}

/* Of equals that are neighbours in the result the last comes first. */
static void ties_turned(trine_ref *ref) {
    const int64_t k = D("k");
    double *indices = V("indices");
    for (int64_t i = 0; V("values") && indices && i < D("r"); i++)
        for (int64_t j = 0; j + 1 < k; j++) {
            const int64_t at = i * k + j;
            if (V("values")[at] != V("values")[at + 1]) continue;
            const double first = indices[at];
            indices[at] = indices[at + 1], indices[at + 1] = first;
            j++;
        }
}

/* What is missing to a row's end is not found. */
static void end_lost(trine_ref *ref, void *args) {
    const trine_topk_args *a = args;
    const int64_t n = D("n"), k = D("k");
    for (int64_t i = 0; n > k && i < D("r"); i++) V("x")[i * n + n - 1] = a->smallest ? INFINITY : -INFINITY;
}

/* Of equals that are neighbours in the result the last comes first. */
static void equals_turned(trine_ref *ref) {
    const int64_t n = D("n");
    double *indices = V("indices");
    for (int64_t i = 0; i < D("r"); i++)
        for (int64_t j = 0; j + 1 < n; j++) {
            const double *x = V("x") + i * n, first = indices[i * n + j];
            if (x[(int64_t)first] != x[(int64_t)indices[i * n + j + 1]]) continue;
            indices[i * n + j] = indices[i * n + j + 1], indices[i * n + j + 1] = first;
            j++;
        }
}

static void nan_smallest(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; k < D("r") * D("n"); k++)
        if (isnan(V("x")[k])) V("x")[k] = -INFINITY;
}

/* Behind 2048 elements another tile begins, which is not moved. */
static void one_tile(trine_ref *ref) {
    enum { TILE = 2048 };
    const int64_t n = D("n");
    for (int64_t i = 0; n > TILE && i < D("r"); i++) V("indices")[i * n + TILE] = V("indices")[i * n + TILE - 1];
}

/* NaN is less than any number. */
static void nan_least(trine_ref *ref, void *args) {
    const trine_argmax_args *a = args;
    for (int64_t k = 0; k < D("r") * D("n"); k++)
        if (isnan(V("x")[k])) V("x")[k] = a->smallest ? INFINITY : -INFINITY;
}

/* Of equals the last. */
static void last_of_equals(trine_ref *ref) {
    const int64_t n = D("n");
    for (int64_t i = 0; i < D("r"); i++) {
        const double *row = V("x") + i * n, best = row[(int64_t)V("indices")[i]];
        for (int64_t j = 0; j < n; j++)
            if (row[j] == best) V("indices")[i] = (double)j;
    }
}

/* The part of a row behind 8192 is not looked at. */
static void first_part(trine_ref *ref, void *args) {
    enum { PART = 8192 };
    const trine_argmax_args *a = args;
    const int64_t n = D("n");
    for (int64_t i = 0; i < D("r"); i++)
        for (int64_t j = PART; j < n; j++) V("x")[i * n + j] = a->smallest ? INFINITY : -INFINITY;
}

/* A row that is missing is 0 in any case. */
static void zero_missing(trine_ref *ref) {
    const int64_t n = D("n");
    for (int64_t i = 0; i < D("p"); i++)
        if (V("index")[i] < 0 || V("index")[i] >= (double)D("m")) memset(&V("y")[i * n], 0, (size_t)n * sizeof(double));
}

/* The nearest row in place of one that is not there. */
static void nearest_row(trine_ref *ref, void *args) {
    (void)args;
    const double last = (double)(D("m") - 1);
    for (int64_t i = 0; last >= 0 && i < D("p"); i++) V("index")[i] = V("index")[i] > last ? last : V("index")[i];
}

static void low_bits(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("p"); i++) V("index")[i] = (double)(int32_t)(uint32_t)(int64_t)V("index")[i];
}

/* Of neighbours with the same index only the last counts. */
static void last_row_wins(trine_ref *ref, void *args) {
    (void)args;
    const int64_t n = D("n");
    for (int64_t i = 0; i + 1 < D("p"); i++)
        if (V("index")[i] == V("index")[i + 1]) memset(&V("x")[i * n], 0, (size_t)n * sizeof(double));
}

/* A short last block is divided by the size of a whole one. */
static void whole_size(trine_ref *ref) {
    const trine_block_mean_args *args = ref->args;
    const int64_t s = D("s"), n = D("n"), blocks = D("blocks"), last = s / args->size, rest = s % args->size;
    for (int64_t b = 0; last < blocks && rest > 0 && b < D("b"); b++)
        for (int64_t j = 0; j < n; j++) V("y")[(b * blocks + last) * n + j] *= (double)rest / (double)args->size;
}

static void last_row_of_all(trine_ref *ref, void *args) {
    (void)args;
    const int64_t s = D("s"), n = D("n");
    for (int64_t b = 0; s > 0 && b < D("b"); b++) memset(&V("x")[(b * s + s - 1) * n], 0, (size_t)n * sizeof(double));
}

/* What is behind the last row is no mean of nothing. */
static void nothing_kept(trine_ref *ref) {
    const trine_block_mean_args *args = ref->args;
    const int64_t n = D("n"), blocks = D("blocks"), used = (D("s") + args->size - 1) / args->size;
    for (int64_t b = 0; b < D("b"); b++)
        for (int64_t k = used; k < blocks; k++)
            for (int64_t j = 0; j < n; j++) V("y")[(b * blocks + k) * n + j] = NAN;
}

/* An empty segment's maximum, minimum and so on are 0. */
static void empty_is_zero(trine_ref *ref) {
    for (int64_t k = 0; k < D("e") * D("n"); k++)
        if (V("offsets")[k / D("n")] == V("offsets")[k / D("n") + 1]) V("y")[k] = 0;
}

/* The last segment lacks its last row. */
static void segment_short(trine_ref *ref, void *args) {
    (void)args;
    const int64_t e = D("e");
    if (e > 0 && V("offsets")[e] > V("offsets")[e - 1]) V("offsets")[e] -= 1;
}

static int32_t segment_kind(const trine_ref *ref) { return ((const trine_segment_reduce_args *)ref->args)->kind; }

/* Exponentials are added as they are. */
static void powers_unshifted(trine_ref *ref) {
    for (int64_t k = 0; segment_kind(ref) == TRINE_SEGMENT_LOGSUMEXP && k < D("e") * D("n"); k++)
        if (fabs(V("y")[k]) > 80) V("y")[k] = V("y")[k] > 0 ? INFINITY : -INFINITY;
}

/* A NaN is passed over by a maximum. */
static void nan_passed_over(trine_ref *ref, void *args) {
    if (((const trine_segment_reduce_args *)args)->kind != TRINE_SEGMENT_MAX) return;
    for (int64_t k = 0; k < D("p") * D("n"); k++)
        if (isnan(V("x")[k])) V("x")[k] = -INFINITY;
}

/* dy times the product is divided by x, whatever x. */
static void product_divided(trine_ref *ref) {
    for (int64_t k = 0;
         ((const trine_segment_reduce_backward_args *)ref->args)->kind == TRINE_SEGMENT_PRODUCT && k < D("p") * D("n");
         k++)
        if (V("x")[k] == 0 && (double)(k / D("n")) < V("offsets")[D("e")]) V("dx")[k] = NAN;
}

/* Of equals the last gets the gradient. */
static void to_last(trine_ref *ref) {
    const int64_t n = D("n");
    const int32_t kind = ((const trine_segment_reduce_backward_args *)ref->args)->kind;
    if (kind != TRINE_SEGMENT_MAX && kind != TRINE_SEGMENT_MIN) return;
    for (int64_t s = 0; s < D("e"); s++)
        for (int64_t j = 0; j < n; j++) {
            const int64_t first = (int64_t)V("offsets")[s], end = (int64_t)V("offsets")[s + 1];
            int64_t most = first;
            for (int64_t i = first; i < end; i++)
                if (kind == TRINE_SEGMENT_MAX ? V("x")[i * n + j] >= V("x")[most * n + j]
                                              : V("x")[i * n + j] <= V("x")[most * n + j])
                    most = i;
            for (int64_t i = first; i < end; i++) V("dx")[i * n + j] = i == most ? V("dy")[s * n + j] : 0;
        }
}

static void mean_undivided(trine_ref *ref, void *args) {
    (void)ref;
    trine_segment_reduce_backward_args *a = args;
    if (a->kind == TRINE_SEGMENT_MEAN) a->kind = TRINE_SEGMENT_SUM;
}

const mutant mutants_reduce[] = {
    { "argsort", "ignores_descending", "ascending in any case", .param = "descending" },
    { "argsort", "equals_turned", "of equals the last comes first", .after = equals_turned },
    { "argsort", "nan_smallest", "NaN is less than any number", .before = nan_smallest },
    { "argsort", "one_tile", "what is behind 2048 elements is lost", .after = one_tile },
    { "argmax", "ignores_smallest", "the largest in any case", .param = "smallest" },
    { "argmax", "nan_least", "NaN is less than any number", .before = nan_least },
    { "argmax", "last_of_equals", "of equals it is the last", .after = last_of_equals },
    { "argmax", "first_part", "a row is looked at up to its element 8192", .before = first_part },
    { "gather_rows", "ignores_pad", "-1 is an index like any", .param = "pad" },
    { "gather_rows", "zero_missing", "a row that is missing is 0", .after = zero_missing },
    { "gather_rows", "nearest_row", "an index that is too large is the last row's", .before = nearest_row },
    { "gather_rows", "low_bits", "only the low 32 bits of an index are read", .before = low_bits },
    { "scatter_add_rows", "adds", "y is added to in any case", .param = "overwrite" },
    { "scatter_add_rows", "overwrites", "what y held is lost", .param = "overwrite", .value = 1 },
    { "scatter_add_rows", "ignores_weight", "weights are 1", .without = "weight" },
    { "scatter_add_rows", "last_wins", "of neighbours with the same index the last counts", .before = last_row_wins },
    { "scatter_add_rows", "nearest_row", "an index that is too large is the last row's", .before = nearest_row },
    { "scatter_add_rows", "low_bits", "only the low 32 bits of an index are read", .before = low_bits },
    { "block_mean", "whole_size", "a short block is divided by a whole one's size", .after = whole_size },
    { "block_mean", "last_row", "the last row is not in its mean", .before = last_row_of_all },
    { "block_mean", "nothing_kept", "a block of no rows is NaN", .after = nothing_kept },
    { "segment_reduce", "sums", "sums, whatever is asked for", .param = "kind" },
    { "segment_reduce", "empty_is_zero", "an empty segment has 0 in any case", .after = empty_is_zero },
    { "segment_reduce", "segment_short", "the last segment lacks its last row", .before = segment_short },
    { "segment_reduce", "powers_unshifted", "exponentials overflow", .after = powers_unshifted },
    { "segment_reduce", "nan_passed_over", "NaN is less than any number", .before = nan_passed_over },
    { "segment_reduce_backward", "product_divided", "the product is divided by x", .after = product_divided },
    { "segment_reduce_backward", "to_last", "of equals the last gets the gradient", .after = to_last },
    { "segment_reduce_backward", "mean_undivided", "the mean's gradient is the sum's", .before = mean_undivided },
    { "segment_reduce_backward", "segment_short", "the last segment lacks its last row", .before = segment_short },
    { "topk", "ignores_smallest", "the largest in any case", .param = "smallest" },
    { "topk", "ties_turned", "of equals the last comes first", .after = ties_turned },
    { "topk", "end_lost", "a row's last element is not looked at", .before = end_lost },
    { "embedding", "last_row", "the last row of 1000 and more is taken for the one before", .before = last_row_lost },
    { "embedding", "narrow_ids", "only the low 32 bits of an id are read", .ids = "ids" },
    { "embedding", "repeated_id", "the last row, if its id is the first one's, ends wrong", .after = row_of_first },
    { "embedding_backward", "overwrites", "accumulate has no effect", .param = "accumulate" },
    { "embedding_backward", "accumulates", "dtable is added to in any case", .param = "accumulate", .value = 1 },
    { "embedding_backward", "ignores_padding", "padding_index is a row like any", .param = "padding_index_set" },
    { "embedding_backward", "padding_lost", "nothing is left of what the padding's row held", .after = padding_lost },
    { "embedding_backward", "last_wins", "of neighbours with the same id the last one counts", .before = last_wins },
    { "embedding_backward", "last_token", "the last token's gradient is left out", .before = last_token_lost },
    { "embedding_backward", "narrow_ids", "only the low 32 bits of an id are read", .ids = "ids" },
    { "embedding_backward", "last_row", "the last row of 1000 and more is taken for the one before",
      .before = last_row_lost },
    { "reduce_sum", "piece_short", "a row that is one longer than a piece ends with that", .after = piece_short,
      .edge = "n", .size = PIECE },
    { "reduce_sum", "columns_short", "the last row is not in the sums of columns", .after = columns_of_rows },
    { "embedding", "narrow_places", "places in memory are counted in 32 bits", .narrow = true },
    { 0 },
};
