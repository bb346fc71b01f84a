/* SPDX-License-Identifier: Apache-2.0 */
/* The environment's variables, and the topology that is read. */
#include "support.h"

TestSuite(environment, .timeout = 60);
TestSuite(topology, .timeout = 60);

static char output[1 << 14];

static void probe(const char *variables) {
    char command[1024];
    snprintf(command, sizeof command, "TRINE_TUNE=/dev/null %s %s 2>&1", variables, TEST_PROBE);
    run_command(command, output, sizeof output);
}

Test(environment, misspelt) {
    probe("TRINE_VERBOS=1 TRINE_BAKENDS=cpu TRINE_SOMETHING_ELSE=1");
    cr_expect(strstr(output, "trine: unknown environment variable TRINE_VERBOS: did you mean TRINE_VERBOSE?\n") != NULL,
              "%s", output);
    cr_expect(strstr(output, "trine: unknown environment variable TRINE_BAKENDS: did you mean TRINE_BACKENDS?\n") !=
                  NULL,
              "%s", output);
    cr_expect(strstr(output, "trine: unknown environment variable TRINE_SOMETHING_ELSE: see trine(7)\n") != NULL, "%s",
              output);
    cr_expect(strstr(output, "y=2 4 6 8\n") != NULL, "%s", output);
    probe("TRINE_VERBOSE=0 TRINE_BACKENDS=cpu TRINE_PATH= TRINE_ISA= NOT_TRINE_X=1");
    cr_expect(strstr(output, "trine:") == NULL, "%s", output);
}

Test(environment, relative_path) {
    probe("TRINE_PATH=here:/nowhere::../there:");
    cr_expect(strstr(output, "trine: TRINE_PATH has here, which is not an absolute directory: it is not searched\n") &&
                  strstr(output, "trine: TRINE_PATH has ../there, which is"),
              "%s", output);
    cr_expect(count_lines(output, "trine:") == 2, "once for each: %s", output);
    cr_expect(strstr(output, "y=2 4 6 8\n") != NULL, "%s", output);
}

Test(environment, verbose) {
    probe("TRINE_VERBOSE=1 TRINE_ISA=baseline");
    cr_expect(strstr(output, "trine: cpu scale cpu_baseline X=f32 T=f32 p=1 q=1 r=1 n=4 alpha=2 ") != NULL, "%s",
              output);
    cr_expect(count_lines(output, "trine:") == 1, "%s", output);
}

Test(environment, wrong_values) {
    probe("TRINE_ISA=v9");
    cr_expect(strstr(output, "error: trine_open: \"v9\" is not a CPU level; there are baseline") != NULL, "%s", output);
    probe("TRINE_DEVICE=cuda:7");
    cr_expect(strstr(output, "error: trine_queue_open: TRINE_DEVICE is \"cuda:7\", but there is no such device") !=
                  NULL,
              "%s", output);
    probe("TRINE_KERNEL=none_such");
    cr_expect(strstr(output, "error: trine_queue_open: cpu has no kernel \"none_such\", which TRINE_KERNEL forces") !=
                  NULL,
              "%s", output);
}

Test(environment, tuning_cache_path) {
    char variables[512], path[256], directory[128];
    make_directory(directory);
    snprintf(variables, sizeof variables, "TRINE_TUNE= XDG_CACHE_HOME=%s", directory);
    snprintf(path, sizeof path, "%s/trine", directory);
    cr_assert(mkdir(path, 0755) == 0);
    snprintf(path, sizeof path, "%s/trine/tune", directory);
    write_file(path, "corrupt", 7);
    probe(variables);
    cr_expect(strstr(output, path) != NULL, "%s", output);
    snprintf(variables, sizeof variables, "TRINE_TUNE= XDG_CACHE_HOME= HOME=%s", directory);
    probe(variables);
    cr_expect(strstr(output, "trine:") == NULL, "%s", output);
    remove_directory(directory);
}

/* hwloc's made-up machines. */
Test(topology, synthetic) {
    if (!TEST_HWLOC) cr_skip_test("built without hwloc");
    probe("HWLOC_SYNTHETIC='pack:2 l3:1(size=16777216) l2:4(size=2097152) l1d:1(size=49152) core:1 pu:2'");
    cr_expect(strstr(output, "units=8 l1=49152 l2=2097152 l3=16777216 ") != NULL, "%s", output);
    probe("HWLOC_SYNTHETIC='core:3 pu:1'"); /* no cache is known: the system's, or what every server core has */
    cr_expect(strstr(output, "units=3 l1=") != NULL && strstr(output, "l1=0") == NULL && strstr(output, "l2=0") == NULL,
              "%s", output);
    probe("HWLOC_SYNTHETIC='l2:2(size=1048576) core:2 pu:1'"); /* the last level is the second */
    cr_expect(strstr(output, "units=4 ") != NULL && strstr(output, " l2=1048576 l3=1048576 ") != NULL, "%s", output);
}

Test(topology, cpuset) {
    probe("taskset -c 0");
    cr_expect(strstr(output, "units=1 ") != NULL, "%s", output);
    char before[64];
    probe("");
    cr_assert(sscanf(strstr(output, "units="), "%63s", before) == 1);
    probe("OMP_PROC_BIND=true");
    cr_expect(strstr(output, before) != NULL, "a bound first thread hides no cores: %s, not %s", output, before);
}
