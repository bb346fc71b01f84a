/* SPDX-License-Identifier: Apache-2.0 */
/* tree_split_score on the CPU: a task has some features, whose histograms it adds up sample by sample and then scores.
 */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/tree_split_score.h"

enum { FEATURES = 8 /* of a task: those of a sample lie side by side */, ADD_BYTES = 8 };

/* Of a feature in the workspace: sums [m][b+1][d+1], the last bin being of those without one and the last sum that of
 * hessians; suffixes [b+1][d+1], and four sums; then the counts [m][b+1] and [b+1]. */
typedef struct splits {
    const trine_tensor *bins, *gradients;
    const int32_t *nodes;
    const float *hessians, *feature_weights;
    const uint8_t *categorical;
    const trine_tensor *scores, *left_sums, *left_weights, *left_counts;
    int64_t s, f, d, m, b, width; /* width: d + 1 */
    int64_t feature_bytes;
    char *workspace;
    const trine_tree_split_score_args *args;
} splits;

typedef struct room {
    float *sums, *suffix, *before, *left, *right, *whole;
    int32_t *counts, *suffix_counts;
} room;

static room room_of(const splits *a, int64_t feature) {
    const int64_t bins = a->b + 1;
    room to;
    to.sums = (float *)(a->workspace + feature * a->feature_bytes);
    to.suffix = to.sums + a->m * bins * a->width;
    to.before = to.suffix + bins * a->width;
    to.left = to.before + a->width;
    to.right = to.left + a->width;
    to.whole = to.right + a->width;
    to.counts = (int32_t *)(to.whole + a->width);
    to.suffix_counts = to.counts + a->m * bins;
    return to;
}

static int64_t feature_bytes_of(const trine_call *call) {
    const int64_t bins = call->dim[TREE_SPLIT_SCORE_DIM_B] + 1, width = call->dim[TREE_SPLIT_SCORE_DIM_D] + 1,
                  m = call->dim[TREE_SPLIT_SCORE_DIM_M];
    return (((m + 1) * bins + 4) * width + (m + 1) * bins) * 4;
}

INLINE void add_sample(const splits *a, const room *rooms, int64_t i, int64_t first, int64_t last, trine_dtype B) {
    const int64_t node = a->nodes ? a->nodes[i] : 0, row = i * a->bins->stride[0];
    if (node < 0 || node >= a->m) return;
    const float *g = (const float *)a->gradients->data + i * a->gradients->stride[0];
    for (int64_t j = first; j < last; j++) {
        const int64_t code = B == TRINE_U8 ? ((const uint8_t *)a->bins->data)[row + j]
                                           : ((const int32_t *)a->bins->data)[row + j],
                      bin = node * (a->b + 1) + (code < 0 || code >= a->b ? a->b : code);
        float *sum = rooms[j - first].sums + bin * a->width;
        for (int64_t q = 0; q < a->d; q++) sum[q] += g[q];
        if (a->hessians) sum[a->d] += a->hessians[i];
        rooms[j - first].counts[bin]++;
    }
}

INLINE void add_samples(const splits *a, const room *rooms, int64_t first, int64_t last, trine_dtype B) {
    for (int64_t i = 0; i < a->s; i++) add_sample(a, rooms, i, first, last, B);
}

static float quotient(const splits *a, const float *sum, int64_t count) {
    const float weight = a->hessians ? sum[a->d] : (float)count;
    float squares = 0;
    for (int64_t q = 0; q < a->d; q++) squares += sum[q] * sum[q];
    return squares / (weight + (a->args->regularization + 0));
}

static float score_of(const splits *a, const room *to, int64_t left, int64_t right, int64_t feature) {
    if (left < a->args->min_count || right < a->args->min_count) return -INFINITY;
    const bool root = a->args->score == TRINE_SPLIT_COSINE;
    float score = quotient(a, to->left, left) + quotient(a, to->right, right), whole = 0;
    if (a->args->gain) whole = quotient(a, to->whole, left + right);
    if (root) score = sqrtf(score), whole = sqrtf(whole);
    if (a->args->gain) score -= whole;
    return a->feature_weights ? score * a->feature_weights[feature] : score;
}

static void put(const splits *a, const room *to, int64_t node, int64_t feature, int64_t k, int64_t left, float score) {
#define AT(tensor) ((tensor)->data) + node *(tensor)->stride[0] + feature *(tensor)->stride[1]
    ((float *)AT(a->scores))[k] = score;
    if (a->left_sums)
        memcpy((float *)AT(a->left_sums) + k * a->left_sums->stride[2], to->left, (size_t)a->d * sizeof(float));
    if (a->left_weights) ((float *)AT(a->left_weights))[k] = a->hessians ? to->left[a->d] : (float)left;
    if (a->left_counts) ((int32_t *)AT(a->left_counts))[k] = (int32_t)left;
#undef AT
}

