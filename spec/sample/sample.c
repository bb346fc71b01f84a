/* SPDX-License-Identifier: Apache-2.0 */
/* sample: the table and the reference. */
#include <stdlib.h>

#include <trine/sample.h>

#include "weights.h"

#define ARGS trine_sample_args

/* A token is a whole number: it must be the same one on every device. So all that decides it is pinned, operation by
 * operation: z by f32 products and sums that are rounded one by one, its power by the polynomial below, and everything
 * after that by whole numbers, whose sums are exact and do not depend on who adds what. */

/* floor(2^40 e^d), d <= 0, by Cody and Waite 1980: the polynomial's value is within 2 2^-24 of itself, and 24 bits of
 * it are left. */
static uint64_t power(float d) {
    if (!(d >= -28.0f)) return 0;
    const float n = weights_sum(weights_sum(weights_product(d, 1.44269504f), 12582912.0f), -12582912.0f);
    const float r = weights_sum(weights_sum(d, weights_product(n, -0.693359375f)), weights_product(n, 2.12194440e-4f));
    static const float coefficient[] = { 1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                         4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f };
    float p = coefficient[0];
    for (int k = 1; k < 6; k++) p = weights_sum(weights_product(p, r), coefficient[k]);
    p = weights_sum(weights_sum(weights_product(p, weights_product(r, r)), r), 1);
    return (uint64_t)ldexpf(p, (int)n + 40);
}

typedef struct candidate {
    float z;
    int64_t at;
    uint64_t weight;
} candidate;

static int descending(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->z != y->z) return x->z > y->z ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

typedef struct row {
    float temperature, top_p, min_p;
    int64_t top_k;
    uint64_t random;
} row;

/* Of n candidates in their order; the token's weight and that of all left in weight_out. */
static int64_t choose(candidate *c, int64_t n, const row *o, uint64_t weight_out[2]) {
    weight_out[0] = weight_out[1] = 1;
    if (c[0].z == -INFINITY) return -1;
    if (!(o->temperature > 0)) return c[0].at;
    const int64_t most = o->top_k > 0 && o->top_k < n ? o->top_k : n;
    const uint64_t least = weights_fixed(o->min_p, 40), part = weights_fixed(isnan(o->top_p) ? 1 : o->top_p, 32);
    uint64_t sum = 0, all = 0;
    int64_t kept = 0;
    for (; kept < most; kept++) {
        c[kept].weight = c[kept].z == c[0].z ? UINT64_C(1) << 40 : power(weights_sum(c[kept].z, -c[0].z));
        if (c[kept].weight < least) c[kept].weight = 0;
        sum += c[kept].weight;
    }
    /* ceil(part sum / 2^32) */
    uint64_t need = part * (sum >> 32) + (part * (sum & UINT32_MAX) + UINT32_MAX) / (UINT64_C(1) << 32);
    if (need == 0) need = 1;
    for (kept = 0; all < need; kept++) all += c[kept].weight;
    uint64_t *weight = calloc((size_t)n, sizeof *weight);
    if (weight == NULL) abort();
    for (int64_t k = 0; k < kept; k++) weight[c[k].at] = c[k].weight;
    const int64_t token = weights_find(weight, n, weights_place(o->random, all));
    weight_out[0] = weight[token];
    weight_out[1] = all;
    free(weight);
    return token;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), v = trine_ref_dim(ref, "v");
    const double *logits = trine_ref_value(ref, "logits"), *counts = trine_ref_value(ref, "counts"),
                 *temperatures = trine_ref_value(ref, "temperatures"), *top_ks = trine_ref_value(ref, "top_ks"),
                 *top_ps = trine_ref_value(ref, "top_ps"), *min_ps = trine_ref_value(ref, "min_ps");
    double *tokens = trine_ref_value(ref, "tokens"), *probabilities = trine_ref_value(ref, "probabilities");
    const float inverse = (float)(1 / (double)args->repetition_penalty);
    uint64_t seed = args->seed, offset = args->offset;
    trine_ref_philox(ref, &seed, &offset);
    candidate *c = malloc(sizeof *c * (size_t)(v + 1));
    if (c == NULL) abort();

    for (int64_t i = 0; i < r; i++) {
        const row o = { .temperature = temperatures ? (float)temperatures[i] : args->temperature,
                        .top_p = top_ps ? (float)top_ps[i] : args->top_p,
                        .min_p = min_ps ? (float)min_ps[i] : args->min_p,
                        .top_k = top_ks ? (int64_t)top_ks[i] : args->top_k,
                        .random = weights_random(seed, offset, ref->first + (uint64_t)i, 0) };
        const float heat = o.temperature > 0 ? (float)(1 / (double)o.temperature) : 1;
        bool wrong = false;
        for (int64_t j = 0; j < v; j++) {
            float z = (float)logits[i * v + j];
            if (counts && counts[i * v + j] > 0) {
                z = weights_product(z, z > 0 ? inverse : args->repetition_penalty);
                z = weights_sum(z, -weights_product((float)counts[i * v + j], args->frequency_penalty));
                z = weights_sum(z, -args->presence_penalty);
            }
            c[j] = (candidate){ .z = weights_product(z, heat), .at = j };
            wrong |= isnan(c[j].z);
        }
        uint64_t weight[2] = { 1, 1 };
        if (!wrong) qsort(c, (size_t)v, sizeof *c, descending);
        const int64_t token = wrong ? -1 : choose(c, v, &o, weight);
        tokens[i] = (double)token;
        if (probabilities) probabilities[i] = token < 0 ? NAN : (float)((double)weight[0] / (double)weight[1]);
    }
    free(c);
}

