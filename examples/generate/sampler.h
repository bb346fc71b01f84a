/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a token from logits. */
#ifndef GENERATE_SAMPLER_H
#define GENERATE_SAMPLER_H

#include <stdint.h>

#include "examples/gpt/random.h"

enum { SAMPLER_MOST = 1024 };

typedef struct sampler {
    double temperature; /* 0: the largest logit is taken */
    int top_k;          /* only the top_k largest are drawn from, at most SAMPLER_MOST */
    gpt_random random;
} sampler;

/* The smaller number among equals. -1 where no logit is a number. */
int32_t sampler_pick(sampler *s, const float *logits, int32_t count);

#endif
