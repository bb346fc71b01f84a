/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time program: prints the hashes of the specification, of all tables and of each, as a header for modules. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include <trine/ops.h>

#include "plan.h"

int main(void) {
    if (trine_plan_error() != NULL) {
        fprintf(stderr, "spec: %s\n", trine_plan_error());
        return 1;
    }
    printf("/* Made from the tables in spec/: the ops and their hashes. */\n#include <trine/op.h>\n"
           "#define TRINE_SPEC_HASH UINT64_C(0x%016" PRIx64 ")\n",
           trine_spec_hash());
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        printf("#define TRINE_OP_HASH_");
        for (const char *c = trine_specs[op]->name; *c; c++) putchar(toupper((unsigned char)*c));
        printf(" UINT64_C(0x%016" PRIx64 ")\n", trine_op_hash((trine_op)op));
    }
    return 0;
}
