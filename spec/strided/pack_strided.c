/* SPDX-License-Identifier: Apache-2.0 */
/* pack_strided: the table and the reference. */
#include "strided.h"

#define ARGS trine_pack_strided_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const strided s = STRIDED_OF(ref, args);
    for (int64_t at = 0; at < strided_count(&s); at++) {
        const int64_t place = strided_place(&s, at);
        trine_ref_value(ref, "packed")[at] = place < 0 ? 0 : trine_ref_value(ref, "x")[place];
    }
}

const trine_spec trine_spec_pack_strided = {
    SPEC(pack_strided),
    .summary = "Strided blocks gathered to a message",
    .formula =
        "packed[o,k,j,i,m] = x[start + o extent + k stride_k + j stride_j + i stride_i + m]; 0 of a place that is "
        "not in x",
    .source = "Pearson et al. 2020 (TEMPI); MPI 4.1, section 5",
    .tensors = { TENSOR(x, IN, "T", "n", .fill = "strided packed"),
                 TENSOR(packed, OUT | EXACT, "T", "[o] [k] [j] [i] m") },
    .params = { STRIDED_PARAMS },
    .types = { STRIDED_TYPES },
    .flops = "0",
    .sizes = { STRIDED_SIZES },
    .cases = { STRIDED_CASES },
    .exact = true,
    .reference = reference,
};
