/* SPDX-License-Identifier: Apache-2.0 */
/* moe_dispatch: the table and the reference. */
#include <string.h>

#include <trine/comm.h>

#include "spec/spec.h"

#define ARGS trine_moe_dispatch_args

/* Numbers of rows are whole, and rows are copied: exact. One rank's experts after the other, whose slots are looked for
 * in their order. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t ranks = trine_ref_dim(ref, "ranks"), t = trine_ref_dim(ref, "t"), n = trine_ref_dim(ref, "n"),
                  k = trine_ref_dim(ref, "k"), e = trine_ref_dim(ref, "e"), p = trine_ref_dim(ref, "p"),
                  slots = ranks * t * k;
    const double *x = trine_ref_value(ref, "x"), *experts = trine_ref_value(ref, "experts");
    double *y = trine_ref_value(ref, "y"), *counts = trine_ref_value(ref, "counts"),
           *offsets = trine_ref_value(ref, "offsets"), *places = trine_ref_value(ref, "places"),
           *needed = trine_ref_value(ref, "needed");
    for (int64_t i = 0; i < ranks * p * n; i++) y[i] = 0;
    for (int64_t i = 0; i < slots; i++) places[i] = -1;
    for (int64_t r = 0; r < ranks; r++) {
        int64_t start = 0;
        offsets[r * (e + 1)] = 0;
        for (int64_t j = 0; j < e; j++) {
            int64_t count = 0;
            for (int64_t i = 0; i < slots; i++) {
                if (experts[i] != (double)(r * e + j)) continue;
                count++;
                if (args->capacity > 0 && count > args->capacity) continue;
                if (start < p) {
                    places[i] = (double)(r * p + start);
                    memcpy(y + (r * p + start) * n, x + i / k * n, (size_t)n * sizeof *y);
                }
                start++;
            }
            counts[r * e + j] = (double)count;
            offsets[r * (e + 1) + j + 1] = (double)(start < p ? start : p);
        }
        for (int64_t s = 0; needed && s < ranks; s++) needed[s * ranks + r] = (double)start;
    }
}

const trine_spec trine_spec_moe_dispatch = {
    SPEC(moe_dispatch),
    .summary = "The tokens of all ranks at the ranks of their experts, sorted by expert",
    .formula =
        "y[r,q] = x[s,i] for the slot (s,i,a) that stands at place q of rank r, 0 from offsets[r,e] on; the slots "
        "whose "
        "experts[s,i,a] is r e + j stand in their order from offsets[r,j] on, the first p of a rank, and of an "
        "expert as many as its capacity; places[s,i,a] = r p + q, -1 if nobody takes it; counts[r,j] of all that name "
        "the expert; needed[s,r] = rows that rank r would take, were there room",
    .source = "Lepikhin et al. 2021 (GShard); Fedus et al. 2022 (capacity)",
    .tensors = { TENSOR(x, IN, "T", "ranks t n"), TENSOR(experts, IN, "I", "ranks t k", .fill = "slots ranks*e"),
                 TENSOR(y, OUT | EXACT, "T", "ranks p n"), TENSOR(counts, OUT | EXACT, "i32", "ranks e"),
                 TENSOR(offsets, OUT | EXACT, "i32", "ranks e+1"), TENSOR(places, OUT | EXACT, "i32", "ranks t k"),
                 TENSOR(needed, OUT | OPTIONAL | EXACT, "i32", "ranks ranks") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group"),
                PARAM(capacity, I64, .values = "0 1 2 20", .min = 0,
                      .doc = "of an expert, which takes no more slots; 0: there is none") },
    .types = { "T=f32|bf16|f16|f64|i8|i16|i32|i64|u8|u32|e4m3|e5m2|e4m3fnuz|e5m2fnuz|e8m0 I=i32|i64" },
    .require = { "ranks > 0", "ranks <= 64" },
    .flops = "0",
    .exact = true,
    .sizes = { "ranks: 2 1 3 4 8", "t: 7 0 1 2 33 90", "k: 2 1 0 8", "e: 2 1 0 5 16", "p: 40 0 1 7 300",
               "n: 8 0 1 3 31 130 520" },
    .cases = { "mixtral, 2 ranks: T=bf16 I=i32 ranks=2 t=2048 k=2 e=4 p=4608 n=4096",
               "qwen3: T=bf16 I=i32 ranks=4 t=1024 k=8 e=32 p=9216 n=2048",
               "deepseek-v3 16 tokens: T=bf16 I=i32 ranks=4 t=16 k=8 e=64 p=512 n=7168" },
    .reference = reference,
};
