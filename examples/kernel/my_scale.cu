// SPDX-License-Identifier: Apache-2.0
// The device code of my_scale_cuda.
#include "my_scale.h"

extern "C" __global__ void my_scale(const __grid_constant__ my_scale_params p) {
    const int64_t count = p.size[0] * p.size[1] * p.size[2] * p.size[3];
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x) {
        int64_t rest = i, from = 0, to = 0;
        for (int k = 3; k >= 0; k--) {
            const int64_t at = rest % p.size[k];
            rest /= p.size[k];
            from += at * p.x_stride[k];
            to += at * p.y_stride[k];
        }
        p.y[to] = p.alpha * p.x[from] + p.shift;
    }
}
