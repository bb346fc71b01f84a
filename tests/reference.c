/* SPDX-License-Identifier: Apache-2.0 */
/* What the float64 references stand on: every code of the small types there and back, rounding at and beside each tie,
 * Philox's published answers. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <trine/ops.h>

#include "spec/plan.h"

static const struct {
    trine_dtype dtype;
    int codes;
    double largest, smallest; /* positive */
} small[] = {
    { TRINE_F16, 65536, 65504, 0x1p-24 },   { TRINE_BF16, 65536, 0x1.fep127, 0x1p-133 },
    { TRINE_E4M3, 256, 448, 0x1p-9 },       { TRINE_E4M3FNUZ, 256, 240, 0x1p-10 },
    { TRINE_E5M2, 256, 57344, 0x1p-16 },    { TRINE_E5M2FNUZ, 256, 57344, 0x1p-17 },
    { TRINE_E8M0, 256, 0x1p127, 0x1p-127 },
};

enum { SMALL = sizeof small / sizeof small[0] };

static double decoded(trine_dtype dtype, int code) {
    const uint16_t wide = (uint16_t)code;
    const uint8_t narrow = (uint8_t)code;
    return trine_load(trine_dtype_size(dtype) == 1 ? (const void *)&narrow : &wide, dtype, 0);
}

static int encoded(trine_dtype dtype, double x) {
    uint16_t wide = 0;
    uint8_t narrow = 0;
    trine_store(trine_dtype_size(dtype) == 1 ? (void *)&narrow : &wide, dtype, 0, x);
    return trine_dtype_size(dtype) == 1 ? narrow : wide;
}

TestSuite(reference, .timeout = 60);

Test(reference, every_code) {
    for (int t = 0; t < SMALL; t++) {
        double largest = 0, smallest = INFINITY;
        for (int code = 0; code < small[t].codes; code++) {
            const double x = decoded(small[t].dtype, code);
            if (isnan(x)) {
                cr_expect(isnan(decoded(small[t].dtype, encoded(small[t].dtype, x))));
                continue;
            }
            cr_expect(encoded(small[t].dtype, x) == code, "%s %#x", trine_dtype_name(small[t].dtype), code);
            cr_expect(trine_round(x, small[t].dtype, false) == x);
            if (isfinite(x)) largest = fmax(largest, x);
            if (x > 0) smallest = fmin(smallest, x);
        }
        cr_expect(largest == small[t].largest && trine_largest(small[t].dtype) == largest, "%s: %g",
                  trine_dtype_name(small[t].dtype), largest);
        cr_expect(smallest == small[t].smallest, "%s: %g", trine_dtype_name(small[t].dtype), smallest);
        cr_expect(smallest == 2 * trine_unit_roundoff(small[t].dtype) * trine_smallest_normal(small[t].dtype));
    }
}

Test(reference, ties_go_to_even) {
    for (int t = 0; t < SMALL; t++) {
        for (int code = 0; code + 1 < small[t].codes / 2 && small[t].dtype != TRINE_E8M0; code++) {
            const double low = decoded(small[t].dtype, code), high = decoded(small[t].dtype, code + 1),
                         middle = (low + high) / 2;
            if (!isfinite(low) || !isfinite(high)) break;
            cr_expect(encoded(small[t].dtype, middle) == code + (code & 1), "%s %#x", trine_dtype_name(small[t].dtype),
                      code);
            cr_expect(encoded(small[t].dtype, nextafter(middle, INFINITY)) == code + 1);
            cr_expect(encoded(small[t].dtype, nextafter(middle, 0)) == code);
        }
    }
}

/* As ml_dtypes and PyTorch round them, which have 0 as NaN and as the smallest. */
Test(reference, scales) {
    cr_expect(trine_round(1.4999, TRINE_E8M0, false) == 1 && trine_round(1.5, TRINE_E8M0, false) == 2 &&
              trine_round(3, TRINE_E8M0, false) == 4);
    cr_expect(isnan(trine_round(-1, TRINE_E8M0, true)) && isnan(trine_round(INFINITY, TRINE_E8M0, false)) &&
              trine_round(INFINITY, TRINE_E8M0, true) == 0x1p127);
    cr_expect(isnan(trine_round(0x1.8p127, TRINE_E8M0, false)) &&
              trine_round(0x1.7fp127, TRINE_E8M0, false) == 0x1p127);
    cr_expect(trine_round(0, TRINE_E8M0, false) == 0x1p-127 && trine_round(-0.0, TRINE_E8M0, false) == 0x1p-127 &&
              trine_round(0x1p-400, TRINE_E8M0, false) == 0x1p-127 &&
              trine_round(0x1.8p-127, TRINE_E8M0, false) == 0x1p-126);
}

