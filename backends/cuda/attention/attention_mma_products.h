/* SPDX-License-Identifier: Apache-2.0 */
/* Products by mma.sync of operands in shared memory, with room between them for what other units do. */
#ifndef TRINE_CUDA_ATTENTION_MMA_PRODUCTS_H
#define TRINE_CUDA_ATTENTION_MMA_PRODUCTS_H

#include "attention_mma.h"

/* LANES lanes of 16 elements along which products are summed, from `lane` on, in panels of ROWS rows. */
template <int ROWS, bool ACROSS, int LANES> struct attention_operand {
    attention_view<ROWS, ACROSS> view;

    DEVICE attention_operand(bool is_left, int lane) : view(is_left, ACROSS ? 0 : lane, ACROSS ? lane : 0) {}
    DEVICE void read(uint32_t (&r)[LANES / 16][4], const char *from, int step) const {
#pragma unroll
        for (int i = 0; i < LANES / 16; i++) view.load(r[i], from, (ACROSS ? step : i) * 16, (ACROSS ? i : step) * 16);
    }
};

struct attention_nothing {
    DEVICE void operator()(int) const {}
};

/* sum += a b over 16 STEPS elements, which are read one step ahead. meanwhile(i) is done behind product i of STEPS M N
 * / 8. */
template <class T, int STEPS, int A_ROWS, int B_ROWS, bool A_ACROSS, bool B_ACROSS, int M, int N,
          class Meanwhile = attention_nothing>
DEVICE void attention_mma_add(float (&sum)[M][N], const attention_operand<A_ROWS, A_ACROSS, M * 16> &left,
                              const char *a, const attention_operand<B_ROWS, B_ACROSS, N * 2> &right, const char *b,
                              const Meanwhile &meanwhile = Meanwhile()) {
    uint32_t x[2][M][4], y[2][N / 8][4];
    left.read(x[0], a, 0), right.read(y[0], b, 0);
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        if (step + 1 < STEPS) left.read(x[(step + 1) % 2], a, step + 1), right.read(y[(step + 1) % 2], b, step + 1);
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < N / 8; n++) {
                attention_multiply<T>(sum[m] + n * 8, x[step % 2][m], y[step % 2][n]);
                meanwhile((step * M + m) * (N / 8) + n);
            }
    }
}

/* Part i of STEPS of a loop over all of M N sums. */
template <int STEPS, int M, int N, class Op> DEVICE void attention_mma_share(int i, Op op) {
#pragma unroll
    for (int e = i * M * N / STEPS; e < (i + 1) * M * N / STEPS; e++) op(e / N, e % N);
}

#endif
