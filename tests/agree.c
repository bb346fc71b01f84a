/* SPDX-License-Identifier: Apache-2.0 */
/* The agreement suite of the CPU, at every level that the machine has: one test for each op. CHECK_SEED, CHECK_SECONDS
 * (for each op) and CHECK_DEVICE in the environment change what it draws, how long, and where. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "check/check.h"
#include "check/memory.h"
#include "spec/number.h"

/* Results for an op below which the suite has not run: a slow machine takes longer, not less. */
enum { FLOOR = 150 };

static check_report report;

TestSuite(agree, .timeout = 900);

ParameterizedTestParameters(agree, op) {
    static int ops[TRINE_OP_COUNT];
    for (int i = 1; i < TRINE_OP_COUNT; i++) ops[i - 1] = i;
    return cr_make_param_array(int, ops, TRINE_OP_COUNT - 1);
}

ParameterizedTest(int *op, agree, op) {
    const char *seed = getenv("CHECK_SEED"), *seconds = getenv("CHECK_SECONDS"), *device = getenv("CHECK_DEVICE");
    check_options options = { .device = device ? device : "cpu",
                              .op = trine_op_name((trine_op)*op),
                              .isa = "all",
                              .seed = seed ? strtoull(seed, NULL, 10) : 1,
                              .budget = seconds ? trine_strtod(seconds, NULL) : 2 };
    cr_assert(check_run(&options, &report), "%s: %s", options.op, report.error);
    if (report.op[0].count.failed == 0 && report.op[0].count.passed < FLOOR) {
        options.budget = 0;
        options.cases = FLOOR;
        cr_assert(check_run(&options, &report), "%s: %s", options.op, report.error);
    }
    const check_count *count = &report.op[0].count;
    for (int i = 0; i < report.failures; i++)
        cr_expect(false, "%s %s: %s\n%s", options.op, report.failure[i].kernel, report.failure[i].text,
                  report.failure[i].replay);
    cr_expect(count->failed == 0, "%s: %" PRId64 " failed", options.op, count->failed);
    cr_expect(count->passed >= FLOOR, "%s: only %" PRId64 " passed", options.op, count->passed);
    printf("# agreement of %s: %" PRId64 " passed, %" PRId64 " failed, %" PRId64 " skipped\n", options.op,
           count->passed, count->failed, count->skipped);
    fflush(stdout);
}

/* Without names the suite is of every op. */
Test(agree, all_ops) {
    const check_options options = { .device = "cpu", .seed = 1, .cases = 1 };
    cr_assert(check_run(&options, &report), "%s", report.error);
    cr_expect(report.ops == TRINE_OP_COUNT - 1, "%d ops of %d", report.ops, TRINE_OP_COUNT - 1);
    for (int i = 0; i < report.ops; i++) {
        cr_expect_str_eq(report.op[i].name, trine_op_name((trine_op)(i + 1)));
        cr_expect(report.op[i].count.passed > 0 && report.op[i].count.failed == 0, "%s", report.op[i].name);
    }
}

/* What once was beyond its bound, whatever the suite's seconds reach: weights that are lost as subnormal numbers. */
Test(agree, weights_of_next_to_nothing) {
    const check_options options = { .device = "cpu", .op = "tree_split_score", .isa = "all", .seed = 1, .only = "156" };
    cr_assert(check_run(&options, &report), "%s", report.error);
    cr_expect(report.op[0].count.passed > 0 && report.op[0].count.failed == 0);
}

/* Where a logarithm of 89 and more is given, its exponential is Inf in f32, and makes the other class's gradient Inf as
 * well, however small that class is. */
Test(agree, mixtures_beyond_f32) {
    const check_options options = {
        .device = "cpu", .op = "jsd_backward", .isa = "all", .seed = 31, .only = "137,461"
    };
    cr_assert(check_run(&options, &report), "%s", report.error);
    cr_expect(report.op[0].count.passed > 0 && report.op[0].count.failed == 0);
}

/* A gradient that is Inf, times a slope that is 0 in float64 and may be next to nothing in f32. */
Test(agree, infinity_times_next_to_nothing) {
    const check_options options = {
        .device = "cpu", .op = "slstm_backward", .isa = "all", .seed = 1, .only = "e269", .dims = "d=15"
    };
    cr_assert(check_run(&options, &report), "%s", report.error);
    cr_expect(report.op[0].count.passed > 0 && report.op[0].count.failed == 0);
}

/* Graphs hold addresses: windows placed once more stay where they are, though there is room elsewhere. */
Test(agree, windows_stay) {
    enum { PAGE = 1 << 16, ROOM = 1 << 30 };
    static memory m = { .host = true };
    const memory_windows windows = { .count = 3, .apart = 1 << 24, .frame = 2 * PAGE, .bytes = 100 };
    void *room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert(room != MAP_FAILED && memory_place_windows(&m, 0, &windows, 4, PLACE_BEGIN));
    const char *first = m.slot[0].start;
    munmap(room, ROOM);
    cr_assert(memory_place_windows(&m, 0, &windows, 4, PLACE_BEGIN));
    cr_expect(m.slot[0].start == first);
    memory_free(&m);
}
