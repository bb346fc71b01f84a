/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of strided blocks. */
#include "mutant.h"

/* The first element of x is no place. */
static void from_one(trine_ref *ref, void *args) {
    (void)args;
    if (D("n") > 0) V("x")[0] = 0;
}

/* What is beyond x is its last element. */
static void last_repeats(trine_ref *ref) {
    const int64_t count = D("o") * D("k") * D("j") * D("i") * D("m");
    if (D("n") > 0 && count > 0 && V("packed")[count - 1] == 0) V("packed")[count - 1] = V("x")[D("n") - 1];
}

/* The last element of packed is lost. */
static void last_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t count = D("o") * D("k") * D("j") * D("i") * D("m");
    if (count > 1) V("packed")[count - 1] = V("packed")[count - 2];
}

const mutant mutants_strided[] = {
    { "pack_strided", "ignores_start", "the first element is place 0", .param = "start", .value = 0 },
    { "pack_strided", "from_one", "the first element of x is not read", .before = from_one },
    { "pack_strided", "last_repeats", "what is beyond x is its last element", .after = last_repeats },
    { "pack_strided", "ignores_extent", "objects are the same", .param = "extent", .value = 0 },
    { "unpack_strided", "ignores_start", "the first element is place 0", .param = "start", .value = 0 },
    { "unpack_strided", "last_lost", "the last element is that before it", .before = last_lost },
    { "unpack_strided", "ignores_stride_j", "rows are the same", .param = "stride_j", .value = 0 },
    { 0 },
};
