/* SPDX-License-Identifier: Apache-2.0 */
/* What the blocks of a cluster send each other (PTX ISA 9.0, st.async): 16 bytes into another's shared memory, which count for a barrier there. */
#ifndef TRINE_TILE_MAIL_H
#define TRINE_TILE_MAIL_H

#include "hopper.h"

DEVICE void cluster_send(uint32_t cluster_address, const packed<uint32_t, 4> &x, uint32_t cluster_barrier) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(cluster_address), "r"(x.v[0]),
                 "r"(x.v[1]), "r"(x.v[2]), "r"(x.v[3]), "r"(cluster_barrier)
                 : "memory");
}

#endif
