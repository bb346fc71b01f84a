/* SPDX-License-Identifier: Apache-2.0 */
/* kv_cache_write: the table and the reference. */
#include <trine/attention.h>

#include "spec/spec.h"

#define ARGS trine_kv_cache_write_args

/* What the cache holds of x. The quotient is defined in f32, so that its rounding to the cache's type, which is a
 * second one, is the same everywhere: exact. 8-bit caches take the largest for what is beyond it; integers 0 for
 * NaN. */
static double stored(double x, const double *scale, trine_dtype C) {
    const double y = scale ? (double)((float)x / (float)*scale) : x;
    if (C == TRINE_I8) return isnan(y) ? 0 : fmax(-128, fmin(127, rint(y))) + 0.0; /* no -0 */
    if (C == TRINE_E4M3) return isinf(y) ? copysign(trine_largest(C), y) : trine_round(y, C, true);
    return trine_round(y, C, false);
}

/* One of the two caches: row i of x goes to the slot that is told for it. */
static void write(const trine_ref *ref, const double *x, double *cache, const double *scale, int64_t d) {
    const double *slots = trine_ref_value(ref, "slots");
    const int64_t t = trine_ref_dim(ref, "t"), hk = trine_ref_dim(ref, "hk"),
                  all = trine_ref_dim(ref, "pages") * trine_ref_dim(ref, "page");
    const trine_dtype C = trine_ref_type(ref, "C");
    for (int64_t i = 0; i < t; i++)
        for (int64_t h = 0; h < hk && slots[i] >= 0 && slots[i] < (double)all; h++)
            for (int64_t c = 0; c < d; c++)
                cache[((int64_t)slots[i] * hk + h) * d + c] =
                    stored(x[(i * hk + h) * d + c], scale ? scale + h : NULL, C);
}

static void reference(trine_ref *ref) {
    write(ref, trine_ref_value(ref, "k"), trine_ref_value(ref, "k_cache"), trine_ref_value(ref, "k_scale"),
          trine_ref_dim(ref, "d"));
    if (trine_ref_value(ref, "v"))
        write(ref, trine_ref_value(ref, "v"), trine_ref_value(ref, "v_cache"), trine_ref_value(ref, "v_scale"),
              trine_ref_dim(ref, "dv"));
}

const trine_spec trine_spec_kv_cache_write = {
    SPEC(kv_cache_write),
    .summary = "Writing the keys and values of tokens into a paged cache",
    .formula =
        "k_cache[slots[i]/page, slots[i]%page, g] = k[i,g] / k_scale[g], rounded to the cache's type; v_cache "
        "likewise of v. A token whose slot is not in [0, pages page) is passed over, and of tokens with the same slot "
        "the last one is written",
    .source = "Kwon et al. 2023 (PagedAttention)",
    .tensors = { TENSOR(k, IN, "T", "t hk d"), TENSOR(v, IN | OPTIONAL, "T", "t hk dv"),
                 TENSOR(slots, IN, "I", "t", .fill = "slots pages*page"),
                 TENSOR(k_scale, IN | OPTIONAL | BROADCAST, "f32", "hk"),
                 TENSOR(v_scale, IN | OPTIONAL | BROADCAST, "f32", "hk"),
                 TENSOR(k_cache, IN | OUT | EXACT, "C", "pages page hk d"),
                 TENSOR(v_cache, IN | OUT | OPTIONAL | EXACT, "C", "pages page hk dv") },
    .types = { "T=f32 C=f32|e4m3|i8 I=i32|i64", "T=bf16 C=bf16|e4m3|i8 I=i32|i64", "T=f16 C=f16|e4m3|i8 I=i32|i64" },
    .require = { "v <-> v_cache", "v_scale -> v" },
    .flops = "0",
    .independent = "hk",
    .sizes = { "t: 1 0 2 7 33 300", "hk: 1 0 2 3 8", "d: 1 0 8 40 64 128 576", "dv: 1 0 8 24 64 128 512",
               "pages: 1 0 2 5 40", "page: 1 0 3 16 256" },
    .cases = { "decode: T=bf16 C=bf16 I=i64 t=64 hk=8 d=128 dv=128 pages=16384 page=16 +v +v_cache",
               "prefill: T=bf16 C=bf16 I=i64 t=8192 hk=8 d=128 dv=128 pages=16384 page=16 +v +v_cache",
               "prefill e4m3: T=bf16 C=e4m3 I=i64 t=8192 hk=8 d=128 dv=128 pages=4096 page=64 +v +v_cache +k_scale "
               "+v_scale",
               "prefill i8: T=f16 C=i8 I=i32 t=8192 hk=8 d=128 dv=128 pages=4096 page=64 +v +v_cache +k_scale +v_scale",
               "latent: T=bf16 C=bf16 I=i32 t=8192 hk=1 d=576 pages=4096 page=64" },
    .reference = reference,
};
