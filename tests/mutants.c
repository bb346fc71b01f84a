/* SPDX-License-Identifier: Apache-2.0 */
/* The agreement engine itself: it passes every correct kernel of the module of mutants, and catches every wrong one. TEST_MUTANTS is the
 * module's directory. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "check/check.h"

typedef struct mutant {
    const char *op, *kernel, *what; /* what: NULL for a correct kernel */
} mutant;

static const mutant mutants[] = {
#define CORRECT(op) { #op, #op "_correct", NULL },
#define MUTANT(op, defect, what) { #op, #op "_" #defect, what },
#include "mutants/mutants.def"
#undef CORRECT
#undef MUTANT
};

enum { MUTANTS = sizeof mutants / sizeof mutants[0] };

static check_report report;

static void run(const mutant *m, double budget, bool host_memory) {
    const check_options options = { .device = "mutant:0",
                                    .op = m->op,
                                    .kernel = m->kernel,
                                    .backends = "mutant",
                                    .plugin_path = TEST_MUTANTS,
                                    .seed = 1,
                                    .budget = budget,
                                    .timeout = 2,
                                    .stop = true,
                                    .host_memory = host_memory };
    cr_assert(check_run(&options, &report), "%s", report.error);
}

TestSuite(mutants, .timeout = 300);

Test(mutants, correct_kernels_pass) {
    for (int i = 0; i < MUTANTS; i++) {
        if (mutants[i].what) continue;
        for (int host = 0; host < 2; host++) {
            run(&mutants[i], 2, host);
            cr_expect(report.op[0].count.failed == 0, "%s: %s\n%s", mutants[i].kernel, report.failure[0].text, report.failure[0].replay);
            cr_expect(report.op[0].count.passed >= 50, "%s: only %lld passed", mutants[i].kernel, (long long)report.op[0].count.passed);
        }
    }
}

Test(mutants, wrong_kernels_are_caught) {
    int caught = 0, all = 0;
    for (int i = 0; i < MUTANTS; i++) {
        if (mutants[i].what == NULL) continue;
        run(&mutants[i], 30, true);
        all++;
        caught += report.op[0].count.failed > 0;
        cr_expect(report.op[0].count.failed > 0, "%s survived %lld cases: %s", mutants[i].kernel, (long long)report.op[0].count.cases, mutants[i].what);
        cr_expect(report.failures == 0 || strstr(report.failure[0].replay, "--seed 1 --case ") != NULL, "%s", report.failure[0].replay);
    }
    printf("# mutants: %d caught of %d\n", caught, all);
    fflush(stdout);
}

/* Device memory has no guard pages: bands round it must show the same. */
Test(mutants, guard_bands) {
    static const mutant writers[] = { { "rms_norm", "rms_norm_writes_beyond", "" },       { "rms_norm", "rms_norm_writes_padding", "" },
                                      { "rms_norm", "rms_norm_input_modified", "" },      { "reduce_sum", "reduce_sum_workspace_overrun", "" },
                                      { "reduce_sum", "reduce_sum_stale_workspace", "" }, { "rms_norm", "rms_norm_wrong_stride", "" } };
    for (size_t i = 0; i < sizeof writers / sizeof writers[0]; i++) {
        run(&writers[i], 30, false);
        cr_expect(report.op[0].count.failed > 0, "%s survived %lld cases", writers[i].kernel, (long long)report.op[0].count.cases);
    }
}

/* A replay line's case fails again, alone. */
Test(mutants, replay) {
    const mutant wrong = { "rms_norm", "rms_norm_wrong_tail", NULL };
    check_options options = {
        .device = "mutant:0", .op = wrong.op, .kernel = wrong.kernel, .backends = "mutant", .plugin_path = TEST_MUTANTS, .seed = 1, .host_memory = true
    };
    run(&wrong, 30, true);
    cr_assert(report.failures == 1);
    static check_report again;
    options.only = strstr(report.failure[0].replay, "--case ") + strlen("--case ");
    cr_assert(check_run(&options, &again), "%s", again.error);
    cr_expect(again.op[0].count.failed == 1);
    cr_expect(strcmp(again.failure[0].text, report.failure[0].text) == 0, "%s\n%s", again.failure[0].text, report.failure[0].text);
}
