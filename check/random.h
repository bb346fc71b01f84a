/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that are the same everywhere: SplitMix64 (Steele, Lea and Flood 2014). */
#ifndef TRINE_CHECK_RANDOM_H
#define TRINE_CHECK_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct random_state {
    uint64_t state;
} random_state;

static inline uint64_t random_next(random_state *r) {
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A generator for one case of one op: the same whatever other ops and cases there are. */
static inline random_state random_of(uint64_t seed, const char *name, int64_t index) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    random_state r = { seed ^ hash };
    r.state = random_next(&r) + (uint64_t)index;
    r.state = random_next(&r);
    return r;
}

/* In [0, n); n > 0. */
static inline int64_t random_below(random_state *r, int64_t n) { return (int64_t)(random_next(r) % (uint64_t)n); }

/* In [0, 1). */
static inline double random_unit(random_state *r) { return (double)(random_next(r) >> 11) * 0x1p-53; }

/* In [low, high). */
static inline double random_between(random_state *r, double low, double high) {
    return low + (high - low) * random_unit(r);
}

static inline bool random_chance(random_state *r, int of) { return random_below(r, of) == 0; }

#endif
