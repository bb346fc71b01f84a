/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_pack: the table and the reference. */
#include <trine/matmul.h>

#include "packed.h"

#define ARGS trine_matmul_pack_args

/* Exact: elements are copied. */
static void reference(trine_ref *ref) {
    const int64_t g = trine_ref_dim(ref, "g"), n = trine_ref_dim(ref, "n"), k = trine_ref_dim(ref, "k"),
                  size = packed_size(k, n), deep = packed_deep(trine_ref_type(ref, "T"));
    const double *b = trine_ref_value(ref, "b");
    double *packed = trine_ref_value(ref, "packed");
    for (int64_t at = 0; at < g * size; at++) packed[at] = 0;
    for (int64_t at = 0; at < g * k * n; at++)
        packed[at / (k * n) * size + packed_place(at / n % k, at % n, k, deep)] = b[at];
}

const trine_spec trine_spec_matmul_pack = {
    SPEC(matmul_pack),
    .summary = "Matrices packed for many products",
    .formula = "packed[g,J,P,16 e s + e t + i] = b[g, 4 P + e s + i, 16 J + t], t < 16, i < e, s < 4/e, e = max(1, "
               "4/bytes of an element); 0 where b has none",
    .source = "Goto and van de Geijn 2008 (packing into panels); the layout by definition",
    .tensors = { TENSOR(b, IN | TRANSPOSABLE, "T", "[g] k n"), TENSOR(packed, OUT | EXACT, "T", "[g] " PACKED_SHAPE) },
    .types = { "T=f32|bf16|f16|i8|f64|e4m3|e5m2" },
    .flops = "0",
    .independent = "g",
    .sizes = { "g: 1 1 2 3 0", "n: 1 0 2 3 15 16 17 31 33 64 100 257", "k: 1 0 2 3 4 5 7 8 9 17 63 64 65 300" },
    .cases = { "llama3-8b gate: T=bf16 n=14336 k=4096 b=transposed", "square f32: T=f32 n=4096 k=4096 b=transposed",
               "square i8: T=i8 n=4096 k=4096 b=transposed", "square bf16, by rows: T=bf16 n=4096 k=4096" },
    .exact = true,
    .reference = reference,
};
