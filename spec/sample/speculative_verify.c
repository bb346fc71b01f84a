/* SPDX-License-Identifier: Apache-2.0 */
/* speculative_verify: the table and the reference. */
#include <stdlib.h>

#include <trine/sample.h>

#include "weights.h"

#define ARGS trine_speculative_verify_args

/* Tokens are whole numbers, which must be the same on every device: probabilities become whole numbers at once, and all
 * that follows is exact. */

enum { BITS = 40 };
static uint64_t weight_of(double p) { return p > 0 ? (uint64_t)ldexp(p < 1 ? p : 1, BITS) : 0; /* NaN: 0 */ }

/* What the draft's weights at one place are: its own, or all at the token it proposes. */
typedef struct draft {
    const double *probs; /* NULL: there are none */
    double token;
} draft;
static uint64_t draft_weight(const draft *d, int64_t j) {
    return d->probs ? weight_of(d->probs[j]) : d->token == (double)j ? UINT64_C(1) << BITS : 0;
}

/* From what the target has and the draft has not; if that is nothing, or there is no draft, from all of the target. */
static int64_t draw(const double *target, const draft *d, int64_t v, uint64_t random, uint64_t *weight) {
    for (int pass = d ? 0 : 1; pass < 2; pass++) {
        uint64_t sum = 0;
        for (int64_t j = 0; j < v; j++) {
            const uint64_t p = weight_of(target[j]), q = pass == 0 ? draft_weight(d, j) : 0;
            sum += weight[j] = p > q ? p - q : 0;
        }
        if (sum > 0) return weights_find(weight, v, weights_place(random, sum));
    }
    return -1;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t b = trine_ref_dim(ref, "b"), g = trine_ref_dim(ref, "g"), v = trine_ref_dim(ref, "v");
    const double *draft_tokens = trine_ref_value(ref, "draft_tokens"), *probs = trine_ref_value(ref, "draft_probs"),
                 *target = trine_ref_value(ref, "target_probs");
    double *accepted = trine_ref_value(ref, "accepted"), *tokens = trine_ref_value(ref, "tokens");
    uint64_t seed = args->seed, offset = args->offset;
    trine_ref_philox(ref, &seed, &offset);
    uint64_t *weight = malloc(sizeof *weight * (size_t)(v + 1));
    if (weight == NULL) abort();

    for (int64_t i = 0; i < b; i++) {
        const uint64_t block = (ref->first + (uint64_t)i) * (uint64_t)(g + 1);
        double *to = &tokens[i * (g + 1)];
        draft d = { 0 };
        int64_t k = 0;
        for (; k < g; k++) {
            d = (draft){ probs ? &probs[(i * g + k) * v] : NULL, draft_tokens[i * g + k] };
            if (!(d.token >= 0 && d.token < (double)v)) break;
            const int64_t token = (int64_t)d.token;
            const uint64_t random = weights_random(seed, offset, block + (uint64_t)k, 0);
            if (weights_place(random, draft_weight(&d, token)) >= weight_of(target[(i * (g + 1) + k) * v + token]))
                break;
            to[k] = d.token;
        }
        accepted[i] = (double)k;
        to[k] = (double)draw(&target[(i * (g + 1) + k) * v], k < g ? &d : NULL, v,
                             weights_random(seed, offset, block + (uint64_t)k, 2), weight);
        while (++k <= g) to[k] = -1;
    }
    free(weight);
}

const trine_spec trine_spec_speculative_verify = {
    SPEC(speculative_verify),
    .summary = "Which tokens of a draft stand, and the one that follows them, the same on every device",
    .formula =
        "with weights P = floor(2^40 target_probs), Q = floor(2^40 draft_probs), of numbers bounded to [0, 1]: draft "
        "token "
        "x at place k stands while those before do and floor(u Q[x] / 2^64) < P[x]; the first that does not is "
        "replaced "
        "by one drawn from max(P - Q, 0), or from P if that is 0 everywhere; if all stand one drawn from P follows. u "
        "are words 0 and 1 of Philox4x32-10 with counter (g+1) i + k, of a draw words 2 and 3; a draw is the first "
        "token "
        "whose weight, added to those of smaller tokens, is more than floor(u sum / 2^64)",
    .source = "Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2",
    .tensors = { TENSOR(draft_tokens, IN, "I", "b g", .fill = "places v"),
                 TENSOR(target_probs, IN, "f32", "b g+1 v", .fill = "unit"),
                 TENSOR(draft_probs, IN | OPTIONAL, "f32", "b g v", .fill = "unit"),
                 TENSOR(philox, IN | OPTIONAL, "i64", "2"), TENSOR(accepted, OUT | EXACT, "I", "b"),
                 TENSOR(tokens, OUT | EXACT, "I", "b g+1") },
    .params = { PARAM(seed, U64, .values = "0 42 1234567890123456789", .doc = "key of the generator"),
                PARAM(offset, U64, .values = "0 7 4294967296",
                      .doc = "high half of its counter: another for every call") },
    .types = { "I=i32|i64" },
    .require = { "v >= 1", "v <= 8388608", "philox instead of seed" },
    .flops = "4*b*v",
    .independent = "b",
    .sizes = { "b: 1 0 2 5 33", "g: 4 0 1 2 7", "v: 64 1 2 7 257 1000 4099 9001" },
    .cases = { "llama3: I=i32 b=64 g=4 v=128256 seed=1 +draft_probs",
               "one request: I=i32 b=1 g=7 v=128256 seed=1 +draft_probs", "n-grams: I=i32 b=64 g=4 v=32000 seed=1" },
    .reference = reference,
};
