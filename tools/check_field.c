/* SPDX-License-Identifier: Apache-2.0 */
/* trine check --exact-field: are two programs the same function? */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>

#include "check/field.h"
#include "tool.h"

static const char *const verdicts[] = { [FIELD_EQUAL] = "equal",
                                        [FIELD_DIFFERENT] = "differ",
                                        [FIELD_UNDECIDED] = "undecided",
                                        [FIELD_MISTAKEN] = "mistaken" };

/* All of the library's own. */
static int compare_all(uint64_t seed) {
    int count = 0, equal = 0;
    for (const field_case *c = field_cases; c->name; c++, count++) {
        field_result r;
        field_compare(c->inputs, NULL, c->left, c->right, seed, &r);
        equal += r.verdict == FIELD_EQUAL;
        printf("%-9s  %s%s%s\n", verdicts[r.verdict], c->name, r.message[0] ? ": " : "", r.message);
    }
    printf("%d equal, %d not\n", equal, count - equal);
    return equal == count ? 0 : 1;
}

int check_field(const char *inputs, const char *dims, uint64_t seed, const char *const *program, int programs) {
    field_result r;
    if (programs == 0 && !inputs && !dims) return compare_all(seed);
    if (programs != 2) return usage_error("check", "--exact-field compares two programs");
    if (!inputs) return usage_error("check", "--exact-field needs --inputs, \"x: r n; w: n k\"");
    field_compare(inputs, dims, program[0], program[1], seed, &r);
    switch (r.verdict) {
    case FIELD_EQUAL:
        printf("equal: %" PRId64 " elements; programs that differ are called so with a probability below 2^%d\n",
               r.elements, (int)ceil(r.log2_error));
        return 0;
    case FIELD_MISTAKEN: return usage_error("check", "--exact-field: %s", r.message);
    default: printf("%s: %s\n", verdicts[r.verdict], r.message); return 1;
    }
}
