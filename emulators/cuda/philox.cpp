/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout's words on devices, for tests/philox.c: each way in which kernels ask for them. */
#include "backends/simt/core/philox.h"

extern "C" {
typedef void philox_device(const simt_dropout *d, uint64_t first, int count, bool *keep_out);
philox_device philox_device_kept, philox_device_aligned, philox_device_left, philox_device_halves, philox_device_mask;
}

enum { N = 8 };

static void keep_bits(uint32_t bits, int count, bool *keep_out) {
    for (int k = 0; k < count; k++) keep_out[k] = bits >> k & 1;
}

void philox_device_kept(const simt_dropout *d, uint64_t first, int count, bool *keep_out) {
    for (int i = 0; i < count; i += N) keep_bits(kept<N>(*d, first + (uint64_t)i), N, keep_out + i);
}
void philox_device_aligned(const simt_dropout *d, uint64_t first, int count, bool *keep_out) {
    for (int i = 0; i < count; i += N / 2) keep_bits(kept<N / 2, true>(*d, first + (uint64_t)i), N / 2, keep_out + i);
}

/* As the norms do: by the run's words where they are alike. */
template <int M> static void left(const simt_dropout *d, uint64_t first, int count, bool *keep_out) {
    const dropout_words words((int64_t)first, (uint32_t)count);
    for (int i = 0; i < count; i += M) {
        float x[M];
        for (float &one : x) one = 1;
        if (words.alike) dropout_left(x, *d, words, (uint32_t)i);
        const uint32_t bits = kept<M, true>(*d, first + (uint64_t)i);
        for (int k = 0; k < M; k++) keep_out[i + k] = words.alike ? x[k] != 0 : (bits >> k & 1) != 0;
    }
}
void philox_device_left(const simt_dropout *d, uint64_t first, int count, bool *keep_out) {
    left<N>(d, first, count, keep_out);
}
void philox_device_halves(const simt_dropout *d, uint64_t first, int count, bool *keep_out) {
    left<N / 2>(d, first, count, keep_out);
}

void philox_device_mask(const simt_dropout *d, uint64_t first, int count, bool *keep_out) {
    const dropout_words words((int64_t)first, (uint32_t)count);
    for (int i = 0; i < count; i += N) {
        if (!words.alike) {
            keep_bits(kept<N, true>(*d, first + (uint64_t)i), N, keep_out + i);
            continue;
        }
        const auto mask = dropout_mask<bf16, N>(*d, words, (uint32_t)i);
        for (int k = 0; k < N; k++) keep_out[i + k] = (mask.word[k / 2] >> 16 * (k % 2) & 0xffff) == 0xffff;
    }
}
