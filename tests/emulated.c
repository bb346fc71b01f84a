/* SPDX-License-Identifier: Apache-2.0 */
/* The agreement suite over a device module, its device code run on the host by a driver for tests: guard pages stand
 * round every buffer, and other places of the operands, other poison and other orders of blocks and threads must not
 * change a bit. TEST_STUB is that driver, TEST_DRIVER the name of the real one where a process cannot have both. And
 * the golden vectors of TEST_SOURCE/tests/golden. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "spec/number.h"
#include "tap.h"

static double budget(void) {
    const char *text = getenv("EMULATED_BUDGET");
    return text != NULL ? trine_strtod(text, NULL) : 60;
}

static void print_counts(const check_report *report, const char *kind) {
    check_print(report, stderr, false);
    for (int i = 0; i < report->ops; i++) {
        const check_count *count = &report->op[i].count;
        tap(count->failed == 0, "%s, %s cases: %lld passed, %lld skipped", report->op[i].name, kind,
            (long long)count->passed, (long long)count->skipped);
    }
}

int main(void) {
    static check_report report;
    static const char driver[] = TEST_DRIVER;
    if (driver[0] && dlopen(driver, RTLD_NOW) != NULL) return tap_skip_all("this machine has a driver");
    if (dlopen(TEST_STUB, RTLD_NOW | RTLD_GLOBAL) == NULL) return tap_skip_all(dlerror());
    const check_options options = { .device = TEST_BACKEND,
                                    .backends = TEST_BACKEND,
                                    .seed = 1,
                                    .budget = budget(),
                                    .timeout = 600,
                                    .host_memory = true,
                                    .asynchronous = true };
    if (!check_run(&options, &report)) {
        tap(false, "%s", report.error);
        return tap_end();
    }
    print_counts(&report, "drawn");
    const check_options golden = { .device = TEST_BACKEND,
                                   .backends = TEST_BACKEND,
                                   .timeout = 600,
                                   .host_memory = true,
                                   .asynchronous = true,
                                   .golden = TEST_SOURCE "/tests/golden" };
    if (!check_run(&golden, &report)) {
        tap(false, "%s", report.error);
        return tap_end();
    }
    print_counts(&report, "golden");
    return tap_end();
}