Test(reference, overflow) {
    cr_expect(trine_round(464, TRINE_E4M3, false) == 448 && isnan(trine_round(464.1, TRINE_E4M3, false)));
    cr_expect(trine_round(1e9, TRINE_E4M3, true) == 448 && trine_round(-INFINITY, TRINE_E5M2, true) == -57344);
    cr_expect(isinf(trine_round(61440, TRINE_E5M2, false)) && trine_round(61439, TRINE_E5M2, false) == 57344);
    cr_expect(isnan(trine_round(INFINITY, TRINE_E5M2FNUZ, false)) && isnan(trine_round(NAN, TRINE_E4M3, true)));
    cr_expect(!signbit(trine_round(-1e-9, TRINE_E4M3FNUZ, false)) && signbit(trine_round(-1e-9, TRINE_E4M3, false)));
    cr_expect(trine_round(65519, TRINE_F16, false) == 65504 && isinf(trine_round(65520, TRINE_F16, false)));
    cr_expect(trine_round(1e300, TRINE_F32, true) == 0x1.fffffep127 && isinf(trine_round(1e300, TRINE_F32, false)));
    cr_expect(trine_round(127.5, TRINE_I8, false) == 127 && trine_round(-1e9, TRINE_U8, false) == 0 &&
              trine_round(2.5, TRINE_I32, false) == 2);
}

/* Random123's known answers for philox4x32, 10 rounds (Salmon et al. 2011). */
Test(reference, philox) {
    static const uint32_t zeros[4] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
                          ones[4] = { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd };
    static const uint32_t pi[4] = { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 };
    uint32_t word[4];
    trine_philox(0, 0, 0, word);
    cr_expect(memcmp(word, zeros, sizeof word) == 0);
    trine_philox(UINT64_MAX, UINT64_MAX, UINT64_MAX, word);
    cr_expect(memcmp(word, ones, sizeof word) == 0);
    trine_philox(UINT64_C(0x299f31d0a4093822), UINT64_C(0x0370734413198a2e), UINT64_C(0x85a308d3243f6a88), word);
    cr_expect(memcmp(word, pi, sizeof word) == 0);
}

/* Of the known answer for zeros, below 0xc0000000 or not, as they are and with halves exchanged; the block behind it;
 * how many are kept, and how often both elements of a word are dropped and the two beside a word's border. */
Test(reference, dropout) {
    static const bool of_zeros[8] = { true, false, false, false, true, true, true, false };
    for (uint64_t i = 0; i < 8; i++) cr_expect_eq(trine_dropout_keep(0, 0, i, 0.25f), of_zeros[i], "%d", (int)i);
    uint32_t word[4];
    trine_philox(0, 0, 1, word);
    for (uint64_t i = 8; i < 16; i += 2)
        cr_expect_eq(trine_dropout_keep(0, 0, i, 0.25f), word[i / 2 - 4] < 0xc0000000, "%d", (int)i);
    int kept = 0, both[2] = { 0 };
    bool before = true;
    for (uint64_t i = 0; i < 200000; i++) {
        cr_expect(trine_dropout_keep(1, 2, i, 0) && !trine_dropout_keep(1, 2, i, 1));
        const bool keep = trine_dropout_keep(1, 2, i, 0.25f);
        kept += keep;
        both[i % 2] += !keep && !before;
        before = keep;
    }
    cr_expect(abs(kept - 150000) < 850, "%d", kept);
    for (int i = 0; i < 2; i++) cr_expect(abs(both[i] - 6250) < 350, "%d", both[i]);
    cr_expect(trine_dropout_threshold(0) == UINT64_C(1) << 32 && trine_dropout_scale(0.5f) == 2 &&
              trine_dropout_scale(0) == 1);
}

/* elman's gate of an infinite state: its value and magnitude. */
static void multiply_by_infinity(double weight, double *product_out, double *magnitude_out) {
    double r = weight, x = 0, h = INFINITY, y[3] = { 0 }, gates[3] = { 0 };
    const trine_elman_args args = { .struct_size = sizeof args };
    const trine_plan *plan = trine_plan_get(trine_op_find("elman"));
    const struct {
        const char *name;
        double *value;
    } tensors[] = { { "wx", &x }, { "r", &r }, { "h0", &h }, { "y", y }, { "gates", gates } };
    int64_t dim[TRINE_MAX_SYMBOLS];
    for (int i = 0; i < TRINE_MAX_SYMBOLS; i++) dim[i] = 1;
    trine_ref ref = { .plan = plan, .args = &args, .dim = dim };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        const int place = trine_plan_find_tensor(plan, tensors[i].name);
        ref.value[place] = tensors[i].value;
        if (tensors[i].value == y || tensors[i].value == gates)
            ref.magnitude[place] = tensors[i].value + 1, ref.slack[place] = tensors[i].value + 2;
    }
    ref.plan->spec->reference(&ref);
    *product_out = gates[0], *magnitude_out = gates[1];
}

/* Of an infinite state and a weight that may be taken for zero nothing is known; of others all is. */
Test(reference, infinite_states) {
    double product, magnitude;
    multiply_by_infinity(0x1p-126, &product, &magnitude);
    cr_expect(product == INFINITY && magnitude == 0, "%g %g", product, magnitude);
    for (double weight = 0x1p-127; weight >= 0x1p-149; weight /= 2) {
        multiply_by_infinity(-weight, &product, &magnitude);
        cr_expect(magnitude == INFINITY, "%g: %g %g", weight, product, magnitude);
    }
    multiply_by_infinity(0, &product, &magnitude);
    cr_expect(isnan(product) && magnitude == 0, "%g %g", product, magnitude);
}
