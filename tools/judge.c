/* SPDX-License-Identifier: Apache-2.0 */
/* trine judge: holds a kernel from elsewhere against an op's specification, and times it. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "judge/judge.h"
#include "output.h"
#include "tool.h"

/* Where the modules may be that load what is judged, from the folder of this program on: as installed, and as built. */
static const char *const places[] = { "../libexec/trine/judge", "../judge" };

static bool find_modules(char *out, size_t size) {
    char self[PATH_MAX], probe[PATH_MAX + 64];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
    const char *const slash = length > 0 ? memrchr(self, '/', (size_t)length) : NULL;
    for (size_t i = 0; slash != NULL && i < sizeof places / sizeof places[0]; i++) {
        snprintf(out, size, "%.*s/%s", (int)(slash - self), self, places[i]);
        snprintf(probe, sizeof probe, "%s/trine-judge_cpu.so", out);
        if (access(probe, R_OK) == 0) return true;
    }
    return false;
}

static int write_json(const judge_options *o, const judge_verdict *verdict, output *out) {
    char error[640];
    judge_print_json(o, verdict, out->file);
    return output_finish(out, error, sizeof error) && output_commit(out, error, sizeof error) ? 0
                                                                                              : failure("%s", error);
}

int trine_tool_judge(int argc, char **argv) {
    static judge_verdict verdict;
    judge_options o = { .device = "cpu", .budget = 20, .timeout = 60 };
    int64_t seed = 1, megabytes = 8192;
    const char *op = NULL, *json = NULL, *words[1];
    char directory[PATH_MAX + 32], peers[PATH_MAX + 32], error[640];
    bool quiet = false;
    const option_row rows[] = {
        OPTION_TEXT("op", &op, "OP", "the op that the kernel computes"),
        OPTION_TEXT("device", &o.device, "NAME", "device, as trine info lists them (default: cpu)"),
        OPTION_TEXT("types", &o.types, "T=TYPE,...", "only these element types"),
        OPTION_TEXT("sizes", &o.sizes, "\"n=N ...\"",
                    "only these sizes of dimensions, for a kernel that is made for them and cannot say so"),
        OPTION_TEXT("dims", &o.dims, "\"m=M ...\"", "time this call (default: cases of the specification)"),
        OPTION_TEXT("case", &o.only, "N,...", "only these cases, as a failure's line says, and no timing"),
        OPTION_TEXT("entry", &o.entry, "NAME", "the kernel in device code, which has no judge_launch()"),
        OPTION_TEXT("grid", &o.grid, "\"blocks=B threads=T\"",
                    "with --entry: its grid, expressions of the dimensions, and shared=BYTES"),
        OPTION_TEXT("compiler", &o.compiler, "COMMAND", "in the place of cc, c++, nvcc or hipcc"),
        OPTION_TEXT("flags", &o.flags, "\"FLAGS\"", "for the compiler, behind those of a fast build"),
        OPTION_INTEGER("threads", &o.threads, 1, 65536, "N", "threads of a call on the CPU (default: all cores)"),
        OPTION_INTEGER("seed", &seed, 0, INT64_MAX, "N", "seed of the calls (default: 1)"),
        OPTION_NUMBER("budget", &o.budget, 1e-3, 1e9, "SECONDS", "time for the agreement suite (default: 20)"),
        OPTION_NUMBER("timeout", &o.timeout, 1e-3, 1e6, "SECONDS",
                      "time after which the kernel counts as hung (default: 60)"),
        OPTION_INTEGER("memory", &megabytes, 0, INT64_C(1) << 40, "MEGABYTES",
                       "memory of a process that runs the kernel on the CPU, 0 for no limit (default: 8192)"),
        OPTION_MAYBE("json", &json, "FILE", "write the verdict as JSON to FILE, or to standard output"),
        OPTION_FLAG("quiet", &quiet, "without a progress bar"),
        { 0 },
    };
    const option_set set = { "trine judge FILE --op OP [options]",
                             "Builds the kernel in FILE, holds it against the op's specification as trine check does, "
                             "times it beside trine's own kernel, each in a process of its own, and beside other "
                             "libraries where trine-peers is, and says whether it is correct and how fast. The exit "
                             "status is 1 if it is refused.",
                             rows };
    const int count = options_parse(&set, argc, argv, words, 1);
    if (count < 0) return options_status(count);
    if (count == 0 || op == NULL) return usage_error("judge", "a FILE and --op are wanted");
    if ((o.op = find_op("judge", op)) == TRINE_OP_NONE) return 2;
    if (trine_plan_get(o.op)->comm >= 0)
        return usage_error("judge", "%s is computed by ranks together, and no kernel of one is judged", op);
    if ((o.entry == NULL) != (o.grid == NULL)) return usage_error("judge", "--entry and --grid go together");
    if (o.entry != NULL && strncmp(o.device, "cpu", 3) == 0)
        return usage_error("judge", "--entry names device code, and --device a CPU");
    if (!find_modules(directory, sizeof directory)) return failure("there are no trine-judge_*.so beside this program");
    o.file = words[0];
    o.directory = directory;
    o.peers = find_peers(peers, sizeof peers) ? peers : NULL;
    o.seed = (uint64_t)seed;
    o.memory = megabytes << 20;
    o.progress = isatty(STDERR_FILENO) && !quiet ? stderr : NULL;
    output written = { NULL };
    if (json != NULL && !output_open(&written, json, error, sizeof error)) return failure("%s", error);
    int status = judge_run(&o, &verdict) ? 0 : 1;
    judge_print(&o, &verdict, output_is_stdout(&written) ? stderr : stdout);
    if (written.file != NULL && write_json(&o, &verdict, &written) != 0) status = 1;
    output_discard(&written);
    return status;
}
