/* SPDX-License-Identifier: Apache-2.0 */
/* The agreement engine itself: it passes every correct kernel of the module of mutants, and catches every wrong one.
 * TEST_MUTANTS is the module's directory. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "check/check.h"
#include "mutants/damage.h"
#include "mutants/mutant.h"
#include "spec/plan.h"

typedef struct candidate {
    const char *op, *kernel, *what; /* what: NULL for a correct kernel */
} candidate;

static const candidate mutants[] = {
#define CORRECT(op) { #op, #op "_correct", NULL },
#define MUTANT(op, defect, what) { #op, #op "_" #defect, what },
#include "mutants/mutants.def"
#undef CORRECT
#undef MUTANT
};

enum { MUTANTS = sizeof mutants / sizeof mutants[0] };

static check_report report;

static check_options options_of(const candidate *m, double budget, bool host_memory) {
    return (check_options){ .device = "mutant:0",
                            .op = m->op,
                            .kernel = m->kernel,
                            .backends = "mutant",
                            .plugin_path = TEST_MUTANTS,
                            .seed = 1,
                            .budget = budget,
                            /* some never return; a large case of a correct one may take as long */
                            .timeout = m->what ? 2 : 0,
                            .stop = true,
                            .host_memory = host_memory };
}

static void run(const candidate *m, double budget, bool host_memory) {
    const check_options options = options_of(m, budget, host_memory);
    cr_assert(check_run(&options, &report), "%s", report.error);
}

TestSuite(mutants, .timeout = 300);

Test(mutants, correct_kernels_pass) {
    for (int i = 0; i < MUTANTS; i++) {
        if (mutants[i].what) continue;
        for (int host = 0; host < 2; host++) {
            run(&mutants[i], 2, host);
            cr_expect(report.op[0].count.failed == 0, "%s: %s\n%s", mutants[i].kernel, report.failure[0].text,
                      report.failure[0].replay);
            cr_expect(report.op[0].count.passed > 0, "%s: none passed", mutants[i].kernel);
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
        cr_expect(report.op[0].count.failed > 0, "%s survived %lld cases: %s", mutants[i].kernel,
                  (long long)report.op[0].count.cases, mutants[i].what);
        cr_expect(report.failures == 0 || strstr(report.failure[0].replay, "--seed 1 --case ") != NULL, "%s",
                  report.failure[0].replay);
    }
    printf("# mutants: %d caught of %d\n", caught, all);
    fflush(stdout);
}

/* Has the op an output that NaN may be in? */
static bool may_be_nan(trine_op op) {
    const trine_plan *plan = trine_plan_get(op);
    uint32_t found = 0; /* NaN of numbers that are all whole is none that an op makes */
    for (int i = 0; i < plan->tensors; i++)
        for (int row = 0; row < plan->combos; row++)
            if (trine_unit_roundoff(trine_plan_dtype(plan, i, plan->combo[row])) > 0)
                found |= plan->tensor[i].spec->flags;
    return (found & IN) && (found & OUT);
}

/* Whatever op there is, wrong results, missing ones and swallowed NaN are seen. */
Test(mutants, damage_is_caught_in_every_op) {
#define DAMAGE(defect, what) { #defect, what },
    static const char *const damages[][2] = { DAMAGES(DAMAGE) };
#undef DAMAGE
    const int kinds = sizeof damages / sizeof damages[0];
    int caught = 0, all = 0;
    for (int op = 1; op < TRINE_OP_COUNT; op++)
        for (int i = 0; i < kinds; i++) {
            char kernel[64];
            if (strcmp(damages[i][0], "all_nan_swallowed") == 0 && !may_be_nan((trine_op)op)) continue;
            all++;
            snprintf(kernel, sizeof kernel, "%s_%s", trine_op_name((trine_op)op), damages[i][0]);
            run(&(candidate){ trine_op_name((trine_op)op), kernel, NULL }, 30, true);
            caught += report.op[0].count.failed > 0;
            cr_expect(report.op[0].count.failed > 0, "%s survived %lld cases: %s", kernel,
                      (long long)report.op[0].count.cases, damages[i][1]);
        }
    printf("# mutants: %d caught of %d\n", caught, all);
    fflush(stdout);
}

/* Each op has at least three mutants of its own: a new op brings them in tests/mutants/<family>.c. */
Test(mutants, every_op_has_some) {
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        const char *name = trine_op_name((trine_op)op);
        int count = 0;
        for (int i = 0; i < MUTANTS; i++) count += mutants[i].what && strcmp(mutants[i].op, name) == 0;
        for (const mutant *const *family = mutant_families; *family; family++)
            for (const mutant *m = *family; m->op; m++) count += strcmp(m->op, name) == 0;
        cr_expect(count >= 3, "%s has %d mutants: write more in tests/mutants/<family>.c", name, count);
    }
}

