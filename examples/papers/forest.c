/* SPDX-License-Identifier: Apache-2.0 */
/* Forests of XGBoost (Chen and Guestrin 2016) and LightGBM (Ke et al. 2017), read from the JSON that they write, as one
 * tree_predict.
 *
 *     papers-forest MODEL.json ROWS.csv [FIRST]
 *
 * MODEL.json is what XGBoost's dump_model(..., dump_format="json") or LightGBM's dump_model() gives, of one output.
 * FIRST is what sums begin with, XGBoost's base score. A line of ROWS.csv has the features, "nan" being one that is
 * missing, and behind them what the model's own library predicts, as a sum of leaves. */
#include <locale.h>
#include <string.h>

#include "examples/generate/json.h"
#include "papers.h"

typedef struct forest {
    int64_t nodes, leaves, trees, room, leaf_room, tree_room;
    int32_t *features, *children, *roots;
    float *thresholds, *values;
    uint8_t *rules;
} forest;

static void *grown(void *data, int64_t count, int64_t *room, size_t size) {
    if (count < *room) return data;
    data = realloc(data, (size_t)(2 * count + 64) * size);
    if (data == NULL) exit(1);
    *room = 2 * count + 64;
    return data;
}

static int32_t add_node(forest *f, int32_t feature, float threshold, int rule) {
    int64_t room = f->room;
    f->features = grown(f->features, f->nodes, &room, sizeof *f->features), room = f->room;
    f->thresholds = grown(f->thresholds, f->nodes, &room, sizeof *f->thresholds), room = f->room;
    f->rules = grown(f->rules, f->nodes, &room, sizeof *f->rules), room = f->room;
    f->children = grown(f->children, f->nodes, &room, 2 * sizeof *f->children);
    f->room = room;
    f->features[f->nodes] = feature;
    f->thresholds[f->nodes] = threshold;
    f->rules[f->nodes] = (uint8_t)rule;
    f->children[2 * f->nodes] = f->children[2 * f->nodes + 1] = -1;
    return (int32_t)f->nodes++;
}

static int32_t add_leaf(forest *f, double value) {
    f->values = grown(f->values, f->leaves, &f->leaf_room, sizeof *f->values);
    f->values[f->leaves] = (float)value;
    return add_node(f, -1 - (int32_t)f->leaves++, 0, 0);
}

static void add_root(forest *f) {
    f->roots = grown(f->roots, f->trees, &f->tree_room, sizeof *f->roots);
    f->roots[f->trees++] = (int32_t)f->nodes;
}

static void reject(const char *why) {
    fprintf(stderr, "the model has %s\n", why);
    exit(1);
}

/* A member that must be there. */
static int32_t member(const json *j, int32_t object, const char *name) {
    const int32_t at = json_member(j, object, name);
    if (at < 0) fprintf(stderr, "no \"%s\": ", name), reject("not what the program writes");
    return at;
}

/* As the model's own library reads it: json_number() is not rounded correctly to the last bit. */
static double number_of(const json *j, int32_t object, const char *name) {
    const slice text = j->node[member(j, object, name)].text;
    char copy[64] = "";
    if (text.size >= sizeof copy) reject("a number that is too long");
    if (text.size > 0) memcpy(copy, text.bytes, text.size);
    return strtod(copy, NULL);
}

static bool text_is(const json *j, int32_t object, const char *name, const char *text) {
    return slice_is(j->node[member(j, object, name)].text, text);
}

/* The digits at *at of a text, as a number. */
static int64_t digits(slice text, size_t *at) {
    int64_t number = 0;
    for (; *at < text.size && text.bytes[*at] >= '0' && text.bytes[*at] <= '9'; ++*at) {
        if (number > 100000000) reject("a feature or a category that is too large");
        number = 10 * number + text.bytes[*at] - '0';
    }
    return number;
}

/* "f12" or "12" */
static int32_t feature_of(slice name) {
    size_t at = name.size > 0 && name.bytes[0] == 'f';
    if (at == name.size) reject("a feature without a number");
    const int64_t number = digits(name, &at);
    if (at < name.size) reject("a feature that is no number");
    return (int32_t)number;
}

/* XGBoost's "yes" is x < condition. */
static int32_t add_xgboost(forest *f, const json *j, int32_t at) {
    if (json_member(j, at, "leaf") >= 0) return add_leaf(f, number_of(j, at, "leaf"));
    const double yes = number_of(j, at, "yes"), missing = number_of(j, at, "missing");
    const float condition = (float)number_of(j, at, "split_condition");
    const int32_t node = add_node(f, feature_of(j->node[member(j, at, "split")].text), nextafterf(condition, -INFINITY),
                                  yes == missing ? TRINE_TREE_NAN_LEFT : 0),
                  children = member(j, at, "children");
    for (int32_t child = children + 1; child < j->node[children].after; child = j->node[child].after) {
        const int32_t number = add_xgboost(f, j, child);
        f->children[2 * node + (number_of(j, child, "nodeid") != yes)] = number;
    }
    return node;
}

static int32_t add_lightgbm(forest *f, const json *j, int32_t at);

/* A set of categories, "0||2||5": a test for each, whose left child is the same. */
static int32_t add_categories(forest *f, const json *j, int32_t at, int32_t feature) {
    const slice set = j->node[member(j, at, "threshold")].text;
    const int64_t first = f->nodes;
    for (size_t k = 0; k < set.size;) {
        const size_t begin = k;
        add_node(f, feature, (float)digits(set, &k), TRINE_TREE_EQUAL);
        if (k == begin) reject("a category that is no number");
        while (k < set.size && set.bytes[k] == '|') k++;
    }
    if (f->nodes == first) reject("an empty set of categories");
    const int64_t tests = f->nodes;
    const int32_t left = add_lightgbm(f, j, member(j, at, "left_child")),
                  right = add_lightgbm(f, j, member(j, at, "right_child"));
    for (int64_t node = first; node < tests; node++) {
        f->children[2 * node] = left;
        f->children[2 * node + 1] = node + 1 < tests ? (int32_t)node + 1 : right;
    }
    return (int32_t)first;
}

