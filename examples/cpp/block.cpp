/* SPDX-License-Identifier: Apache-2.0 */
/* Part of a transformer block in C++17, checked against plain loops: softmax(swiglu(h gate, h up) down), where h is
 * rms_norm(x). */
#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include <trine/trine.hpp>

namespace {

constexpr int tokens = 5, width = 64, hidden = 160, classes = 10;

struct weights {
    std::vector<float> norm, gate, up, down; // down: as linear layers have it, a row for each output
};

// Numbers in [-1, 1) that are the same everywhere.
std::vector<float> numbers(std::size_t count, unsigned seed) {
    std::vector<float> out(count);
    for (float &number : out) {
        seed = seed * 1664525u + 1013904223u;
        number = static_cast<float>(seed >> 8) / 8388608.0f - 1.0f;
    }
    return out;
}

// On the device of the queue: its memory holds copies of what the ops read.
std::vector<float> by_trine(trine::queue &queue, const std::vector<float> &x, const weights &w) {
    const auto device = [&queue](const std::vector<float> &host) {
        trine::buffer<float> memory(queue, host.size());
        memory.write(host.data());
        return memory;
    };
    const auto dx = device(x), norm = device(w.norm), gate = device(w.gate), up = device(w.up), down = device(w.down);
    trine::buffer<float> h(queue, tokens * width), g(queue, tokens * hidden), u(queue, tokens * hidden);
    trine::buffer<float> p(queue, tokens * classes);
    const trine::view vh(h.data(), { tokens, width });
    const trine::view vg(g.data(), { tokens, hidden }), vu(u.data(), { tokens, hidden });
    const trine::view vp(p.data(), { tokens, classes });

    trine::rms_norm_args normalize;
    normalize.x = trine::view(dx.data(), { tokens, width });
    normalize.weight = norm; // a container of one dimension is a view of one
    normalize.y = vh;
    normalize.eps = 1e-6f;
    trine::rms_norm(queue, normalize);

    const auto product = [&queue](trine::const_view a, trine::const_view b, trine::view d) {
        trine::matmul_args args;
        args.a = a;
        args.b = b;
        args.d = d;
        trine::matmul(queue, args);
    };
    product(vh, trine::view(gate.data(), { width, hidden }), vg);
    product(vh, trine::view(up.data(), { width, hidden }), vu);

    trine::swiglu_args glu;
    glu.gate = vg;
    glu.up = vu;
    glu.y = vg; // in place
    trine::swiglu(queue, glu);

    product(vg, trine::view(down.data(), { classes, hidden }).transposed(), vp);

    trine::softmax_args softmax;
    softmax.x = vp;
    softmax.y = vp;
    trine::softmax(queue, softmax);

    std::vector<float> out(p.size());
    p.read(out.data()); // waits for the queue
    return out;
}

std::vector<double> by_loops(const std::vector<float> &x, const weights &w) {
    std::vector<double> out;
    for (int t = 0; t < tokens; t++) {
        double squares = 0, sum = 0;
        std::vector<double> h(width), a(hidden), p(classes);
        for (int i = 0; i < width; i++) squares += std::pow(x[t * width + i], 2);
        for (int i = 0; i < width; i++) h[i] = x[t * width + i] / std::sqrt(squares / width + 1e-6) * w.norm[i];
        for (int j = 0; j < hidden; j++) {
            double g = 0, u = 0;
            for (int i = 0; i < width; i++) g += h[i] * w.gate[i * hidden + j], u += h[i] * w.up[i * hidden + j];
            a[j] = g / (1 + std::exp(-g)) * u;
        }
        for (int k = 0; k < classes; k++) {
            for (int j = 0; j < hidden; j++) p[k] += a[j] * w.down[k * hidden + j];
            sum += std::exp(p[k]);
        }
        for (int k = 0; k < classes; k++) out.push_back(std::exp(p[k]) / sum);
    }
    return out;
}

} // namespace

int main() try {
    const auto x = numbers(tokens * width, 1);
    weights w{ numbers(width, 2), numbers(width * hidden, 3), numbers(width * hidden, 4),
               numbers(hidden * classes, 5) };
    for (float &number : w.down) number *= 0.01f; // so that no class has all of the probability
    trine::library lib;
    trine::queue queue(lib);
    const auto p = by_trine(queue, x, w);
    const auto expected = by_loops(x, w);
    double worst = 0;
    for (std::size_t i = 0; i < p.size(); i++) worst = std::fmax(worst, std::fabs(p[i] - expected[i]));
    std::printf("%d tokens, %d classes: the largest difference from plain loops is %.1e\n", tokens, classes, worst);
    return worst < 1e-5 ? 0 : 1;
} catch (const std::exception &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
}
