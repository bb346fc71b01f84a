/* SPDX-License-Identifier: Apache-2.0 */
/* tree_predict on the CPU: some rows go down a tree side by side, so that their loads overlap and nothing branches. For
 * that nodes are copied to records which need no checks: leaves lead to themselves, what is not there to one more leaf,
 * which is no leaf of any row. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/tree_predict.h"

enum {
    ROWS = 64,         /* of a task: a tree stays in the cache for them */
    LANES = 16,        /* rows side by side */
    COPY_ROWS = 32,    /* from so many on nodes are copied */
    COPY_NODES = 4096, /* of a task that copies */
    STEP_BYTES = 64,   /* a row and a tree as memory, for cpu_team() */
    MOST_LEVELS = 31
};

typedef struct record {
    float threshold; /* of a leaf: its number's bits */
    uint32_t test;   /* the feature times 4, and the rule */
    int32_t child[2];
} record;

typedef struct ensemble {
    const trine_tensor *x, *leaves, *base, *y, *indices; /* base, indices: NULL if absent */
    const int32_t *features, *children, *roots, *targets;
    const float *thresholds;
    const uint8_t *rules;
    int64_t children_row, r, f, n, t, l, v, o, levels;
    record *records; /* NULL: they are walked as they are */
} ensemble;

INLINE bool goes_left(float x, float threshold, uint32_t rule) {
    return (((x <= threshold) & ~(rule >> 1)) | (x == threshold) | ((x != x) & rule)) & 1;
}

INLINE uint32_t rule_of(const ensemble *a, int64_t node) { return a->rules ? a->rules[node] & 3 : 0; }

INLINE const float *row_of(const trine_tensor *x, int64_t i) { return (const float *)x->data + i * x->stride[0]; }

INLINE int64_t leaf_of(const ensemble *a, int64_t leaf) { return leaf >= 0 && leaf < a->l ? leaf : -1; }

/* The leaf of a row, or -1. */
static int64_t walk_one(const ensemble *a, const float *x, int64_t tree) {
    int64_t before = -1, node = a->roots[tree];
    while (node > before && node < a->n) {
        const int64_t feature = a->features[node];
        if (feature < 0) return leaf_of(a, -1 - feature);
        if (feature >= a->f) return -1;
        before = node;
        node = a->children[node * a->children_row + !goes_left(x[feature], a->thresholds[node], rule_of(a, node))];
    }
    return -1;
}

/* Those of `lanes` rows of an oblivious tree: each level's feature of all rows, then a vector of comparisons. */
INLINE void walk_levels(const ensemble *a, const float *const *x, int64_t tree, int lanes, int64_t *leaf) {
    const int64_t root = a->roots[tree], first = tree * a->levels;
    vu right[LANES / VL] = { 0 };
    bool wrong = a->levels > MOST_LEVELS || root < 0;
    for (int64_t k = 0; k < a->levels && !wrong; k++) {
        const int64_t feature = a->features[first + k];
        wrong = feature < 0 || feature >= a->f;
        if (wrong) break;
        const float threshold = a->thresholds[first + k];
        const int32_t rule = (int32_t)rule_of(a, first + k);
        const vi nan_left = viset(-(rule & 1)), equal = viset(-(rule >> 1));
        float value[LANES] = { 0 };
        for (int i = 0; i < lanes; i++) value[i] = x[i][feature];
        for (int i = 0; i < LANES / VL; i++) {
            const vf v = *(const vf_any *)(value + i * VL);
            const vi left = ((vi)(v <= threshold) & ~equal) | (vi)(v == threshold) | ((vi)(v != v) & nan_left);
            right[i] |= (vu)(~left & 1) << (uint32_t)k;
        }
    }
    for (int i = 0; i < lanes; i++) leaf[i] = wrong ? -1 : leaf_of(a, root + (int64_t)right[i / VL][i % VL]);
}