/* The splits of a node by a feature, from its histogram. */
static void score_node(const splits *a, const room *to, int64_t node, int64_t feature) {
    const int64_t b = a->b, width = a->width;
    const float *sums = to->sums + node * (b + 1) * width, *missing = sums + b * width;
    const int32_t *counts = to->counts + node * (b + 1);
    const bool one = a->categorical && a->categorical[feature] & 1, missing_left = a->args->missing_left;
    const int64_t start = missing_left ? counts[b] : 0;
    for (int64_t q = 0; q < width; q++) to->suffix[b * width + q] = missing_left ? 0 : missing[q];
    to->suffix_counts[b] = missing_left ? 0 : counts[b];
    for (int64_t k = b - 1; k >= 0; k--) {
        for (int64_t q = 0; q < width; q++)
            to->suffix[k * width + q] = sums[k * width + q] + to->suffix[(k + 1) * width + q];
        to->suffix_counts[k] = counts[k] + to->suffix_counts[k + 1];
    }
    for (int64_t q = 0; q < width; q++) {
        to->whole[q] = to->suffix[q] + (missing_left ? missing[q] : 0);
        to->before[q] = 0;
    }
    int64_t before = 0;
    for (int64_t k = 0; k < b; k++) {
        const float *suffix = to->suffix + (k + 1) * width;
        for (int64_t q = 0; q < width; q++) {
            const float own = sums[k * width + q], through = to->before[q] + own, left = one ? own : through;
            to->left[q] = missing_left ? missing[q] + left : left;
            to->right[q] = one ? to->before[q] + suffix[q] : suffix[q];
            to->before[q] = through;
        }
        const int64_t left = start + counts[k] + (one ? 0 : before),
                      right = to->suffix_counts[k + 1] + (one ? before : 0);
        put(a, to, node, feature, k, left, score_of(a, to, left, right, feature));
        before += counts[k];
    }
}

static void features(const void *context, int64_t first, int64_t last, int thread) {
    const splits *a = context;
    (void)thread;
    for (int64_t task = first; task < last; task++) {
        const int64_t begin = task * FEATURES, end = begin + FEATURES < a->f ? begin + FEATURES : a->f;
        room rooms[FEATURES];
        for (int64_t j = begin; j < end; j++) {
            rooms[j - begin] = room_of(a, j);
            memset(rooms[j - begin].sums, 0, (size_t)a->feature_bytes);
        }
        if (a->bins->dtype == TRINE_U8)
            add_samples(a, rooms, begin, end, TRINE_U8);
        else
            add_samples(a, rooms, begin, end, TRINE_I32);
        for (int64_t j = begin; j < end; j++)
            for (int64_t node = 0; node < a->m; node++) score_node(a, &rooms[j - begin], node, j);
    }
}

static const void *data_of(const trine_call *call, int tensor) {
    const trine_tensor *given = trine_call_given(call, tensor);
    return given ? given->data : NULL;
}

static size_t workspace(const trine_call *call) {
    return (size_t)(call->dim[TREE_SPLIT_SCORE_DIM_F] * feature_bytes_of(call));
}

static trine_status launch(const trine_call *call) {
    const splits a = { .bins = &call->tensor[TREE_SPLIT_SCORE_BINS],
                       .gradients = &call->tensor[TREE_SPLIT_SCORE_GRADIENTS],
                       .nodes = data_of(call, TREE_SPLIT_SCORE_NODES),
                       .hessians = data_of(call, TREE_SPLIT_SCORE_HESSIANS),
                       .feature_weights = data_of(call, TREE_SPLIT_SCORE_FEATURE_WEIGHTS),
                       .categorical = data_of(call, TREE_SPLIT_SCORE_CATEGORICAL),
                       .scores = &call->tensor[TREE_SPLIT_SCORE_SCORES],
                       .left_sums = trine_call_given(call, TREE_SPLIT_SCORE_LEFT_SUMS),
                       .left_weights = trine_call_given(call, TREE_SPLIT_SCORE_LEFT_WEIGHTS),
                       .left_counts = trine_call_given(call, TREE_SPLIT_SCORE_LEFT_COUNTS),
                       .s = call->dim[TREE_SPLIT_SCORE_DIM_S],
                       .f = call->dim[TREE_SPLIT_SCORE_DIM_F],
                       .d = call->dim[TREE_SPLIT_SCORE_DIM_D],
                       .m = call->dim[TREE_SPLIT_SCORE_DIM_M],
                       .b = call->dim[TREE_SPLIT_SCORE_DIM_B],
                       .width = call->dim[TREE_SPLIT_SCORE_DIM_D] + 1,
                       .feature_bytes = feature_bytes_of(call),
                       .workspace = call->workspace,
                       .args = call->args };
    const int64_t tasks = (a.f + FEATURES - 1) / FEATURES;
    cpu_tasks(call, cpu_team(call, tasks, a.f * (a.s * ADD_BYTES + a.feature_bytes)), tasks, features, &a);
    return TRINE_OK;
}

static const char *refuse(const trine_call *call) {
    return call->dim[TREE_SPLIT_SCORE_DIM_S] > INT32_MAX ? "more than 2^31 - 1 samples" : NULL;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, TREE_SPLIT_SCORE_DIM_F, FEATURES);
    cpu_team_edge(edges, TREE_SPLIT_SCORE_DIM_S, call->dim[TREE_SPLIT_SCORE_DIM_F] * ADD_BYTES);
}

CPU_KERNELS(tree_split_score) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
