/* SPDX-License-Identifier: Apache-2.0 */
/* Losses. */
#ifndef TRINE_LOSS_H
#define TRINE_LOSS_H

#include <trine/trine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_cross_entropy_args {
    size_t struct_size; /* TRINE_ARGS(cross_entropy) */
    const trine_tensor *logits; /* in r v */
    const trine_tensor *labels; /* in r */
    const trine_tensor *loss; /* out r */
    const trine_tensor *lse; /* out, optional r */
    float label_smoothing; /* 0 <= label_smoothing < 1 */
    float z_loss; /* weight of lse^2, >= 0 */
    float logit_scale; /* 0: 1 */
    int32_t ignore_index_set; /* 1: ignore_index is read; 0: it is -100 */
    int64_t ignore_index; /* rows with this label have loss 0 and gradient 0 */
} trine_cross_entropy_args;

/* Cross-entropy of logits */
TRINE_API trine_status trine_cross_entropy(trine_queue *queue, const trine_cross_entropy_args *args);

typedef struct trine_cross_entropy_backward_args {
    size_t struct_size; /* TRINE_ARGS(cross_entropy_backward) */
    const trine_tensor *logits; /* in r v */
    const trine_tensor *labels; /* in r */
    const trine_tensor *lse; /* in r */
    const trine_tensor *dloss; /* in r */
    const trine_tensor *dlogits; /* out r v; may be logits */
    float label_smoothing; /* 0 <= label_smoothing < 1 */
    float z_loss; /* weight of lse^2, >= 0 */
    float logit_scale; /* 0: 1 */
    int32_t ignore_index_set; /* 1: ignore_index is read; 0: it is -100 */
    int64_t ignore_index; /* rows with this label have loss 0 and gradient 0 */
} trine_cross_entropy_backward_args;

/* Gradient of cross_entropy */
TRINE_API trine_status trine_cross_entropy_backward(trine_queue *queue, const trine_cross_entropy_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
