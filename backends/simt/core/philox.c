/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout's parameters as device code takes them: the keys of Philox's rounds, the threshold and the scale. */
#include "host.h"

simt_dropout simt_dropout_of(float p, uint64_t seed, uint64_t offset) {
    simt_dropout d = {
        .offset = { (uint32_t)offset, (uint32_t)(offset >> 32) },
        .last = (uint32_t)(trine_dropout_threshold(p) - 1), /* of p < 1, so that the threshold is in [2^8, 2^32] */
        .scale = trine_dropout_scale(p),
        .p = p,
    };
    for (uint32_t round = 0; round < SIMT_PHILOX_ROUNDS; round++) {
        d.key[round][0] = (uint32_t)seed + round * SIMT_PHILOX_KEY_0;
        d.key[round][1] = (uint32_t)(seed >> 32) + round * SIMT_PHILOX_KEY_1;
    }
    return d;
}
