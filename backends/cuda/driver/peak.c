/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of multiply-adds: which for a type, and their launches. */
#include "peak.h"

#include "state.h"

extern const unsigned char trine_peak_cuda_code[];

/* The fastest first; what an architecture does not have, the code does not have. A warp, or a warpgroup, has so many
 * operations in an instruction. */
static const struct {
    trine_dtype dtype;
    bool cut;
    const char *function, *instruction;
    int threads, count; /* that do one together; of a round */
    double operations;
} loops[] = {
    { TRINE_BF16, false, "peak_wgmma_bf16", "wgmma", 128, PEAK_STEPS, 2.0 * 64 * 256 * 16 },
    { TRINE_F16, false, "peak_wgmma_f16", "wgmma", 128, PEAK_STEPS, 2.0 * 64 * 256 * 16 },
    { TRINE_F32, true, "peak_wgmma_tf32", "wgmma", 128, PEAK_STEPS, 2.0 * 64 * 256 * 8 },
    { TRINE_I8, false, "peak_wgmma_i8", "wgmma", 128, PEAK_STEPS, 2.0 * 64 * 256 * 32 },
    { TRINE_E4M3, false, "peak_wgmma_e4m3", "wgmma", 128, PEAK_STEPS, 2.0 * 64 * 256 * 32 },
    { TRINE_BF16, false, "peak_mma_bf16", "mma.sync", 32, PEAK_CHAINS *PEAK_STEPS, 2.0 * 16 * 8 * 16 },
    { TRINE_F16, false, "peak_mma_f16", "mma.sync", 32, PEAK_CHAINS *PEAK_STEPS, 2.0 * 16 * 8 * 16 },
    { TRINE_F32, true, "peak_mma_tf32", "mma.sync", 32, PEAK_CHAINS *PEAK_STEPS, 2.0 * 16 * 8 * 8 },
    { TRINE_I8, false, "peak_mma_i8", "mma.sync", 32, PEAK_CHAINS *PEAK_STEPS, 2.0 * 16 * 8 * 32 },
    { TRINE_E4M3, false, "peak_mma_f16", "mma.sync on f16", 32, PEAK_CHAINS *PEAK_STEPS, 2.0 * 16 * 8 * 16 },
    { TRINE_F64, false, "peak_mma_f64", "mma.sync", 32, PEAK_CHAINS *PEAK_STEPS, 2.0 * 16 * 8 * 4 },
    { TRINE_F32, false, "peak_fma_float", "fma", 1, PEAK_CHAINS *PEAK_STEPS, 2 },
    { TRINE_F64, false, "peak_fma_double", "fma", 1, PEAK_CHAINS *PEAK_STEPS, 2 },
};

/* The function of the first loop for the type; NULL if there is none. */
static CUfunction find(cuda_device *d, trine_peak *peak, int64_t blocks) {
    CUfunction function = NULL;
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++) {
        if (loops[i].dtype != peak->dtype || loops[i].cut != peak->cut) continue;
        if (d->driver->ModuleGetFunction(&function, d->peaks, loops[i].function) != CUDA_SUCCESS) continue;
        peak->instruction = loops[i].instruction;
        peak->operations = (double)blocks * (PEAK_THREADS / loops[i].threads) * loops[i].count * loops[i].operations *
                           (double)peak->rounds;
        return function;
    }
    return NULL;
}

static trine_status launch(cuda_device *d, const cuda_queue *queue, trine_peak *peak) {
    enum { HELD = 4 }; /* blocks for an SM; of 40 KiB each and 168 registers a thread, 1 runs at a time */
    const int64_t blocks = (int64_t)queue->units * HELD;
    peak_params params = { .rounds = peak->rounds };
    void *arguments[] = { &params };
    if (d->peaks == NULL) {
        const trine_status status = CUDA_CALL(d->driver, ModuleLoadData, &d->peaks, trine_peak_cuda_code);
        if (status != TRINE_OK) return status;
    }
    const CUfunction function = find(d, peak, blocks);
    if (function == NULL)
        return d->driver->error(TRINE_ERR_UNSUPPORTED, "no loop of multiply-adds of %s", trine_dtype_name(peak->dtype));
    return CUDA_CALL(d->driver, LaunchKernel, function, (unsigned)blocks, 1, 1, PEAK_THREADS, 1, 1, PEAK_SHARED,
                     queue->stream, arguments, NULL);
}

trine_status cuda_peak(const trine_device *device, void *queue, trine_peak *peak) {
    cuda_device *d = device->state;
    cuda_scope scope;
    trine_status status = cuda_enter(d, &scope);
    if (status != TRINE_OK) return status;
    pthread_mutex_lock(&d->lock);
    status = launch(d, queue, peak);
    pthread_mutex_unlock(&d->lock);
    cuda_leave(d, scope);
    return status;
}