/* A mutant over the reference is that reference, but for its defect. */
Test(mutants, references_pass) {
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        char kernel[64];
        snprintf(kernel, sizeof kernel, "%s_reference", trine_op_name((trine_op)op));
        run(&(candidate){ trine_op_name((trine_op)op), kernel, NULL }, 0.3, true);
        cr_expect(report.op[0].count.failed == 0, "%s: %s\n%s", kernel, report.failure[0].text,
                  report.failure[0].replay);
        cr_expect(report.op[0].count.passed > 0, "%s: none passed", kernel);
    }
}

/* What is wrong in an op's own way, as a misreading or a slip of its author would be. */
Test(mutants, family_mutants_are_caught, .timeout = 1200) {
    int caught = 0, all = 0;
    for (const mutant *const *family = mutant_families; *family; family++)
        for (const mutant *m = *family; m->op; m++) {
            char kernel[64];
            snprintf(kernel, sizeof kernel, "%s_%s", m->op, m->name);
            check_options options = options_of(&(candidate){ m->op, kernel, m->what }, 60, true);
            options.types = m->types, options.dims = m->dims, options.timeout = 0,
            options.cases = m->cases > 0 ? m->cases : 400;
            cr_assert(check_run(&options, &report), "%s: %s", kernel, report.error);
            all++;
            caught += report.op[0].count.failed > 0;
            cr_expect(report.op[0].count.failed > 0, "%s survived %lld cases: %s", kernel,
                      (long long)report.op[0].count.cases, m->what);
        }
    printf("# mutants: %d caught of %d\n", caught, all);
    fflush(stdout);
}

/* Device memory has no guard pages: bands round it must show the same. */
Test(mutants, guard_bands) {
    static const candidate writers[] = {
        { "rms_norm", "rms_norm_writes_beyond", "" },       { "rms_norm", "rms_norm_writes_padding", "" },
        { "rms_norm", "rms_norm_input_modified", "" },      { "reduce_sum", "reduce_sum_workspace_overrun", "" },
        { "reduce_sum", "reduce_sum_stale_workspace", "" }, { "rms_norm", "rms_norm_wrong_stride", "" }
    };
    for (size_t i = 0; i < sizeof writers / sizeof writers[0]; i++) {
        run(&writers[i], 30, false);
        cr_expect(report.op[0].count.failed > 0, "%s survived %lld cases", writers[i].kernel,
                  (long long)report.op[0].count.cases);
    }
}

/* A replay line's case fails again, alone. */
Test(mutants, replay) {
    const candidate wrong = { "rms_norm", "rms_norm_wrong_tail", NULL };
    check_options options = { .device = "mutant:0",
                              .op = wrong.op,
                              .kernel = wrong.kernel,
                              .backends = "mutant",
                              .plugin_path = TEST_MUTANTS,
                              .seed = 1,
                              .host_memory = true };
    run(&wrong, 30, true);
    cr_assert(report.failures == 1);
    static check_report again;
    options.only = strstr(report.failure[0].replay, "--case ") + strlen("--case ");
    cr_assert(check_run(&options, &again), "%s", again.error);
    cr_expect(again.op[0].count.failed == 1);
    cr_expect(strcmp(again.failure[0].text, report.failure[0].text) == 0, "%s\n%s", again.failure[0].text,
              report.failure[0].text);
}
