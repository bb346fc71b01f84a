/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout's masks of elements about 2^35 and its multiples, where the upper half of a block's number changes: only
 * tensors of so many elements get there, and the agreement suite draws none. Compiled once per level of the CPU with
 * -DLEVEL=<level>, and once without, which gives the tests. */
#include <stdbool.h>
#include <stdint.h>

/* Are the `count` elements from `first` on kept? `first` is a multiple of 4 or 8 or need not be, as the function is. */
typedef void philox_run(float p, uint64_t seed, uint64_t offset, uint64_t first, int count, bool *keep_out);
enum { RUN = 512 };

#ifdef LEVEL

#include "backends/cpu/core/philox.h"

#define NAME_(level) philox_##level
#define NAME(level) NAME_(level)
extern philox_run NAME(LEVEL);
void NAME(LEVEL)(float p, uint64_t seed, uint64_t offset, uint64_t first, int count, bool *keep_out) {
    const dropout d = dropout_of(p, seed, offset);
    int32_t buffer[DROPOUT_BUFFER];
    const int32_t *keep = dropout_run(&d, first, count, buffer);
    for (int i = 0; i < count; i++) keep_out[i] = keep[i] != 0;
}

#else

#include <criterion/criterion.h>
#include <inttypes.h>

#include "spec/spec.h"

extern philox_run philox_baseline, philox_v3;

static void check(philox_run *run, int step) {
    static const uint64_t carries[] = { UINT64_C(1) << 35, UINT64_C(3) << 35, UINT64_C(1) << 62 };
    static const int counts[] = { 8, 64, RUN };
    const float p = 0.5f;
    const uint64_t seed = UINT64_C(1234567890123456789), offset = UINT64_C(12884901893);
    for (size_t c = 0; c < sizeof carries / sizeof carries[0]; c++)
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++)
            for (int before = 0; before <= counts[k] + step; before += step) {
                const uint64_t first = carries[c] - (uint64_t)before;
                bool keep[RUN];
                run(p, seed, offset, first, counts[k], keep);
                for (int i = 0; i < counts[k]; i++)
                    cr_assert_eq(keep[i], trine_dropout_keep(seed, offset, first + (uint64_t)i, p),
                                 "element %" PRIu64 " of a run of %d from %" PRIu64 " on", first + (uint64_t)i,
                                 counts[k], first);
            }
}

TestSuite(philox, .timeout = 60);

Test(philox, baseline) { check(philox_baseline, 1); }

#ifdef HAVE_V3
Test(philox, v3) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) cr_skip("this CPU lacks AVX2 or FMA");
    check(philox_v3, 1);
}
#endif

#ifdef HAVE_DEVICE

#include "backends/simt/core/host.h"

/* Device code on the host (stubs/philox.cpp), by parameters that the backends' hosts make. */
typedef void philox_device(const simt_dropout *d, uint64_t first, int count, bool *keep_out);
extern philox_device philox_device_kept, philox_device_aligned, philox_device_left, philox_device_halves,
    philox_device_mask;

#define DEVICE(name, step) \
    static void run_##name(float p, uint64_t seed, uint64_t offset, uint64_t first, int count, bool *keep_out) { \
        const simt_dropout d = simt_dropout_of(p, seed, offset); \
        philox_device_##name(&d, first, count, keep_out); \
    } \
    Test(philox, device_##name) { check(run_##name, step); }
DEVICE(kept, 1)
DEVICE(aligned, 4)
DEVICE(left, 8)
DEVICE(halves, 4)
DEVICE(mask, 8)

#endif

#endif
