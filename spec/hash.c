/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time program: prints the hash of the specification as a header for modules. */
#include <inttypes.h>
#include <stdio.h>

#include "plan.h"

int main(void) {
    if (trine_plan_error() != NULL) {
        fprintf(stderr, "spec: %s\n", trine_plan_error());
        return 1;
    }
    printf("/* Made from the tables in spec/. */\n#define TRINE_SPEC_HASH UINT64_C(0x%016" PRIx64 ")\n", trine_spec_hash());
    return 0;
}
