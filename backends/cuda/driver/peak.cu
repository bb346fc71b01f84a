/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of multiply-adds of zeros, operands in registers or, for warpgroups, in shared memory: what the units do at
 * best. */
#include "peak.h"

#include "backends/cuda/tile/mma.h"

template <class Sum, int N> DEVICE void peak_keep(const peak_params &p, const Sum (&sum)[N]) {
    Sum all = 0;
    if (p.sums == nullptr) return;
#pragma unroll
    for (int i = 0; i < N; i++) all += sum[i];
    p.sums[thread_index()] += (double)all;
}

#define FMA(type, c, instruction) \
    ENTRY(peak_fma_##type, PEAK_THREADS, peak_params) { \
        type x[PEAK_CHAINS]; \
        for (int i = 0; i < PEAK_CHAINS; i++) x[i] = (type)(p.zero * (i + 1)); \
        for (int64_t r = 0; r < p.rounds; r++) _Pragma("unroll") \
        for (int i = 0; i < PEAK_CHAINS * PEAK_STEPS; i++) \
            asm volatile(instruction " %0, %0, %0, %0;" : "+" c(x[i % PEAK_CHAINS])); \
        peak_keep(p, x); \
    }
FMA(float, "f", "fma.rn.f32")
FMA(double, "d", "fma.rn.f64")

#define MMA(T, SUM, name) \
    ENTRY(peak_mma_##name, PEAK_THREADS, peak_params) { \
        SUM sum[PEAK_CHAINS][4]; \
        for (int i = 0; i < PEAK_CHAINS * 4; i++) sum[i / 4][i % 4] = (SUM)(p.zero * (i + 1)); \
        const uint32_t a[4] = { p.zero, p.zero, p.zero, p.zero }; \
        for (int64_t r = 0; r < p.rounds; r++) _Pragma("unroll") \
        for (int i = 0; i < PEAK_CHAINS * PEAK_STEPS; i++) \
            warp_multiply(T{}, sum[i % PEAK_CHAINS], a, p.zero, p.zero); \
        for (int i = 0; i < PEAK_CHAINS; i++) peak_keep(p, sum[i]); \
    }
MMA(bf16, float, bf16)
MMA(f16, float, f16)
MMA(tf32, float, tf32)
MMA(int8_t, int32_t, i8)

ENTRY(peak_mma_f64, PEAK_THREADS, peak_params) {
    double sum[PEAK_CHAINS][4];
    for (int i = 0; i < PEAK_CHAINS * 4; i++) sum[i / 4][i % 4] = p.zero * (i + 1);
    const double zero = p.zero, a[2] = { zero, zero };
    for (int64_t r = 0; r < p.rounds; r++)
#pragma unroll
        for (int i = 0; i < PEAK_CHAINS * PEAK_STEPS; i++) warp_multiply(sum[i % PEAK_CHAINS], a, zero);
    for (int i = 0; i < PEAK_CHAINS; i++) peak_keep(p, sum[i]);
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "backends/cuda/tile/hopper.h"

/* Each warpgroup multiplies the same 64 rows by 256 columns. */
template <class T> DEVICE void peak_wgmma(const peak_params &p) {
    const uint32_t memory = shared_address(launch_memory());
    for (int i = thread_index(); i < PEAK_SHARED / 4; i += PEAK_THREADS) shared_store(memory + 4 * i, p.zero);
    copies_see();
    sync_block();
    typename wgmma<T, 256, false, false>::sum sum[128] = {};
    const uint64_t left = wgmma_operand(memory, 0), right = wgmma_operand(memory + 64 * 128, 0);
#pragma unroll 1
    for (int64_t r = 0; r < p.rounds; r++) {
        wgmma_begin();
#pragma unroll
        for (int i = 0; i < PEAK_STEPS; i++) wgmma<T, 256, false, false>::multiply(sum, left + i * 2, right + i * 2, 1);
        wgmma_commit();
        wgmma_wait<0>();
        wgmma_settle(sum);
    }
    peak_keep(p, sum);
}
#define WGMMA(T, name) \
    ENTRY(peak_wgmma_##name, PEAK_THREADS, peak_params) { peak_wgmma<T>(p); }
WGMMA(bf16, bf16)
WGMMA(f16, f16)
WGMMA(tf32, tf32)
WGMMA(int8_t, i8)
WGMMA(e4m3_e4m3, e4m3)
#endif
