/* SPDX-License-Identifier: Apache-2.0 */
/* The library in a program whose numbers have a comma: its own have a point, and the program's stay as they are.
 * Speaks TAP; run.sh runs it. */
#include <locale.h>
#include <string.h>

#include <trine/trine.h>

#include "tests/tap.h"

static bool comma(void) {
    char text[16];
    snprintf(text, sizeof text, "%.1f", 0.5);
    return strcmp(localeconv()->decimal_point, ",") == 0 && strcmp(text, "0,5") == 0;
}

int main(void) {
    trine *lib = NULL;
    trine_queue *queue = NULL;
    float x[2] = { 1, 2 };
    const trine_tensor t = trine_tensor_1d(x, TRINE_F32, 2);
    const trine_options options = { .struct_size = sizeof options, .tune_file = "" };
    tap(comma(), "the program has a comma");
    const bool open = trine_open(&options, &lib) == TRINE_OK && trine_queue_open(lib, 0, NULL, &queue) == TRINE_OK;
    tap(open, "the library opens: %s", trine_error_message());
    if (open) {
        const trine_dropout_args args = { TRINE_ARGS(dropout), .x = &t, .y = &t, .p = 1.5f };
        tap(trine_dropout(queue, &args) == TRINE_ERR_ARGUMENT && strstr(trine_error_message(), "p is 1.5, but"),
            "a message: %s", trine_error_message());
        tap(comma(), "the program still has a comma");
        uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
        tap(trine_dropout(queue, &args) == TRINE_ERR_ARGUMENT && !comma(), "a thread keeps a locale of its own");
    }
    trine_queue_close(queue);
    trine_close(lib);
    return tap_end();
}