/* LightGBM has thresholds in f64: the largest f32 that is not above says the same of features in f32. */
static int32_t add_lightgbm(forest *f, const json *j, int32_t at) {
    if (json_member(j, at, "split_feature") < 0) return add_leaf(f, number_of(j, at, "leaf_value"));
    const int32_t feature = (int32_t)number_of(j, at, "split_feature");
    if (text_is(j, at, "decision_type", "==")) return add_categories(f, j, at, feature);
    const double threshold = number_of(j, at, "threshold");
    const bool none = text_is(j, at, "missing_type", "None"),
               left = none ? threshold >= 0 : j->node[member(j, at, "default_left")].type == JSON_TRUE;
    if (text_is(j, at, "missing_type", "Zero")) reject("zeros for what is missing");
    float below = (float)threshold;
    if ((double)below > threshold) below = nextafterf(below, -INFINITY);
    const int32_t node = add_node(f, feature, below, left ? TRINE_TREE_NAN_LEFT : 0);
    const int32_t one = add_lightgbm(f, j, member(j, at, "left_child")),
                  other = add_lightgbm(f, j, member(j, at, "right_child"));
    f->children[2 * node] = one;
    f->children[2 * node + 1] = other;
    return node;
}

static void stop(const problem *why) {
    fprintf(stderr, "%s\n", why->text);
    exit(1);
}

static forest read_forest(const char *path) {
    problem why = { "" };
    mapping file;
    json j;
    forest f = { 0 };
    if (!mapping_open(&file, path, &why) || !json_parse(&j, (slice){ (const char *)file.bytes, file.size }, &why))
        stop(&why);
    const int32_t info = json_member(&j, 0, "tree_info"), trees = info < 0 ? 0 : info;
    for (int32_t tree = trees + 1; tree < j.node[trees].after; tree = j.node[tree].after) {
        add_root(&f);
        if (info >= 0)
            add_lightgbm(&f, &j, member(&j, tree, "tree_structure"));
        else
            add_xgboost(&f, &j, tree);
    }
    json_free(&j);
    mapping_close(&file);
    return f;
}

/* Numbers of lines of the same length; how many these are. */
static float *read_rows(const char *path, int64_t *rows_out, int64_t *columns_out) {
    problem why = { "" };
    mapping file;
    if (!mapping_open(&file, path, &why)) stop(&why);
    char *const text = calloc(file.size + 1, 1), *at = text;
    if (text == NULL) exit(1);
    memcpy(text, file.bytes, file.size);
    mapping_close(&file);
    float *x = NULL;
    int64_t count = 0, room = 0, rows = 0;
    while (*at) {
        char *end;
        x = grown(x, count, &room, sizeof *x);
        x[count++] = strtof(at, &end);
        if (end == at) reject("no such rows");
        at = end;
        rows += *at == '\n';
        if (*at) at++;
    }
    free(text);
    if (rows == 0 || count % rows != 0) reject("rows of other lengths");
    *rows_out = rows;
    *columns_out = count / rows;
    return x;
}

int main(int count, char **arguments) {
    setlocale(LC_NUMERIC, "C");
    if (count < 3) {
        fprintf(stderr, "usage: papers-forest MODEL.json ROWS.csv [FIRST]\n");
        return 2;
    }
    trine_library *library;
    trine_queue *queue = cpu_queue(&library);
    forest f = read_forest(arguments[1]);
    int64_t rows, columns;
    float *table = read_rows(arguments[2], &rows, &columns), first = count > 3 ? strtof(arguments[3], NULL) : 0;
    float *found = floats(rows), *expected = floats(rows);
    trine_tensor x = matrix(table, rows, columns - 1);
    x.stride[0] = columns;
    const trine_tensor features = trine_tensor_1d(f.features, TRINE_I32, f.nodes),
                       thresholds = vector(f.thresholds, f.nodes), rules = trine_tensor_1d(f.rules, TRINE_U8, f.nodes),
                       children = trine_tensor_2d(f.children, TRINE_I32, f.nodes, 2),
                       roots = trine_tensor_1d(f.roots, TRINE_I32, f.trees), leaves = matrix(f.values, f.leaves, 1),
                       base = vector(&first, 1), y = matrix(found, rows, 1);
    RUN(tree_predict, .x = &x, .features = &features, .thresholds = &thresholds, .rules = &rules, .children = &children,
        .roots = &roots, .leaves = &leaves, .base = &base, .y = &y);
    double apart = 0;
    for (int64_t i = 0; i < rows; i++) {
        expected[i] = table[i * columns + columns - 1];
        apart = worst(apart, fabs((double)found[i] - expected[i]));
    }
    printf("%lld trees, %lld nodes, %lld rows of %lld features\n", (long long)f.trees, (long long)f.nodes,
           (long long)rows, (long long)columns - 1);
    printf("%10s %14s %14s\n", "row", "predicted", "expected");
    for (int64_t i = 0; i < rows && i < 5; i++)
        printf("%10lld %14.7g %14.7g\n", (long long)i, (double)found[i], (double)expected[i]);
    printf("largest difference: %.3g\n", apart);
    agree("predictions", apart, 1e-5);
    free(f.features), free(f.children), free(f.roots), free(f.thresholds), free(f.values), free(f.rules);
    free(table), free(found), free(expected);
    trine_queue_close(queue);
    trine_close(library);
    return disagreements > 0;
}
