/* SPDX-License-Identifier: Apache-2.0 */
/* moe_align: the table and the reference. */
#include <trine/moe.h>

#include "spec/spec.h"

#define ARGS trine_moe_align_args

/* Whole numbers: exact. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t slots = trine_ref_dim(ref, "t") * trine_ref_dim(ref, "k"), e = trine_ref_dim(ref, "e"),
                  m = trine_ref_dim(ref, "m"), b = trine_ref_dim(ref, "b");
    const double *experts = trine_ref_value(ref, "experts");
    double *counts = trine_ref_value(ref, "counts"), *offsets = trine_ref_value(ref, "offsets"),
           *rows = trine_ref_value(ref, "rows"), *places = trine_ref_value(ref, "places"),
           *block_experts = trine_ref_value(ref, "block_experts");
    int64_t place = 0;
    for (int64_t i = 0; i < m * b; i++) rows[i] = -1;
    for (int64_t i = 0; i < slots; i++) places[i] = -1;
    for (int64_t i = 0; block_experts && i < m; i++) block_experts[i] = -1;
    offsets[0] = 0;
    for (int64_t j = 0; j < e; j++) {
        counts[j] = 0;
        for (int64_t i = 0; i < slots; i++) {
            if (experts[i] != (double)j) continue;
            counts[j]++;
            if (args->capacity > 0 && counts[j] > (double)args->capacity) continue;
            rows[place] = (double)i;
            places[i] = (double)place++;
        }
        place += (b - place % b) % b;
        offsets[j + 1] = (double)place;
        for (int64_t i = (int64_t)offsets[j]; block_experts && i < place; i += b) block_experts[i / b] = (double)j;
    }
}

const trine_spec trine_spec_moe_align = {
    SPEC(moe_align),
    .summary = "The slots of tokens sorted by expert, each expert's padded to whole blocks",
    .formula =
        "rows has the numbers k i + a of slots in the order of their experts[i,a], and among these in their own, "
        "expert j's from offsets[j] on, -1 where none is; places[i,a] is where each stands, -1 if nobody takes "
        "it; offsets are multiples of b; capacity: an expert takes its first ones only",
    .source = "Knuth 1998, section 5.2 (counting sort); Fedus et al. 2022 (capacity)",
    .tensors = { TENSOR(experts, IN, "I", "t k", .fill = "places e"), TENSOR(counts, OUT | EXACT, "i32", "e"),
                 TENSOR(offsets, OUT | EXACT, "i32", "e+1"), TENSOR(rows, OUT | EXACT, "i32", "m b"),
                 TENSOR(places, OUT | EXACT, "i32", "t k"), TENSOR(block_experts, OUT | OPTIONAL | EXACT, "i32", "m") },
    .params = { PARAM(capacity, I64, .values = "0 1 2 20", .min = 0,
                      .doc = "of an expert, which takes no more slots; 0: there is none") },
    .types = { "I=i32|i64" },
    .require = { "b > 0", "m*b >= t*k + min(e, t*k)*(b - 1)" },
    .flops = "t*k*e",
    .sizes = { "t: 1 0 2 7 33 300 1200", "k: 1 2 0 8", "e: 1 2 0 8 33 128 300", "m: 1 0 5 40 300 1000 5000",
               "b: 1 1 2 3 16 64" },
    .cases = { "mixtral 16 tokens: I=i32 t=16 k=2 e=8 m=19 b=16 +block_experts",
               "mixtral: I=i32 t=4096 k=2 e=8 m=136 b=64 +block_experts", "qwen3: I=i32 t=4096 k=8 e=128 m=32768 b=1",
               "deepseek-v3: I=i32 t=4096 k=8 e=256 m=764 b=64",
               "qwen3 32768 tokens: I=i32 t=32768 k=8 e=128 m=262144 b=1" },
    .exact = true,
    .reference = reference,
};
