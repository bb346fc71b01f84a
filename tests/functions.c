/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a device's loaded functions: it grows, and names that do not fit are told. */
#include <stdio.h>
#include <string.h>

#include "backends/simt/core/functions.h"
#include "tap.h"

enum { MANY = 5000 };

static char places[MANY];
static simt_functions functions;

static void name_of(int i, char name_out[static SIMT_NAME_SIZE]) {
    snprintf(name_out, SIMT_NAME_SIZE, "op_step_bf16_%d", i);
}

int main(void) {
    char name[SIMT_NAME_SIZE];
    bool right = simt_function_find(&functions, "op") == NULL;
    for (int i = 0; i < MANY; i++) {
        name_of(i, name);
        simt_function_enter(&functions, name, &places[i]);
        name_of(i / 2, name);
        right = right && simt_function_find(&functions, name) == &places[i / 2];
    }
    tap(right, "functions are found while the table grows");
    for (int i = 0; i < MANY; i++) {
        name_of(i, name);
        right = right && simt_function_find(&functions, name) == &places[i];
    }
    tap(right && simt_function_find(&functions, "op_step_bf16_5000") == NULL, "all %d are found, and no other", MANY);

    const simt_function whole = { .step = "full", .ragged = true, .type = { TRINE_BF16, TRINE_F32 }, .variant = 512 };
    tap(simt_function_name("rms_norm_backward", &whole, name) &&
            strcmp(name, "rms_norm_backward_full_ragged_bf16_f32_512") == 0,
        "a name has its parts");
    char op[SIMT_NAME_SIZE];
    memset(op, 'a', sizeof op);
    op[sizeof op - sizeof "_bf16"] = 0;
    const simt_function typed = { .type = { TRINE_BF16 } }, longer = { .type = { TRINE_BF16 }, .variant = 1 };
    tap(!simt_function_name(op, &longer, name), "a name that is cut is told");
    op[sizeof op - sizeof "_bf16" - 1] = 0;
    tap(simt_function_name(op, &typed, name) && strlen(name) == SIMT_NAME_SIZE - 2, "the longest that fits is whole");
    return tap_end();
}
