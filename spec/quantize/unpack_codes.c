/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_codes: the table and the reference. */
#include <trine/quantize.h>

#include "packing.h"

#define ARGS trine_unpack_codes_args

/* Bit by bit: exact. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t k = trine_ref_dim(ref, "k"), words = trine_ref_dim(ref, "words"),
                  rows = trine_ref_dim(ref, "p") * trine_ref_dim(ref, "q");
    const double *packed = trine_ref_value(ref, "packed");
    double *codes = trine_ref_value(ref, "codes");
    const packing p = packing_of(ref, args->order);
    const bool sign = trine_ref_type(ref, "C") == TRINE_I8;

    for (int64_t i = 0; i < rows * k; i++) {
        codes[i] = 0;
        for (int b = 0; b < p.bits; b++) {
            const int64_t at = packing_begin(&p, i % k) + b;
            const int64_t word = (int64_t)packed[i / k * words + at / p.width];
            const double value = word >> at % p.width & 1 ? ldexp(1, b) : 0;
            codes[i] += sign && b == p.bits - 1 ? -value : value;
        }
    }
}

const trine_spec trine_spec_unpack_codes = {
    SPEC(unpack_codes),
    .summary = "Codes packed into words in the layouts of several programs, a byte each",
    .formula = "what pack_codes packed; in i8 the highest bit of a code counts -2^(bits-1)",
    .source = "Frantar et al. 2022 (GPTQ), Lin et al. 2024 (AWQ) and Badri and Shaji 2023 (HQQ), the formats of their "
              "code",
    .tensors = { TENSOR(packed, IN | ANY_STRIDE, "P", "[p] q words"),
                 TENSOR(codes, OUT | EXACT | ANY_STRIDE, "C", "[p] q k") },
    .params = { PACKING_ORDER },
    .types = { "C=u8|i8 P=u8|i32" },
    .require = { PACKING_REQUIRE },
    .flops = "p*q*k",
    .independent = "p",
    .sizes = { PACKING_SIZES },
    .cases = { "weights 4 bits: C=u8 P=u8 p=4096 q=32 k=128 words=64",
               "GPTQ, 4 bits: C=u8 P=i32 q=4096 k=4096 words=512", "GPTQ, 3 bits: C=u8 P=i32 q=4096 k=4096 words=384",
               "AWQ: C=u8 P=i32 q=4096 k=4096 words=512 order=awq",
               "highest first: C=u8 P=u8 q=4096 k=4096 words=2048 order=descending" },
    .exact = true,
    .reference = reference,
};
