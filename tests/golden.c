/* SPDX-License-Identifier: Apache-2.0 */
/* References and kernels against oracles outside this repository, by the golden vectors of tests/golden: each op has
 * some, and the reference in float64 and the CPU's kernels at every level that the machine has meet them.
 * check/compare.c says how near. Where a device is emulated, tests/emulated.c does the same there. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "check/check.h"
#include "support.h"

static check_report report;

static bool run(const char *op, const char *directory) {
    const check_options options = { .device = "cpu", .op = op, .isa = "all", .golden = directory };
    return check_run(&options, &report);
}

TestSuite(golden, .timeout = 300);

ParameterizedTestParameters(golden, op) {
    static int ops[TRINE_OP_COUNT];
    for (int i = 1; i < TRINE_OP_COUNT; i++) ops[i - 1] = i;
    return cr_make_param_array(int, ops, TRINE_OP_COUNT - 1);
}

ParameterizedTest(int *op, golden, op) {
    const char *name = trine_op_name((trine_op)*op);
    cr_assert(run(name, TEST_SOURCE "/tests/golden"), "%s: %s", name, report.error);
    for (int i = 0; i < report.failures; i++)
        cr_expect(false, "%s %s: %s\n%s", name, report.failure[i].kernel, report.failure[i].text,
                  report.failure[i].replay);
    const check_count *count = &report.op[0].count;
    cr_expect(count->failed == 0 && count->skipped == 0, "%s: %lld failed, %lld skipped", name,
              (long long)count->failed, (long long)count->skipped);
    /* The reference, and a kernel of one level at least. */
    cr_expect(count->cases > 0 && count->passed >= 2 * count->cases, "%s: %lld passed of %lld cases", name,
              (long long)count->passed, (long long)count->cases);
}

/* An op without golden vectors is no op: what the message says is what its author must do. */
Test(golden, missing) {
    char directory[128];
    make_directory(directory);
    cr_assert(run("softmax", directory), "%s", report.error);
    cr_expect(report.op[0].count.failed == 1 && report.op[0].count.passed == 0);
    cr_expect(strstr(report.failure[0].text, "tests/golden/<family>/oracle.py") &&
                  strstr(report.failure[0].text, "make.py softmax"),
              "%s", report.failure[0].text);
    remove_directory(directory);
}

static void expect_file(const char *text, int64_t passed, const char *failure) {
    char directory[128], path[256];
    make_directory(directory);
    snprintf(path, sizeof path, "%s/norm", directory);
    cr_assert(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/norm/softmax.txt", directory);
    write_file(path, text, strlen(text));
    cr_assert(run("softmax", directory), "%s", report.error);
    remove_directory(directory);
    if (failure == NULL) {
        cr_expect(report.failures == 0 && report.op[0].count.passed >= passed, "%s", report.failure[0].text);
    } else {
        cr_expect(report.failures > 0 && strstr(report.failure[0].text, failure), "\"%s\" instead of \"%s\"",
                  report.failures ? report.failure[0].text : "", failure);
    }
}

/* What is malformed is told, and a wrong value is seen: of the reference to 2^-40 of the largest, of kernels to their
 * bound. */
Test(golden, files) {
    const char *const half = "case two: T=f32 s=1 n=2\nin x 1x2\n 2*0x3p-1\nout y 1x2\n 0x1p-1 0x1p-1\n";
    char text[512];
    expect_file(half, 2, NULL);
    snprintf(text, sizeof text, "# two cases\n%s%s", half, half);
    expect_file(text, 4, NULL);
    expect_file("# nothing\n", 0, "there are no golden vectors for softmax");
    expect_file("case a: s=1 n=2 w=3\n", 0, "no dimension, type, parameter or tensor \"w\"");
    expect_file("case a: s=1 n=2\nin x 1x2\n 1\nout y 1x2\n 2*0x1p-1\n", 0, "x has 1 elements");
    expect_file("case a: s=1 n=2\nin x 1x2\n 1 1 1\nout y 1x2\n 2*0x1p-1\n", 0, "not 2");
    expect_file("case a: s=1 n=2\nin x 1x3\n 3*1\n", 0, "dimension 1 of x is 3 instead of 2");
    expect_file("case a: s=1 n=2\nin y 1x2\n 2*1\n", 0, "in y: the call has no such tensor");
    expect_file("case a: s=1 n=2\nin x 1x2\n 2*1\n", 0, "what y must be is missing");
    expect_file("case a: s=1 n=2\nout y 1x2\n 2*0x1p-1\n", 0, "the values of x are missing");
    expect_file("case a: T=bf16 s=1 n=2\nin x 1x2\n 2*0x1001p-12\nout y 1x2\n 2*0x1p-1\n", 0, "is no bf16");
    expect_file("case a: s=1 n=2\nin x 1x2\n 2*1\nout y 1x2\n 0x1p-1 0x10000000001p-41\n", 0, NULL);
    expect_file("case a: s=1 n=2\nin x 1x2\n 2*1\nout y 1x2\n 0x1p-1 0x4000000001p-39\n", 0,
                "by the oracle of the golden vectors");
    expect_file("case a: s=1 n=2\nin x 1x2\n 2*1\nout y 1x2\n 0x1p-1 nan\n", 0, "by the oracle of the golden vectors");
}
