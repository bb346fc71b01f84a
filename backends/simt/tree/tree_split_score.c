/* SPDX-License-Identifier: Apache-2.0 */
/* tree_split_score on devices: the host side. */
#include "tree_split_score.h"
#include "backends/simt/core/host.h"
#include "spec/places/tree_split_score.h"

static int64_t sums_of(const split_params *p) { return p->f * p->keys; }

/* As many chunks of samples as make a launch of enough blocks. */
static split_params params_of(const trine_call *call) {
    split_params p = { .s = call->dim[TREE_SPLIT_SCORE_DIM_S],
                       .f = call->dim[TREE_SPLIT_SCORE_DIM_F],
                       .d = call->dim[TREE_SPLIT_SCORE_DIM_D],
                       .m = call->dim[TREE_SPLIT_SCORE_DIM_M],
                       .b = call->dim[TREE_SPLIT_SCORE_DIM_B] };
    p.keys = p.m * (p.b + 1);
    p.tiles = simt_blocks(p.keys, SIMT_THREADS);
    p.parts = p.d > 0 ? simt_blocks(p.d, SPLIT_SUMS) : 1;
    const int64_t blocks = p.f * p.tiles * p.parts, most = simt_blocks(p.s, SPLIT_CHUNK);
    int64_t chunks = blocks > 0 ? SPLIT_BLOCKS / blocks : 1;
    if (chunks > most) chunks = most;
    if (chunks < 1) chunks = 1;
    p.chunk = simt_blocks(simt_blocks(p.s, chunks), SIMT_THREADS) * SIMT_THREADS;
    p.chunks = p.s > p.chunk ? simt_blocks(p.s, p.chunk) : 1;
    return p;
}

static size_t workspace(const trine_call *call) {
    const split_params p = params_of(call);
    return (size_t)(p.chunks * sums_of(&p) * (p.d + 2)) * 4;
}

static const void *data_of(const trine_call *call, int tensor) {
    const trine_tensor *given = trine_call_given(call, tensor);
    return given ? given->data : NULL;
}

static void *output_of(const trine_call *call, int tensor, int64_t *strides, int count) {
    const trine_tensor *given = trine_call_given(call, tensor);
    for (int i = 0; given && i < count; i++) strides[i] = given->stride[i];
    return given ? given->data : NULL;
}

static trine_status launch(const trine_call *call) {
    const trine_tree_split_score_args *args = call->args;
    const trine_tensor *bins = &call->tensor[TREE_SPLIT_SCORE_BINS];
    split_params p = params_of(call);
    p.gradients = simt_rows_of(call, TREE_SPLIT_SCORE_GRADIENTS);
    p.bins = bins->data;
    p.bins_row = bins->stride[0];
    p.wide = bins->dtype == TRINE_I32;
    p.nodes = data_of(call, TREE_SPLIT_SCORE_NODES);
    p.hessians = data_of(call, TREE_SPLIT_SCORE_HESSIANS);
    p.feature_weights = data_of(call, TREE_SPLIT_SCORE_FEATURE_WEIGHTS);
    p.categorical = data_of(call, TREE_SPLIT_SCORE_CATEGORICAL);
    p.scores = output_of(call, TREE_SPLIT_SCORE_SCORES, p.scores_stride, 2);
    p.left_sums = output_of(call, TREE_SPLIT_SCORE_LEFT_SUMS, p.sums_stride, 3);
    p.left_weights = output_of(call, TREE_SPLIT_SCORE_LEFT_WEIGHTS, p.weights_stride, 2);
    p.left_counts = output_of(call, TREE_SPLIT_SCORE_LEFT_COUNTS, p.counts_stride, 2);
    p.sums = call->workspace;
    p.counts = (int32_t *)call->workspace + p.chunks * sums_of(&p) * (p.d + 1);
    p.regularization = args->regularization + 0;
    p.min_count = args->min_count;
    p.cosine = args->score == TRINE_SPLIT_COSINE;
    p.gain = args->gain;
    p.missing_left = args->missing_left;

    const simt_function add = { .step = "add" }, total = { .step = "total" }, score = { .step = "score" };
    trine_status status = simt_launch(call, &add, p.chunks * p.f * p.tiles * p.parts, SIMT_THREADS, &p, sizeof p);
    if (status == TRINE_OK && p.chunks > 1)
        status =
            simt_launch(call, &total, simt_blocks(sums_of(&p) * (p.d + 2), SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &score, simt_blocks(p.m * p.f * p.b, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

static const char *refuse(const trine_call *call) {
    return call->dim[TREE_SPLIT_SCORE_DIM_S] > INT32_MAX ? "more than 2^31 - 1 samples" : NULL;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, TREE_SPLIT_SCORE_DIM_S, SIMT_THREADS);
    trine_kernel_edge(edges, TREE_SPLIT_SCORE_DIM_S, SPLIT_CHUNK);
    trine_kernel_edge(edges, TREE_SPLIT_SCORE_DIM_D, SPLIT_SUMS);
    trine_kernel_edge(edges, TREE_SPLIT_SCORE_DIM_B, SIMT_THREADS - 1);
}

SIMT_KERNELS(tree_split_score) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