/* Those of `lanes` rows by records. */
INLINE void walk_records(const ensemble *a, const float *const *x, int64_t tree, int lanes, bool ruled, int64_t *leaf) {
    const record *const records = a->records;
    const int64_t root = a->roots[tree];
    int32_t at[LANES], moved;
    for (int i = 0; i < lanes; i++) at[i] = (int32_t)(root >= 0 && root < a->n ? root : a->n);
    do {
        moved = 0;
        for (int i = 0; i < lanes; i++) {
            const record *node = records + at[i];
            const float value = x[i][node->test >> 2];
            const bool left = ruled ? goes_left(value, node->threshold, node->test) : value <= node->threshold;
            const int32_t next = node->child[!left];
            moved |= next ^ at[i];
            at[i] = next;
        }
    } while (moved);
    for (int i = 0; i < lanes; i++) {
        int32_t number;
        memcpy(&number, &records[at[i]].threshold, sizeof number);
        leaf[i] = number;
    }
}

INLINE void walk_some(const ensemble *a, const float *const *x, int64_t tree, int lanes, int64_t *leaf) {
    if (a->children == NULL)
        walk_levels(a, x, tree, lanes, leaf);
    else if (a->records && a->rules)
        walk_records(a, x, tree, lanes, true, leaf);
    else if (a->records)
        walk_records(a, x, tree, lanes, false, leaf);
    else
        for (int i = 0; i < lanes; i++) leaf[i] = walk_one(a, x[i], tree);
}

/* Adds a leaf to a row of y. */
INLINE void add_leaf(const ensemble *a, float *y, int64_t tree, int64_t leaf) {
    const int64_t target = a->targets ? a->targets[tree] : 0, first = target < 0 ? -target : 0, room = a->o - target,
                  end = room < a->v ? room : a->v;
    if (leaf < 0) {
        for (int64_t k = first; k < end; k++) y[target + k] = NAN;
        return;
    }
    const float *from = row_of(a->leaves, leaf);
    for (int64_t k = first; k < end; k++) y[target + k] += from[k];
}

static void predict_rows(const ensemble *a, int64_t row, int lanes, int64_t tree) {
    const float *x[LANES];
    int64_t leaf[LANES];
    for (int i = 0; i < lanes; i++) x[i] = row_of(a->x, row + i);
    if (lanes == LANES)
        walk_some(a, x, tree, LANES, leaf);
    else
        walk_some(a, x, tree, lanes, leaf);
    for (int i = 0; i < lanes; i++) {
        add_leaf(a, (float *)a->y->data + (row + i) * a->y->stride[0], tree, leaf[i]);
        if (a->indices) ((int32_t *)a->indices->data)[(row + i) * a->indices->stride[0] + tree] = (int32_t)leaf[i];
    }
}

static void predict(const void *context, int64_t first, int64_t last, int thread) {
    const ensemble *a = context;
    (void)thread;
    for (int64_t task = first; task < last; task++) {
        const int64_t begin = task * ROWS, end = begin + ROWS < a->r ? begin + ROWS : a->r;
        for (int64_t i = begin; i < end; i++)
            for (int64_t j = 0; j < a->o; j++)
                ((float *)a->y->data)[i * a->y->stride[0] + j] = a->base ? ((const float *)a->base->data)[j] : 0.0f;
        for (int64_t tree = 0; tree < a->t; tree++)
            for (int64_t i = begin; i < end; i += LANES)
                predict_rows(a, i, (int)(i + LANES < end ? LANES : end - i), tree);
    }
}

static record record_of(const ensemble *a, int64_t node) {
    const int64_t feature = node < a->n ? a->features[node] : a->f;
    record to = { .child = { (int32_t)node, (int32_t)node } };
    if (feature < 0 || feature >= a->f) {
        const int32_t leaf = (int32_t)(feature < 0 ? leaf_of(a, -1 - feature) : -1);
        memcpy(&to.threshold, &leaf, sizeof leaf);
        return to;
    }
    to.threshold = a->thresholds[node];
    to.test = (uint32_t)feature << 2 | rule_of(a, node);
    for (int side = 0; side < 2; side++) {
        const int64_t child = a->children[node * a->children_row + side];
        to.child[side] = (int32_t)(child > node && child < a->n ? child : a->n);
    }
    return to;
}

