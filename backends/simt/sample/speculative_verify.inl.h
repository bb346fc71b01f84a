/* SPDX-License-Identifier: Apache-2.0 */
/* speculative_verify on devices. A block has a request: its threads look at a draft token each, then they draw from the
 * place of the first that does not stand. Probabilities become whole numbers as they are read. */
#include "draw.inl.h"
#include "speculative_verify.h"

/* Of a probability, bounded to [0, 1]; NaN is 0. */
DEVICE uint64_t verify_weight(float p) { return p > 0 ? (uint64_t)(int64_t)product(p < 1 ? p : 1.0f, 0x1p40f) : 0; }

struct verify_place {
    const float *target, *draft; /* draft: NULL if there is none */
    int64_t token;               /* which has all of the draft's weight then; -1: it has none */

    DEVICE uint64_t draft_weight(int64_t j) const {
        return draft ? verify_weight(draft[j]) : token == j ? (uint64_t)1 << 40 : 0;
    }
    DEVICE uint64_t left(int64_t j) const {
        const uint64_t a = verify_weight(target[j]), b = draft_weight(j);
        return a > b ? a - b : 0;
    }
};

DEVICE verify_place verify_at(const speculative_verify_params &p, int64_t k) {
    const int64_t i = block_index();
    const float *target = (const float *)p.target.data + i * p.target.batch + k * p.target.row;
    if (k == p.g) return { target, nullptr, -1 };
    const float *draft = p.draft.data ? (const float *)p.draft.data + i * p.draft.batch + k * p.draft.row : nullptr;
    return { target, draft, load_integer(p.proposed, p.wide, i * p.proposed_row + k) };
}

DEVICE bool verify_stands(const speculative_verify_params &p, int64_t k) {
    const verify_place place = verify_at(p, k);
    const int64_t token = place.token;
    if (token < 0 || token >= p.v) return false;
    const uint64_t random = random_of(p.key, (uint64_t)block_index() * (uint64_t)(p.g + 1) + (uint64_t)k, 0);
    return place_of(random, place.draft_weight(token)) < verify_weight(place.target[token]);
}

struct verify_first {
    DEVICE int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};

ENTRY(speculative_verify, DRAW_THREADS, speculative_verify_params) {
    const int64_t i = block_index(), thread = thread_index();
    int64_t count = p.g;
    for (int64_t k = thread; k < count; k += DRAW_THREADS)
        if (!verify_stands(p, k)) count = k;
    count = group_combine<DRAW_THREADS>(count, verify_first());
    const uint64_t random = random_of(p.key, (uint64_t)i * (uint64_t)(p.g + 1) + (uint64_t)count, 2);
    verify_place place = verify_at(p, count);
    drawn token = draw(p.v, random, [&](int64_t j) { return place.left(j); });
    if (token.at < 0) {
        place = { place.target, nullptr, -1 };
        token = draw(p.v, random, [&](int64_t j) { return place.left(j); });
    }
    for (int64_t k = thread; k <= p.g; k += DRAW_THREADS) {
        const int64_t one = k < count ? verify_at(p, k).token : k == count ? token.at : -1;
        put_integer(p.tokens, p.wide, i * p.tokens_row + k, one);
    }
    if (thread == 0) put_integer(p.accepted, p.wide, i, count);
}
