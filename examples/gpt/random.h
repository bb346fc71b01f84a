/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that are the same on every machine. */
#ifndef GPT_RANDOM_H
#define GPT_RANDOM_H

#include <stdint.h>

/* xoshiro256**, seeded by splitmix64. */
typedef struct gpt_random {
    uint64_t state[4];
} gpt_random;

void gpt_random_seed(gpt_random *random, uint64_t seed);
uint64_t gpt_random_next(gpt_random *random);
double gpt_random_uniform(gpt_random *random); /* in [0, 1) */

#endif