static void copy(const void *context, int64_t first, int64_t last, int thread) {
    const ensemble *a = context;
    (void)thread;
    for (int64_t k = first * COPY_NODES; k < last * COPY_NODES && k <= a->n; k++) a->records[k] = record_of(a, k);
}

static bool copies(const trine_call *call) {
    return trine_call_given(call, TREE_PREDICT_CHILDREN) && call->dim[TREE_PREDICT_DIM_R] >= COPY_ROWS &&
           call->dim[TREE_PREDICT_DIM_F] > 0 && call->dim[TREE_PREDICT_DIM_F] < INT32_MAX / 4 &&
           call->dim[TREE_PREDICT_DIM_N] < INT32_MAX;
}

static size_t workspace(const trine_call *call) {
    return copies(call) ? (size_t)(call->dim[TREE_PREDICT_DIM_N] + 1) * sizeof(record) : 0;
}

static const void *data_of(const trine_call *call, int tensor) {
    const trine_tensor *given = trine_call_given(call, tensor);
    return given ? given->data : NULL;
}

static trine_status launch(const trine_call *call) {
    const trine_tensor *children = trine_call_given(call, TREE_PREDICT_CHILDREN);
    const int64_t n = call->dim[TREE_PREDICT_DIM_N], t = call->dim[TREE_PREDICT_DIM_T],
                  r = call->dim[TREE_PREDICT_DIM_R];
    const ensemble a = { .x = &call->tensor[TREE_PREDICT_X],
                         .leaves = &call->tensor[TREE_PREDICT_LEAVES],
                         .base = trine_call_given(call, TREE_PREDICT_BASE),
                         .y = &call->tensor[TREE_PREDICT_Y],
                         .indices = trine_call_given(call, TREE_PREDICT_INDICES),
                         .features = data_of(call, TREE_PREDICT_FEATURES),
                         .children = data_of(call, TREE_PREDICT_CHILDREN),
                         .roots = data_of(call, TREE_PREDICT_ROOTS),
                         .targets = data_of(call, TREE_PREDICT_TARGETS),
                         .thresholds = data_of(call, TREE_PREDICT_THRESHOLDS),
                         .rules = data_of(call, TREE_PREDICT_RULES),
                         .children_row = children ? children->stride[0] : 0,
                         .r = r,
                         .f = call->dim[TREE_PREDICT_DIM_F],
                         .n = n,
                         .t = t,
                         .l = call->dim[TREE_PREDICT_DIM_L],
                         .v = call->dim[TREE_PREDICT_DIM_V],
                         .o = call->dim[TREE_PREDICT_DIM_O],
                         .levels = t > 0 ? n / t : 0,
                         .records = copies(call) ? call->workspace : NULL };
    if (a.records) {
        const int64_t tasks = n / COPY_NODES + 1;
        cpu_shares(call, cpu_team(call, tasks, n * (int64_t)sizeof(record)), tasks, copy, &a);
    }
    const int64_t tasks = (r + ROWS - 1) / ROWS;
    cpu_tasks(call, cpu_team(call, tasks, r * (t + a.o) * STEP_BYTES), tasks, predict, &a);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, TREE_PREDICT_DIM_R, LANES);
    trine_kernel_edge(edges, TREE_PREDICT_DIM_R, COPY_ROWS);
    trine_kernel_edge(edges, TREE_PREDICT_DIM_R, ROWS);
    trine_kernel_edge(edges, TREE_PREDICT_DIM_N, COPY_NODES);
    cpu_team_edge(edges, TREE_PREDICT_DIM_R,
                  (call->dim[TREE_PREDICT_DIM_T] + call->dim[TREE_PREDICT_DIM_O]) * STEP_BYTES);
}

CPU_KERNELS(tree_predict) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
