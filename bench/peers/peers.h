/* SPDX-License-Identifier: Apache-2.0 */
/* What a peer library offers the comparison. */
#ifndef TRINE_PEERS_H
#define TRINE_PEERS_H

#include "spec/case.h"

typedef struct peer {
    const char *name;
    const char *device; /* of trine's, up to a colon, on whose memory it works */
    /* Prepares the library for a case; NULL if it has nothing that does the same work. */
    void *(*open)(const trine_case *c, int threads);
    bool (*call)(void *state, const trine_case *set); /* runs it on a set of tensors */
    void (*close)(void *state);
    bool (*finish)(void *state); /* waits for its calls; NULL: they are done when they return */
} peer;

extern const peer peer_openblas, peer_onednn, peer_cublaslt, peer_cudnn;

/* What launching a function that does nothing on the first CUDA device costs the host;
 * negative if it cannot be told. */
double peer_launch_nanoseconds(void);

/* Whether all parameters have been left alone but those of the list "alpha beta", and no optional tensor is given but
 * those of "bias". */
bool peer_plain(const trine_case *c, const char *params, const char *tensors);

#endif
