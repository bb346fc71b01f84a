/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two JSON reports, ours or Google Benchmark's, case by case. */
#include <string.h>

#include "bench.h"

#ifdef TRINE_JANSSON

#include <jansson.h>

/* The samples of one benchmark, in seconds. */
typedef struct samples {
    int count;
    double value[BENCH_MOST_SAMPLES];
} samples;

static json_t *load(const char *path, char *error, size_t size) {
    json_error_t why;
    json_t *root = json_load_file(path, 0, &why);
    if (root == NULL) {
        snprintf(error, size, "%s: line %d: %s", path, why.line, why.text);
        return NULL;
    }
    if (json_is_array(json_object_get(root, "benchmarks"))) return root;
    snprintf(error, size, "%s: no list of \"benchmarks\" in it", path);
    json_decref(root);
    return NULL;
}

static double seconds_of_unit(const char *unit) {
    if (unit == NULL || strcmp(unit, "ns") == 0) return 1e-9;
    return strcmp(unit, "us") == 0 ? 1e-6 : strcmp(unit, "ms") == 0 ? 1e-3 : 1;
}

static bool is_sample(const json_t *entry) {
    const char *type = json_string_value(json_object_get(entry, "run_type"));
    return json_is_string(json_object_get(entry, "name")) && (type == NULL || strcmp(type, "iteration") == 0);
}

static samples gather(const json_t *list, const char *name) {
    samples s = { 0 };
    for (size_t i = 0; i < json_array_size(list) && s.count < BENCH_MOST_SAMPLES; i++) {
        const json_t *entry = json_array_get(list, i), *time = json_object_get(entry, "real_time");
        if (!is_sample(entry) || !json_is_number(time) ||
            strcmp(json_string_value(json_object_get(entry, "name")), name) != 0)
            continue;
        s.value[s.count++] =
            json_number_value(time) * seconds_of_unit(json_string_value(json_object_get(entry, "time_unit")));
    }
    return s;
}

/* Prints the row of one case: +1 slower, -1 faster, 0 neither. */
static int compare_case(const char *name, const samples *old, const samples *new, double alpha, double threshold) {
    const double before = bench_quantile(old->value, old->count, 0.5),
                 after = bench_quantile(new->value, new->count, 0.5);
    const double p = bench_mann_whitney(old->value, old->count, new->value, new->count),
                 ratio = before > 0 ? after / before : 1;
    const int verdict = p >= alpha ? 0 : ratio > 1 + threshold ? 1 : ratio < 1 / (1 + threshold) ? -1 : 0;
    printf("%12.2f %12.2f %+7.1f%%  %8.2g  %-7s %s\n", before * 1e6, after * 1e6, 100 * (ratio - 1), p,
           verdict > 0   ? "SLOWER"
           : verdict < 0 ? "faster"
                         : "",
           name);
    return verdict;
}

int bench_compare(const char *old_path, const char *new_path, double alpha, double threshold, char *error,
                  size_t error_size) {
    json_t *old = load(old_path, error, error_size);
    json_t *new = old ? load(new_path, error, error_size) : NULL;
    int slower = 0, faster = 0, both = 0;
    if (new) {
        const json_t *before = json_object_get(old, "benchmarks"), *after = json_object_get(new, "benchmarks");
        const char *last = "";
        for (size_t i = 0; i < json_array_size(after); i++) {
            const json_t *entry = json_array_get(after, i);
            if (!is_sample(entry)) continue;
            const char *name = json_string_value(json_object_get(entry, "name"));
            if (strcmp(name, last) == 0) continue; /* samples of one case stand together */
            last = name;
            const samples a = gather(before, name), b = gather(after, name);
            if (a.count == 0 || b.count == 0) continue;
            if (both++ == 0) printf("%12s %12s %8s  %8s  %-7s %s\n", "old, us", "new, us", "change", "p", "", "case");
            const int verdict = compare_case(name, &a, &b, alpha, threshold);
            slower += verdict > 0;
            faster += verdict < 0;
        }
        if (both)
            printf("%d compared, %d slower, %d faster (more than %.1f %%, p < %g)\n", both, slower, faster,
                   100 * threshold, alpha);
        else
            snprintf(error, error_size, "%s and %s have no case in common", old_path, new_path);
    }
    json_decref(old);
    json_decref(new);
    return both ? slower : -1;
}

#else

int bench_compare(const char *old_path, const char *new_path, double alpha, double threshold, char *error,
                  size_t error_size) {
    (void)alpha, (void)threshold;
    snprintf(error, error_size, "%s and %s cannot be read: this trine was built without jansson", old_path, new_path);
    return -1;
}

#endif
