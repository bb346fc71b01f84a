/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: a command line of any words, by lines of the input. The subcommands that write no files run as they are;
 * the others' options go through the parser. Run with -close_fd_mask=3: they print much. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    setenv("HWLOC_SYNTHETIC", "core:2 pu:1", 1); /* reading the real topology takes most of the time otherwise */
    setenv("TRINE_TUNE", "/dev/null", 1);
    return 0;
}

/* Options of every kind. */
static void parse_only(int argc, char **argv) {
    target t = { 0 };
    bool flag = false;
    const char *text = NULL, *maybe = NULL, *words[2];
    int64_t integer = 0;
    double number = 0;
    const option_row rows[] = {
        OPTION_FLAG("flag", &flag, "a flag"),
        OPTION_TEXT("text", &text, "TEXT", "a text"),
        OPTION_MAYBE("json", &maybe, "FILE", "a file"),
        OPTION_INTEGER("seed", &integer, 0, 0x1p64, "N", "an integer"),
        OPTION_NUMBER("budget", &number, 0, 1e9, "S", "a number"),
        TARGET_OPTIONS(t),
        { 0 },
    };
    const option_set set = { "trine check [options]", "Checks.", rows };
    const int found = options_parse(&set, argc, argv, words, 2);
    if (found > 2 || (found < 0 && options_status(found) != 0 && options_status(found) != 2)) abort();
    if (found >= 0 && (integer < 0 || !(number >= 0 && number <= 1e9))) abort();
}

/* A case of an op in the words of --dims, --types and --case. */
static void parse_case(const char *name, const char *text) {
    static trine_case c;
    char error[512], out[512];
    const trine_op op = trine_op_find(name);
    if (op == TRINE_OP_NONE) return;
    trine_case_init(&c, op);
    if (!trine_case_parse(&c, text, error, sizeof error) || !trine_case_finish(&c, error, sizeof error)) {
        if (error[0] == 0) abort();
        return;
    }
    trine_case_text(&c, out, sizeof out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { WORDS = 16 };
    char *words[WORDS + 1] = { 0 }, *text = malloc(size + 1), *rest = text;
    int count = 0;
    if (text == NULL) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    while (count < WORDS && rest != NULL) words[count++] = strsep(&rest, "\n");
    if (strcmp(words[0], "spec") == 0)
        trine_tool_spec(count, words);
    else if (strcmp(words[0], "explain") == 0)
        trine_tool_explain(count, words);
    else if (strcmp(words[0], "info") == 0)
        trine_tool_info(count, words);
    else
        parse_only(count, words);
    if (count >= 2) parse_case(words[0], words[1]);
    free(text);
    return 0;
}
