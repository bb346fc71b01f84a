/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout's words on devices, for tests/philox.c: each way in which kernels ask for them. */
#include "backends/simt/philox.h"

extern "C" {
uint64_t trine_dropout_threshold(float p);
typedef void philox_run(float p, uint64_t seed, uint64_t offset, uint64_t first, int count, bool *keep_out);
philox_run philox_device_kept, philox_device_left, philox_device_mask;
}

enum { N = 8 };

static simt_dropout dropout_of(float p, uint64_t seed, uint64_t offset) {
    simt_dropout d = {};
    for (uint32_t round = 0; round < SIMT_PHILOX_ROUNDS; round++) {
        d.key[round][0] = (uint32_t)seed + round * 0x9e3779b9u;
        d.key[round][1] = (uint32_t)(seed >> 32) + round * 0xbb67ae85u;
    }
    d.offset[0] = (uint32_t)offset, d.offset[1] = (uint32_t)(offset >> 32);
    d.last = (uint32_t)(trine_dropout_threshold(p) - 1);
    return d;
}

static void keep_bits(uint32_t bits, bool *keep_out) {
    for (int k = 0; k < N; k++) keep_out[k] = bits >> k & 1;
}

void philox_device_kept(float p, uint64_t seed, uint64_t offset, uint64_t first, int count, bool *keep_out) {
    const simt_dropout d = dropout_of(p, seed, offset);
    for (int i = 0; i < count; i += N) keep_bits(kept<N>(d, first + (uint64_t)i), keep_out + i);
}

/* As the norms do: by the run's words where they are alike. */
void philox_device_left(float p, uint64_t seed, uint64_t offset, uint64_t first, int count, bool *keep_out) {
    const simt_dropout d = dropout_of(p, seed, offset);
    const dropout_words words((int64_t)first, (uint32_t)count);
    for (int i = 0; i < count; i += N) {
        float x[N] = { 1, 1, 1, 1, 1, 1, 1, 1 };
        if (words.alike) dropout_left(x, d, words, (uint32_t)i);
        const uint32_t bits = kept<N, true>(d, first + (uint64_t)i);
        for (int k = 0; k < N; k++) keep_out[i + k] = words.alike ? x[k] != 0 : (bits >> k & 1) != 0;
    }
}

void philox_device_mask(float p, uint64_t seed, uint64_t offset, uint64_t first, int count, bool *keep_out) {
    const simt_dropout d = dropout_of(p, seed, offset);
    const dropout_words words((int64_t)first, (uint32_t)count);
    for (int i = 0; i < count; i += N) {
        if (!words.alike) {
            keep_bits(kept<N, true>(d, first + (uint64_t)i), keep_out + i);
            continue;
        }
        const auto mask = dropout_mask<bf16, N>(d, words, (uint32_t)i);
        for (int k = 0; k < N; k++) keep_out[i + k] = (mask.word[k / 2] >> 16 * (k % 2) & 0xffff) == 0xffff;
    }
}
