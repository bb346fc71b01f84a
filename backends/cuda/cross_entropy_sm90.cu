/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy with its gradient on sm_90a: rows in parts in the shared memory of a cluster. */
#include <tile/mail.h>

#include "cross_entropy_parts.h"

/* The blocks of a cluster send each other their parts' sums. */
struct cluster_blocks {
    static constexpr int MOST = 8;
    struct mail {
        packed<uint32_t, 4> sums[MOST];
        uint64_t come;
    };

    static DEVICE int size() { return cluster_size(); }
    static DEVICE int rank() { return cluster_rank(); }
    static DEVICE mail &box() {
        SHARED mail m;
        return m;
    }

    /* A block's barrier is there before others send. */
    static DEVICE void begin() {
        if (thread_index() == 0) {
            const uint32_t come = shared_address(&box().come);
            barrier_init(come, 1);
            barriers_made();
            barrier_expect(come, size() * 16);
        }
        cluster_meet();
    }

    static DEVICE logit_sums all(const logit_sums &s) {
        const int thread = thread_index(), other = thread % MOST;
        const uint32_t come = shared_address(&box().come);
        if (thread < size())
            cluster_send(cluster_address(shared_address(&box().sums[rank()]), thread),
                         { { bits_of_float(s.origin), bits_of_float(s.sum), bits_of_float(s.total), 0 } }, cluster_address(come, thread));
        barrier_wait(come, 0);
        logit_sums their = { -f32::largest(), 0, 0 };
        if (other < size()) {
            const packed<uint32_t, 4> x = box().sums[other];
            their = { float_of_bits(x.v[0]), float_of_bits(x.v[1]), float_of_bits(x.v[2]) };
        }
        const float origin = group_max<MOST>(their.origin);
        const two sums = group_sum<MOST>(two{ moved_sum(their, origin), their.total });
        return { origin, sums.a, sums.b };
    }
};

#define CROSS_ENTROPY_PARTS(T, HELD) \
    ENTRY_HELD(cross_entropy_parts_##T##_##HELD, CROSS_ENTROPY_THREADS, HELD, cross_entropy_parts_params) { cross_entropy_parts<T, true, cluster_blocks>(p); } \
    ENTRY_HELD(cross_entropy_parts_ragged_##T##_##HELD, CROSS_ENTROPY_THREADS, HELD, cross_entropy_parts_params) { \
        cross_entropy_parts<T, false, cluster_blocks>(p); \
    }
CROSS_ENTROPY_PARTS(f32, 3)
CROSS_ENTROPY_PARTS(bf16, 3)
CROSS_ENTROPY_PARTS(f16, 3)
