/* SPDX-License-Identifier: Apache-2.0 */
/* trine.hpp: views, handles, errors and calls. It is built as C++17 and C++20, with exceptions and without them. */
#include <array>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

#include <trine/trine.hpp>

#include "tests/tap.h"

namespace {

// As std::mdspan of C++23, of two dimensions.
template <class T> struct grid {
    T *data;
    long rows, columns, row_step, column_step;
    static constexpr std::size_t rank() { return 2; }
    T *data_handle() const { return data; }
    long extent(std::size_t i) const { return i ? columns : rows; }
    long stride(std::size_t i) const { return i ? column_step : row_step; }
};

// A type of ours for bf16, which says so.
struct half_of_float {
    std::uint16_t bits;
};

} // namespace

template <> struct trine::dtype_of<half_of_float> : trine::dtype_constant<trine::dtype::bf16> {};

namespace {

using floats = std::vector<float>;

static_assert(!std::is_copy_constructible_v<trine::library> && std::is_nothrow_move_constructible_v<trine::library>);
static_assert(!std::is_copy_assignable_v<trine::queue> && std::is_nothrow_move_assignable_v<trine::queue>);
static_assert(!std::is_copy_constructible_v<trine::buffer<float>> &&
              std::is_move_constructible_v<trine::buffer<float>>);
// What is const can be read, not written.
static_assert(std::is_convertible_v<const floats &, trine::const_view>);
static_assert(std::is_convertible_v<floats &, trine::view> && !std::is_convertible_v<const floats &, trine::view>);
static_assert(std::is_convertible_v<float (&)[2][3], trine::view>);
static_assert(!std::is_convertible_v<const float (&)[2][3], trine::view>);
static_assert(std::is_convertible_v<const float (&)[2][3], trine::const_view>);
static_assert(std::is_convertible_v<grid<float>, trine::view> &&
              !std::is_convertible_v<grid<const float>, trine::view>);
static_assert(std::is_convertible_v<grid<const float>, trine::const_view>);
static_assert(std::is_convertible_v<trine::view, trine::const_view>);
static_assert(!std::is_convertible_v<trine::const_view, trine::view>);
static_assert(!std::is_constructible_v<trine::view, const float *, trine::extents>);
// What is no element type makes no view.
static_assert(!std::is_convertible_v<std::vector<char *> &, trine::view>);
static_assert(!std::is_constructible_v<trine::const_view, const bool *, trine::extents>);
static_assert(trine::dtype_of<double>::value == trine::dtype::f64 && trine::dtype_of<int>::value == trine::dtype::i32);
static_assert(trine::dtype_of<long>::value == trine::dtype::i64 &&
              trine::dtype_of<long long>::value == trine::dtype::i64);
static_assert(trine::dtype_of<std::int8_t>::value == trine::dtype::i8);

bool is(const trine::const_view &v, const void *data, trine::dtype type, const std::vector<long> &shape,
        const std::vector<long> &stride) {
    bool good = v && v.data() == data && v.type() == type && v.rank() == static_cast<int>(shape.size());
    for (int i = 0; good && i < v.rank(); i++)
        good = v.extent(i) == shape[static_cast<std::size_t>(i)] && v.stride(i) == stride[static_cast<std::size_t>(i)];
    return good;
}

void views() {
    using trine::dtype;
    float x[2][3] = {};
    const std::array<double, 4> fixed{};
    floats v(6);
    half_of_float h[5] = {};
    unsigned char bytes[6] = {};
    const long rows = 2;
    const std::size_t columns = 3;
    tap(is({ v.data(), { rows, columns } }, v.data(), dtype::f32, { 2, 3 }, { 3, 1 }), "a pointer and a shape");
    tap(is({ v.data(), 6 }, v.data(), dtype::f32, { 6 }, { 1 }), "one dimension needs no braces");
    tap(is({ v.data(), { 2, 2 }, { 3, 1 } }, v.data(), dtype::f32, { 2, 2 }, { 3, 1 }), "strides");
    tap(is({ v.data(), std::vector<int>{ 3, 2 } }, v.data(), dtype::f32, { 3, 2 }, { 2, 1 }), "a shape in a container");
    tap(is({ v.data(), { 0, 3, 1 } }, v.data(), dtype::f32, { 0, 3, 1 }, { 3, 1, 1 }), "a dimension of length 0");
    tap(is({ v.data(), {} }, v.data(), dtype::f32, {}, {}), "a scalar");
    tap(is(v, v.data(), dtype::f32, { 6 }, { 1 }), "a vector");
    tap(is(fixed, fixed.data(), dtype::f64, { 4 }, { 1 }), "a constant std::array");
    tap(is(x, x, dtype::f32, { 2, 3 }, { 3, 1 }), "an array");
    tap(is(h, h, dtype::bf16, { 5 }, { 1 }), "a type that says what it is");
    tap(is({ bytes, dtype::e4m3, { 2, 3 } }, bytes, dtype::e4m3, { 2, 3 }, { 3, 1 }), "a type that C++ has not");
    tap(is(grid<float>{ v.data(), 2, 2, 1, 3 }, v.data(), dtype::f32, { 2, 2 }, { 1, 3 }), "an mdspan");
#if __cplusplus >= 202002L
    tap(is(std::span(v).subspan(2, 3), v.data() + 2, dtype::f32, { 3 }, { 1 }), "a std::span");
    const trine::view written = std::span(v);
    tap(written.data() == v.data(), "a std::span that is written");
#endif
    tap(is(trine::view(x).transposed(), x, dtype::f32, { 3, 2 }, { 1, 3 }), "transposed");
    tap(!trine::view() && trine::const_view().get() == nullptr, "nothing is absent");
    tap(trine::const_view(v.data(), { 2, 3 }, { 1 }).rank() == -1,
        "a shape and strides of different ranks are no view");
}

// The sentence of a call that must fail for an argument; "" if it does not.
template <class Call> std::string sentence(Call &&call) {
#ifdef TRINE_NO_EXCEPTIONS
    return call() == trine::status::argument ? trine::message() : "";
#else
    try {
        call();
    } catch (const trine::error &failure) {
        return failure.code() == trine::status::argument ? failure.what() : "";
    }
    return "";
#endif
}

template <class Call> bool succeeds(Call &&call) {
#ifdef TRINE_NO_EXCEPTIONS
    return call() == trine::status::ok;
#else
    call();
    return true;
#endif
}

void calls(trine::queue &queue) {
    const float x[2][4] = { { 1, 2, 3, 4 }, { 2, 2, 2, 2 } };
    float y[2][4] = {};
    trine::rms_norm_args norm;
    norm.x = x;
    norm.y = y;
    norm.eps = 1e-6f;
    tap(succeeds([&] { return trine::rms_norm(queue, norm); }) && y[1][3] > 0.9999f && y[1][3] < 1, "an op");

    const floats weight(5, 1.0f);
    norm.weight = weight;
    const std::string said = sentence([&] { return trine::rms_norm(queue, norm); });
    tap(said == "rms_norm: weight has shape [5], but n = 4 from x", "a wrong shape: \"%s\"", said.c_str());

    norm.weight = trine::const_view();
    norm.x = trine::const_view(&x[0][0], { 2, 4 }, { 1 });
    tap(sentence([&] { return trine::rms_norm(queue, norm); }).find("rms_norm: x") == 0, "a view that is none");

    // -2 and 0.5 in bf16.
    const std::array<half_of_float, 2> a{ { { 0xc000 }, { 0x3f00 } } };
    std::uint16_t b[2] = {};
    trine::scale_args scale;
    scale.x = a;
    scale.y = trine::view(b, trine::dtype::bf16, 2);
    scale.alpha = 2;
    tap(succeeds([&] { return trine::scale(queue, scale); }) && b[0] == 0xc080 && b[1] == 0x3f80, "an op on bf16");
    scale.alpha = 0;
    scale.shift = 1;
    tap(succeeds([&] { return trine::scale(queue, scale); }) && b[0] == 0x3f80, "a zero that is written is one");
    scale.alpha.reset();
    tap(succeeds([&] { return trine::scale(queue, scale); }) && b[0] == 0xbf80, "what is left out has its default");

    trine::gelu_args gelu;
    gelu.x = x;
    gelu.y = y;
    gelu.form = trine::gelu_form::erf;
    tap(succeeds([&] { return trine::gelu(queue, gelu); }) && y[0][0] > 0.84134f && y[0][0] < 0.84135f, "a choice");
#if __cplusplus >= 202002L
    tap(succeeds([&] { return trine::softmax(queue, { .x = x, .y = y, .scale = 2, .causal = true }); }) &&
            y[1][3] == 0.25f,
        "an op in one expression");
#endif

    std::size_t bytes = 1;
    double coefficient = 0;
    const auto explanation = std::make_unique<trine_explanation>();
    tap(succeeds([&] { return trine::workspace(queue, gelu, bytes); }) && bytes == 0, "the workspace of a call");
    tap(succeeds([&] { return trine::error_bound(queue, gelu, "y", coefficient); }) && coefficient > 0,
        "an error bound");
    float two[2] = { 1, 2 }, tens[2] = {}, hundreds[2] = {};
    std::vector<trine::scale_args> list(2);
    for (auto &call : list) call.x = two;
    list[0].y = tens, list[0].alpha = 10.0f;
    list[1].y = hundreds, list[1].alpha = 100.0f;
    tap(succeeds([&] { return trine::run_list(queue, list); }) && tens[1] == 20 && hundreds[0] == 100 &&
            hundreds[1] == 200,
        "a list of calls");
    tap(succeeds([&] { return trine::explain(queue, gelu, *explanation); }) && explanation->chosen >= 0,
        "an explanation");
}

void handles(trine::library &lib) {
    trine::queue_options choices;
    choices.threads = 1;
    trine::queue queue(lib, lib.find("cpu"), choices);
    trine::queue moved = std::move(queue);
    tap(moved && !queue && moved.device() == 0 && moved.code() == trine::status::ok, "a queue is moved");
    tap(succeeds([&] { return moved.reserve(4096); }) && succeeds([&] { return moved.wait(); }),
        "it reserves and waits");

    trine::buffer<float> memory(moved, 3);
    const float in[3] = { 1, 2, 3 };
    float out[3] = {};
    tap(succeeds([&] { return memory.write(in); }) && succeeds([&] { return memory.read(out); }) && out[2] == 3 &&
            trine::view(memory).extent(0) == 3,
        "memory of a device");
#ifndef __SANITIZE_ADDRESS__ // which ends a program that asks for so much
    const auto too_large = [&] { return trine::buffer<double>(moved, SIZE_MAX / 8 + 2); };
#ifdef TRINE_NO_EXCEPTIONS
    const trine::buffer<double> none_so_large = too_large();
    tap(!none_so_large && none_so_large.size() == 0, "memory that cannot be had: %s", trine::message());
#else
    try {
        too_large();
        tap(false, "memory that cannot be had");
    } catch (const trine::error &failure) {
        tap(failure.code() == trine::status::memory, "memory that cannot be had: %s", failure.what());
    }
#endif
#endif
    trine_device_info_t info;
    tap(succeeds([&] { return lib.device(0, info); }) && std::strcmp(info.name, "cpu") == 0, "a device");
    tap(lib.device_count() >= 1, "devices");

    const auto none = [&] { return trine::queue(lib, 1000); };
#ifdef TRINE_NO_EXCEPTIONS
    const trine::queue failed = none();
    tap(!failed && failed.code() == trine::status::not_found && *trine::message(), "no such device: %s",
        trine::message());
#else
    try {
        none();
        tap(false, "no such device");
    } catch (const trine::error &failure) {
        tap(failure.code() == trine::status::not_found, "no such device: %s", failure.what());
    }
#endif
}

} // namespace

int main() {
    trine::library lib;
    trine::queue queue(lib, 0);
    views();
    calls(queue);
    handles(lib);
    return tap_end();
}
