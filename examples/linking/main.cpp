/* SPDX-License-Identifier: Apache-2.0 */
/* A C++17 program that uses an installed trine: a matrix product through RAII handles. */
#include <cstdio>
#include <memory>
#include <vector>

#include <trine/trine.h>

int main() {
    trine_library *lib = nullptr;
    trine_queue *queue = nullptr;
    if (trine_open(nullptr, &lib) != TRINE_OK || trine_queue_open(lib, 0, nullptr, &queue) != TRINE_OK) {
        std::fprintf(stderr, "%s\n", trine_error_message());
        return 1;
    }
    const std::unique_ptr<trine_library, void (*)(trine_library *)> own_lib(lib, trine_close);
    const std::unique_ptr<trine_queue, void (*)(trine_queue *)> own_queue(queue, trine_queue_close);

    std::vector<float> a = { 1, 2, 3, 4 }, b = { 5, 6, 7, 8 }, d(4);
    const trine_tensor ta = trine_tensor_2d(a.data(), TRINE_F32, 2, 2), tb = trine_tensor_2d(b.data(), TRINE_F32, 2, 2);
    const trine_tensor td = trine_tensor_2d(d.data(), TRINE_F32, 2, 2);
    trine_matmul_args args{};
    args.struct_size = sizeof args;
    args.a = &ta;
    args.b = &tb;
    args.d = &td;
    if (trine_matmul(own_queue.get(), &args) != TRINE_OK) {
        std::fprintf(stderr, "%s\n", trine_error_message());
        return 1;
    }
    std::printf("matmul = [%g %g; %g %g]\n", d[0], d[1], d[2], d[3]);
    return d == std::vector<float>{ 19, 22, 43, 50 } ? 0 : 1;
}
