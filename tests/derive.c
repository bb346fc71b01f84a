/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs that trine bench derives: of trees that lead somewhere, boxes that lie in their images, and automata in
 * their states; and those that it must not derive, since long recurrences overflow. Speaks TAP. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "tap.h"

static bench_sets sets;
static trine_case asked;

/* Two sets or more. */
static bool make(trine_queue *queue, const char *op, const char *text) {
    const bench_plan plan = { .last_level = 1 << 20, .memory = 1 << 28 };
    char error[320] = "";
    trine_case_init(&asked, trine_op_find(op));
    const bool made = trine_case_parse(&asked, text, error, sizeof error) &&
                      trine_case_finish(&asked, error, sizeof error) &&
                      bench_sets_make(&sets, &asked, queue, &plan, error, sizeof error);
    return tap(made && sets.count > 1, "%s: %s%s", op, text, error);
}

static int64_t dim(const char *name) { return asked.dim[trine_plan_find_symbol(asked.plan, name)]; }

/* Element i of a set's tensor, which a CPU's memory has. */
static double at(const trine_case *set, const char *name, int64_t i) {
    const trine_tensor *t = &set->tensor[trine_plan_find_tensor(set->plan, name)];
    return trine_load(t->data, t->dtype, i);
}

/* A tree's nodes: leaves that there are, or features that there are, and children that come later in the same tree. */
static bool good_node(const trine_case *set, int64_t node, int64_t end) {
    const double feature = at(set, "features", node);
    if (feature < 0) return feature >= (double)-dim("l");
    bool good = feature < (double)dim("f");
    for (int side = 0; side < 2; side++) {
        const double child = at(set, "children", 2 * node + side);
        good = good && child > (double)node && child < (double)end;
    }
    return good;
}

/* How many leaves the rows come to, of all trees; 0 if one comes to none. */
static int64_t leaves_reached(trine_queue *queue, const trine_case *set) {
    int64_t reached = 0;
    if (trine_run(queue, set->plan->op, set->args) != TRINE_OK || trine_queue_wait(queue) != TRINE_OK) return 0;
    for (int64_t tree = 0; tree < dim("t"); tree++)
        for (int64_t r = 0; r < dim("r"); r++) {
            const double leaf = at(set, "indices", r * dim("t") + tree);
            bool seen = leaf < 0;
            if (seen) return 0;
            for (int64_t k = 0; k < r; k++) seen |= at(set, "indices", k * dim("t") + tree) == leaf;
            reached += !seen;
        }
    return reached;
}

static void check_trees(trine_queue *queue) {
    if (!make(queue, "tree_predict", "T=f32 r=64 f=20 n=8176 t=16 l=4096 v=1 o=1 +children +indices")) return;
    bool nodes = true, roots = true, drawn = true;
    int64_t least = INT64_MAX;
    for (int s = 0; s < sets.count; s++) {
        const trine_case *set = &sets.set[s];
        const int64_t each = dim("n") / dim("t");
        for (int64_t k = 0; k < dim("n"); k++) nodes = nodes && good_node(set, k, (k / each + 1) * each);
        for (int64_t k = 0; k < dim("t"); k++) roots = roots && at(set, "roots", k) == (double)(k * each);
        for (int64_t k = 1; k < dim("n"); k++)
            drawn =
                drawn && fabs(at(set, "thresholds", k)) <= 1 && at(set, "thresholds", k) != at(set, "thresholds", 0);
        const int64_t reached = leaves_reached(queue, set);
        least = reached < least ? reached : least;
    }
    tap(nodes && roots, "nodes and roots are those of trees");
    tap(drawn, "thresholds are drawn as before");
    tap(least > 8 * dim("t"), "%lld leaves of %lld trees are reached", (long long)least, (long long)dim("t"));
    bench_sets_free(&sets);
}

static void check_boxes(trine_queue *queue) {
    if (!make(queue, "crop_resize_normalize", "U=u8 T=f32 I=i32 n=2 h=48 w=96 c=3 b=64 p=32 q=32 +boxes")) return;
    bool within = true;
    double area = 0;
    for (int64_t k = 0; k < dim("b"); k++) {
        double box[4];
        for (int i = 0; i < 4; i++) {
            box[i] = at(&sets.set[sets.count - 1], "boxes", 4 * k + i);
            within = within && box[i] >= -1 && box[i] <= (double)dim(i % 2 ? "h" : "w") + 1;
        }
        area += fmax(box[2] - box[0], 0) * fmax(box[3] - box[1], 0) / (double)dim("b");
    }
    tap(within && area > (double)(dim("h") * dim("w")) / 8, "boxes lie in images, and have %g pixels on average", area);
    bench_sets_free(&sets);
}

/* Most clauses have automata on both sides, and most automata are near the border. */
static void check_automata(trine_queue *queue) {
    if (!make(queue, "tm_update", "S=i8 e=10 w=25 c=3 j=20 l=200")) return;
    int64_t near = 0, included = 0;
    const int64_t all = dim("c") * dim("j") * dim("l");
    for (int64_t k = 0; k < all; k++) {
        const double state = at(&sets.set[sets.count - 1], "states", k);
        near += state >= -3 && state <= 1;
        included += state >= 0;
    }
    tap(near > all / 2 && included > all / 64 && included < all / 2,
        "%lld automata of %lld include, %lld are at the border", (long long)included, (long long)all, (long long)near);
    bench_sets_free(&sets);
}

/* The states of hundreds of steps of drawn gates would not be finite: they are drawn too. */
static void check_recurrence(trine_queue *queue, const char *op, const char *const *states) {
    if (!make(queue, op, "T=f32 b=2 t=600 h=2 d=16 +h0 s=2")) return;
    bool ordinary = true;
    for (int s = 0; s < sets.count; s++)
        for (int i = 0; states[i]; i++)
            for (int64_t k = 0; k < 2 * 600 * 2 * 16; k++) {
                const double x = at(&sets.set[s], states[i], k);
                ordinary = ordinary && x >= 0.5 && x <= 1.5;
            }
    tap(ordinary, "states of %s are of size 1", op);
    bench_sets_free(&sets);
}

int main(void) {
    const trine_options options = { .struct_size = sizeof options, .backends = "cpu", .tune_file = "" };
    trine *lib;
    trine_queue *queue;
    if (trine_open(&options, &lib) != TRINE_OK || trine_queue_open(lib, 0, NULL, &queue) != TRINE_OK) return 1;
    check_trees(queue);
    check_boxes(queue);
    check_automata(queue);
    check_recurrence(queue, "elman_backward", (const char *const[]){ "y", NULL });
    check_recurrence(queue, "gru_backward", (const char *const[]){ "y", NULL });
    check_recurrence(queue, "lstm_backward", (const char *const[]){ "y", "c", NULL });
    check_recurrence(queue, "slstm_backward", (const char *const[]){ "y", "c", "n", "m", NULL });
    trine_queue_close(queue);
    trine_close(lib);
    return tap_end();
}
