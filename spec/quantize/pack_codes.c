/* SPDX-License-Identifier: Apache-2.0 */
/* pack_codes: the table and the reference. */
#include <trine/quantize.h>

#include "packing.h"

#define ARGS trine_pack_codes_args

/* Bit by bit: exact. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t k = trine_ref_dim(ref, "k"), words = trine_ref_dim(ref, "words"),
                  rows = trine_ref_dim(ref, "p") * trine_ref_dim(ref, "q");
    const double *codes = trine_ref_value(ref, "codes");
    double *packed = trine_ref_value(ref, "packed");
    const packing p = packing_of(ref, args->order);

    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < words; j++) packed[i * words + j] = 0;
        for (int64_t j = 0; j < k; j++)
            for (int b = 0; b < p.bits; b++) {
                const int64_t at = packing_begin(&p, j) + b;
                const double bit = (int)codes[i * k + j] >> b & 1, value = ldexp(bit, (int)(at % p.width));
                packed[i * words + at / p.width] += p.width == 32 && at % 32 == 31 ? -value : value;
            }
    }
}

const trine_spec trine_spec_pack_codes = {
    SPEC(pack_codes),
    .summary = "Codes of a byte each packed into words, in the layouts of several programs",
    .formula =
        "code j of a row is bits j bits .. (j+1) bits - 1 of its words, bits = floor(words width / k); descending "
        "from the highest bits of each word that have any; awq code 8b + (0 1 2 3 4 5 6 7) at place 8b + (0 4 1 5 "
        "2 6 3 7)",
    .source = "Frantar et al. 2022 (GPTQ), Lin et al. 2024 (AWQ) and Badri and Shaji 2023 (HQQ), the formats of their "
              "code",
    .tensors = { TENSOR(codes, IN | ANY_STRIDE, "C", "[p] q k"),
                 TENSOR(packed, OUT | EXACT | ANY_STRIDE, "P", "[p] q words") },
    .params = { PACKING_ORDER },
    .types = { "C=u8|i8 P=u8|i32" },
    .require = { PACKING_REQUIRE },
    .flops = "p*q*k",
    .independent = "p",
    .sizes = { PACKING_SIZES },
    .cases = { "weights 4 bits: C=u8 P=u8 p=4096 q=32 k=128 words=64",
               "weights 3 bits: C=u8 P=u8 p=4096 q=32 k=128 words=48",
               "AWQ: C=u8 P=i32 q=4096 k=4096 words=512 order=awq",
               "highest first: C=u8 P=u8 q=4096 k=4096 words=2048 order=descending" },
    .exact = true,
    .reference = reference,
};