const trine_spec trine_spec_sample = {
    SPEC(sample),
    .summary = "Draws a token from each row of logits, the same one on every device",
    .formula =
        "z = (l repetition - frequency_penalty c - presence_penalty) / temperature where c > 0, else l / temperature; "
        "of the top_k largest z, w = floor(2^40 e^(z - max z)), 0 if below min_p 2^40; of these the fewest, from the "
        "largest on, whose sum is at least top_p of all; the token is the first whose w, added to those of smaller "
        "tokens, is more than floor(u sum w / 2^64), u being words 0 and 1 of Philox4x32-10 with the row's counter. At "
        "temperature 0 it is the largest z",
    .source = "Holtzman et al. 2020, section 3; Keskar et al. 2019, section 4.1; Salmon et al. 2011, section 3.3",
    .tensors = { TENSOR(logits, IN, "T", "r v"), TENSOR(counts, IN | OPTIONAL, "i32", "r v"),
                 TENSOR(temperatures, IN | OPTIONAL, "f32", "r"), TENSOR(top_ks, IN | OPTIONAL, "i32", "r"),
                 TENSOR(top_ps, IN | OPTIONAL, "f32", "r"), TENSOR(min_ps, IN | OPTIONAL, "f32", "r"),
                 TENSOR(philox, IN | OPTIONAL, "i64", "2"), TENSOR(tokens, OUT | EXACT, "I", "r"),
                 TENSOR(probabilities, OUT | OPTIONAL | EXACT, "f32", "r") },
    .params = { PARAM(temperature, F32, .values = "0.7 0 1 1.3 30", .min = 0,
                      .doc = "what logits are divided by; 0: the largest is taken"),
                PARAM(top_k, I32, .values = "0 1 5 50 1000", .min = 0, .doc = "candidates at most; 0: all"),
                PARAM(top_p, F32, .values = "0.9 0.1 0.5 1", .fallback = 1, .min = 0, .max = 1,
                      .doc = "share of the probability that candidates have together, at least"),
                PARAM(min_p, F32, .values = "0 0.05 0.5", .min = 0, .max = 1,
                      .doc = "least probability of a candidate, as a share of the largest"),
                PARAM(repetition_penalty, F32, .values = "1 1.2 0.8", .fallback = 1, .min = 0x1p-20, .max = 0x1p20,
                      .doc = "what divides the positive logits of tokens that were there, and multiplies the others"),
                PARAM(presence_penalty, F32, .values = "0 0.5 -1", .doc = "what their logits are less"),
                PARAM(frequency_penalty, F32, .values = "0 0.1 -0.3", .doc = "the same for each time"),
                PARAM(seed, U64, .values = "0 42 1234567890123456789", .doc = "key of the generator"),
                PARAM(offset, U64, .values = "0 7 4294967296",
                      .doc = "high half of its counter: another for every call") },
    .types = { "T=f32|bf16|f16 I=i32|i64" },
    .require = { "v >= 1", "v <= 8388608", "temperatures instead of temperature", "top_ks instead of top_k",
                 "top_ps instead of top_p", "min_ps instead of min_p", "philox instead of seed" },
    .flops = "20*r*v",
    .independent = "r",
    .sizes = { "r: 1 0 2 5 33", "v: 64 1 2 7 257 1000 4099 9001" },
    .cases = { "one token: T=bf16 I=i32 r=1 v=128256 temperature=0.8 top_k=50 top_p=0.95 seed=1",
               "batch: T=bf16 I=i32 r=64 v=128256 temperature=0.8 top_k=50 top_p=0.95 seed=1",
               "nucleus: T=f32 I=i32 r=64 v=32000 temperature=0.7 top_p=0.9 seed=1",
               "plain: T=f32 I=i64 r=256 v=50257 temperature=1 seed=1 +probabilities",
               "penalties: T=bf16 I=i32 r=64 v=128256 temperature=0.8 top_k=50 repetition_penalty=1.1 seed=1 +counts" },
    .reference = reference,
};
