/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_strided: the table and the reference. */
#include "strided.h"

#define ARGS trine_unpack_strided_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const strided s = STRIDED_OF(ref, args);
    for (int64_t at = 0; at < strided_count(&s); at++) {
        const int64_t place = strided_place(&s, at);
        if (place >= 0) trine_ref_value(ref, "x")[place] = trine_ref_value(ref, "packed")[at];
    }
}

const trine_spec trine_spec_unpack_strided = {
    SPEC(unpack_strided),
    .summary = "A message scattered to strided blocks",
    .formula =
        "x[start + o extent + k stride_k + j stride_j + i stride_i + m] = packed[o,k,j,i,m], where that is in x; "
        "of the same place the last",
    .source = "Pearson et al. 2020 (TEMPI); MPI 4.1, section 5",
    .tensors = { TENSOR(packed, IN, "T", "[o] [k] [j] [i] m"),
                 TENSOR(x, IN | OUT | EXACT, "T", "n", .fill = "strided packed") },
    .params = { STRIDED_PARAMS },
    .types = { STRIDED_TYPES },
    .flops = "0",
    .sizes = { STRIDED_SIZES },
    .cases = { STRIDED_CASES },
    .exact = true,
    .reference = reference,
};
