/* SPDX-License-Identifier: Apache-2.0 */
/* The `trine` command: a table of subcommands. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

typedef struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} subcommand;

static const subcommand subcommands[] = {
    { "run", trine_tool_run, "run one op on tensors in .npy files" },
    { "info", trine_tool_info, "print devices, topology, modules and why each refused one was refused" },
    { "spec", trine_tool_spec, "print the specification of the ops" },
    { "explain", trine_tool_explain, "say which kernel a call would run, and why not the others" },
    { "check", trine_tool_check, "hold every kernel against the specification's reference" },
    { "bench", trine_tool_bench, "measure ops against the roofs of this machine" },
    { "tune", trine_tool_tune, "time all kernels of calls and remember the fastest" },
    { "judge", trine_tool_judge, "judge a kernel from elsewhere: correct or not, and how fast" },
};

enum { SUBCOMMANDS = sizeof subcommands / sizeof subcommands[0] };

static void help(void) {
    puts("usage: trine COMMAND [options]\nOne kernel specification, three backends, one answer.\n\ncommands:");
    for (int i = 0; i < SUBCOMMANDS; i++) printf("  %-10s  %s\n", subcommands[i].name, subcommands[i].summary);
    puts("\n\"trine help COMMAND\" prints a command's options, \"trine help run OP\" an op's; \"trine --version\" the "
         "version.");
}

/* The exit status of a command line. */
static int run(int argc, char **argv) {
    const char *names[SUBCOMMANDS + 3] = { "help", "version" };
    if (argc < 2) {
        help();
        return 2;
    }
    const char *name = strncmp(argv[1], "--", 2) == 0 ? argv[1] + 2 : strcmp(argv[1], "-h") == 0 ? "help" : argv[1];
    if (strcmp(name, "help") == 0 && argc > 2) { /* "trine help run scale" is "trine run scale --help" */
        char *words[] = { argv[0], argv[2], argc > 3 ? argv[3] : "--help", argc > 3 ? "--help" : NULL, NULL };
        return strcmp(words[1], "help") == 0 ? run(2, words) : run(argc > 3 ? 4 : 3, words);
    }
    for (int i = 0; i < SUBCOMMANDS; i++) {
        if (strcmp(argv[1], subcommands[i].name) == 0) {
            const int broken = tables_ok();
            return broken ? broken : subcommands[i].run(argc - 1, argv + 1);
        }
        names[i + 2] = subcommands[i].name;
    }
    if (strcmp(name, "help") == 0) {
        help();
        return 0;
    }
    if (strcmp(name, "version") == 0) {
        puts("trine " TRINE_VERSION);
        return 0;
    }
    const char *near = nearest_name(name, names);
    if (near == NULL) return usage_error("", "no command \"%s\"", argv[1]);
    return usage_error("", "no command \"%s\"; did you mean \"%s\"?", argv[1], near);
}

int main(int argc, char **argv) {
    setlocale(LC_NUMERIC, "C"); /* what is preloaded may have taken another */
    /* In a call of all ranks each wants a hardware queue of its own. */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    const int status = run(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) return failure("standard output could not be written");
    return status;
}
