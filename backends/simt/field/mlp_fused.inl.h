/* SPDX-License-Identifier: Apache-2.0 */
/* mlp_fused on devices.
 *
 * NOTES. Floor: x once and y once, but the multiply-adds of all layers take longer; weights come from L1 and L2, once a
 * block for each of its tile's rows of four. */
#include "mlp.inl.h"

template <class T, int W> DEVICE void mlp_fused(const mlp_params &p) {
    using shape = mlp_shape<W>;
    alignas(16) SHARED float held[2][W * shape::COLUMN];
    const int64_t first = block_index() * shape::ROWS;
    const float *bias = p.copy + mlp_layers(p) * (int64_t)W * W;
    mlp_load<T, W>(p, p.x, 0, first, p.k, held[0]);
    sync_block();
    for (int layer = 0; layer < mlp_layers(p); layer++) {
        const bool output = layer == mlp_layers(p) - 1;
        float *const to = held[(layer + 1) % 2];
        mlp_square<W> square;
        square.begin(bias + layer * W);
        square.add(held[layer % 2], p.copy + layer * (int64_t)W * W, mlp_inputs(p, layer));
        const int32_t kind = output ? p.output : p.activation;
#pragma unroll
        for (int j = 0; j < MLP_SIDE; j++)
#pragma unroll
            for (int i = 0; i < MLP_SIDE; i++) square.sum[j][i] = rounded<T>(mlp_activate(square.sum[j][i], kind));
        square.put(to);
        sync_block();
        if (output)
            mlp_save<T, W>(p, to, p.y, 0, first, p.o);
        else if (p.hidden.data)
            mlp_save<T, W>(p, to, p.hidden, layer, first, p.h);
    }
}

#define MLP_FUSED(T, W) \
    ENTRY(mlp_fused_##T##_##W, SIMT_THREADS, mlp_params) { mlp_fused<T, W>(p); }
#define MLP_FUSED_ALL(T) \
    ENTRY(mlp_fused_copy_##T, SIMT_THREADS, mlp_params) { mlp_copy<T>(p); } \
    MLP_WIDTHS(MLP_FUSED, T)
MLP_FUSED_ALL(f32)
MLP_FUSED_ALL(bf16)
MLP_FUSED_ALL(f16)
