/* SPDX-License-Identifier: Apache-2.0 */
/* attention on devices with the same bits as on every other (spec/same.h): a block of 64 threads has the query of one
 * head. Each thread has the scores of every 64th key it sees, which are made twice, and every 64th column of o. */
#include "attention_same.h"
#include "backends/simt/core/same.h"

/* sum q k of one row of each. */
template <class T> DEVICE float attention_same_dot(const typename T::bits *q, const typename T::bits *k, int64_t d) {
    float lane[SAME_DOT_LANES] = {};
    for (int64_t c = 0; c < d; c += SAME_DOT_LANES)
#pragma unroll
        for (int i = 0; i < SAME_DOT_LANES; i++)
            if (c + i < d) lane[i] += product(load_one<T>(q, c + i), load_one<T>(k, c + i));
    static_assert(SAME_DOT_LANES == 16, "eight are added to eight");
#pragma unroll
    for (int i = 0; i < 8; i++) lane[i] += lane[i + 8];
#pragma unroll
    for (int i = 0; i < 4; i++) lane[i] += lane[i + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

template <class T>
DEVICE const typename T::bits *attention_same_at(const attention_same_tensor &t, int64_t b, int64_t token,
                                                 int64_t head) {
    return (const typename T::bits *)t.data + b * t.batch + token * t.token + head * t.head;
}

template <class T> DEVICE void attention_same(const attention_same_params &p) {
    SHARED float power[SAME_CHAIN];
    const int64_t h = block_index() % p.heads, i = block_index() / p.heads % p.sq, b = block_index() / p.heads / p.sq,
                  middle = i + p.sk - p.sq;
    int64_t first = p.before <= middle ? middle - p.before + 1 : 0;
    int64_t last = p.causal ? middle + 1 : p.after < p.sk - middle ? middle + p.after : p.sk;
    if (last > p.sk) last = p.sk;
    const int64_t keys = last > first ? last - first : 0;
    const typename T::bits *q = attention_same_at<T>(p.q, b, i, h),
                           *k = attention_same_at<T>(p.k, b, first, h / p.group),
                           *v = attention_same_at<T>(p.v, b, first, h / p.group);
    typename T::bits *o = (typename T::bits *)attention_same_at<T>(p.o, b, i, h);
    const int thread = thread_index();
    const auto score = [&](int64_t j) { return product(p.scale, attention_same_dot<T>(q, k + j * p.k.token, p.d)); };
    float most = -infinity(), sum = 0;
    for (int64_t j = thread; j < keys; j += SAME_LANES) {
        const float s = score(j);
        most = s > most ? s : most;
    }
    most = same_largest(most);
    if (most == -infinity()) most = 0;
    for (int64_t j = thread; j < keys; j += SAME_LANES) sum += same_exp(score(j) - most);
    sum = same_total(sum);
    for (int64_t at = 0; at < p.d; at += SAME_LANES) {
        const int64_t c = at + thread;
        float total = 0;
        for (int64_t from = 0; from < keys; from += SAME_CHAIN) {
            float run = 0;
            sync_block();
            for (int j = thread; j < SAME_CHAIN && from + j < keys; j += SAME_LANES)
                power[j] = same_exp(score(from + j) - most);
            sync_block();
            if (c < p.d)
                for (int j = 0; j < SAME_CHAIN && from + j < keys; j++)
                    run += product(power[j], load_one<T>(v, (from + j) * p.v.token + c));
            total += run;
        }
        if (c < p.d) store_one<T>(o, c, sum == 0 ? 0.0f : total / sum);
    }
    if (thread == 0 && p.lse.data)
        ((float *)p.lse.data)[b * p.lse.batch + h * p.lse.head + i * p.lse.token] = sum > 0    ? most + same_log(sum)
                                                                                    : sum == 0 ? -infinity()
                                                                                               : sum;
}

#define ATTENTION_SAME(T) \
    ENTRY(attention_same_##T, SAME_LANES, attention_same_params) { attention_same<T>(p); }
ATTENTION_SAME(f32)
ATTENTION_SAME(bf16)
ATTENTION_SAME(f16)
