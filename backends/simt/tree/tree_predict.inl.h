/* SPDX-License-Identifier: Apache-2.0 */
/* tree_predict on devices: a block has some rows, and its threads some of the trees of each at a time. Then threads add
 * the leaves that were found to the outputs, in the order of the trees.
 *
 * NOTES. Floor: x and y once; the nodes come from caches. */
#include "tree_predict.h"
#include "backends/simt/core/simt.h"

DEVICE bool tree_left(const tree_params &p, float x, int64_t node) {
    const float threshold = p.thresholds[node];
    const int rule = p.rules ? p.rules[node] : 0;
    if (x != x) return rule & 1;
    return rule & 2 ? x == threshold : x <= threshold;
}

/* A row's features: as they are in memory, or of the rows that a block holds, side by side. */
template <bool HELD> struct tree_row {
    const float *x;
    DEVICE float operator[](int64_t feature) const { return x[HELD ? feature * TREE_ROWS : feature]; }
};

template <bool HELD> DEVICE int32_t tree_walk(const tree_params &p, const tree_row<HELD> &x, int64_t root) {
    int64_t before = -1, node = root;
    while (node > before && node < p.n) {
        const int64_t feature = p.features[node];
        if (feature < 0) return (int32_t)(-1 - feature < p.l ? -1 - feature : -1);
        if (feature >= p.f) return -1;
        before = node;
        node = ((const int32_t *)p.children.data)[node * p.children.row + !tree_left(p, x[feature], node)];
    }
    return -1;
}

template <bool HELD>
DEVICE int32_t tree_levels(const tree_params &p, const tree_row<HELD> &x, int64_t root, int64_t tree) {
    const int64_t first = tree * p.levels;
    if (p.levels > TREE_LEVELS || root < 0) return -1;
    int64_t leaf = root;
    for (int k = 0; k < p.levels; k++) {
        const int64_t feature = p.features[first + k];
        if (feature < 0 || feature >= p.f) return -1;
        leaf += (int64_t)!tree_left(p, x[feature], first + k) << k;
    }
    return (int32_t)(leaf < p.l ? leaf : -1);
}

DEVICE float tree_value(const tree_params &p, int32_t leaf, int64_t column) {
    return leaf < 0 ? not_a_number() : ((const float *)p.leaves.data)[leaf * p.leaves.row + column];
}

/* Adds the leaves of trees first .. first + count - 1, the next one `step` behind, to output j; value: what they have,
 * if that is one number. */
DEVICE float tree_add(const tree_params &p, float sum, int64_t j, int64_t first, int count, const int32_t *leaf,
                      const float *value, int step) {
    for (int q = 0; q < count; q++) {
        const int64_t column = j - (p.targets ? p.targets[first + q] : 0);
        if (column < 0 || column >= p.v) continue;
        sum += p.v == 1 ? value[q * step] : tree_value(p, leaf[q * step], column);
    }
    return sum;
}

template <bool HELD> DEVICE void tree_predict(const tree_params &p) {
    SHARED int32_t leaf[SIMT_THREADS];
    SHARED float value[SIMT_THREADS], held[HELD ? TREE_FEATURES * TREE_ROWS : 1];
    const int rows = HELD ? (int)TREE_ROWS : p.rows, trees = SIMT_THREADS / rows, thread = thread_index();
    const int64_t base = block_index() * rows, left = p.r - base, here = left < rows ? left : rows;
    const int64_t row = base + thread % rows;
    const float *const x = (const float *)p.x.data + row * p.x.row;
    float *const y = (float *)p.y.data + base * p.y.row;
    for (int64_t j = thread / rows; HELD && row < p.r && j < p.f; j += trees)
        held[j * TREE_ROWS + thread % rows] = x[j];
    if (HELD) sync_block();
    const tree_row<HELD> features = { HELD ? held + thread % rows : x };
    for (int64_t at = thread; at < rows * p.o; at += SIMT_THREADS)
        if (at % rows < here) y[at % rows * p.y.row + at / rows] = p.base ? p.base[at / rows] : 0.0f;
    for (int64_t first = 0; first < p.t; first += trees) {
        const int64_t tree = first + thread / rows;
        if (row < p.r && tree < p.t) {
            const int64_t root = p.roots[tree];
            const int32_t own = p.children.data ? tree_walk(p, features, root) : tree_levels(p, features, root, tree);
            leaf[thread] = own;
            if (p.v == 1) value[thread] = tree_value(p, own, 0);
            if (p.indices.data) ((int32_t *)p.indices.data)[row * p.indices.row + tree] = own;
        }
        sync_block();
        const int count = (int)(p.t - first < trees ? p.t - first : trees);
        for (int64_t at = thread; at < rows * p.o; at += SIMT_THREADS) {
            const int64_t line = at % rows;
            float *const to = y + line * p.y.row + at / rows;
            if (line < here) *to = tree_add(p, *to, at / rows, first, count, leaf + line, value + line, rows);
        }
        sync_block();
    }
}

ENTRY(tree_predict, SIMT_THREADS, tree_params) { tree_predict<false>(p); }
ENTRY(tree_predict_held, SIMT_THREADS, tree_params) { tree_predict<true>(p); }
