/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers. Blackman and Vigna 2021. */
#include "random.h"

void gpt_random_seed(gpt_random *random, uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        random->state[i] = z ^ (z >> 31);
    }
}

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

uint64_t gpt_random_next(gpt_random *random) {
    uint64_t *s = random->state;
    const uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

double gpt_random_uniform(gpt_random *random) { return (double)(gpt_random_next(random) >> 11) * 0x1p-53; }
