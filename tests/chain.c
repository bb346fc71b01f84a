/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of chains that are refused: the message says where, and what was expected; nothing is written. And what is
 * at a limit runs. */
#include <math.h>

#include "support.h"

enum { N = 5 };
static trine *lib;
static trine_queue *queue;
static float x[N] = { 1, 2, 3, 4, 5 }, y[N];

static void set_up(void) {
    lib = open_plain("");
    assert_ok(trine_queue_open(lib, 0, NULL, &queue));
    for (int i = 0; i < N; i++) y[i] = -1;
}

static void tear_down(void) {
    trine_queue_close(queue);
    trine_close(lib);
}

TestSuite(chain, .init = set_up, .fini = tear_down, .timeout = 60);

static trine_status run(const char *program) {
    const trine_tensor tx = trine_tensor_1d(x, TRINE_F32, N), ty = trine_tensor_1d(y, TRINE_F32, N);
    return trine_chain(queue, &(trine_chain_args){ TRINE_ARGS(chain), .x0 = &tx, .y0 = &ty, .program = program });
}

Test(chain, says_what_is_wrong) {
    static const char *const programs[][2] = {
        { NULL, "chain: program is NULL" },
        { "", "chain: program: at character 1: a name is expected, but the program ends" },
        { "y0", "chain: program: at character 3: \"=\" is expected, but the program ends" },
        { "y0 = ", "chain: program: at character 6: a value is expected, but the program ends" },
        { "y0 = x0 +* x0", "chain: program: at character 10: a value is expected, but found \"*\"" },
        { "y0 = (x0", "chain: program: at character 9: \")\" is expected, but the program ends" },
        { "y0 = x0)", "chain: program: at character 8: \";\" or an operator is expected, but found \")\"" },
        { "y0 = x0 < x0 < x0", "chain: program: at character 14: \";\" or an operator is expected, but found \"<\"" },
        { "y0 = t; t = x0", "chain: program: at character 6: \"t\" is not set before" },
        { "y0 = x8", "chain: program: at character 6: \"x8\" is not set before" },
        { "y0 = sin(x0)", "chain: program: at character 6: there is no function \"sin\"" },
        { "y0 = min(x0)", "chain: program: at character 12: \",\" is expected, but found \")\"" },
        { "y0 = exp x0", "chain: program: at character 10: \"(\" is expected, but found \"x\"" },
        { "x0 = 1", "chain: program: at character 1: \"x0\" is an input" },
        { "exp = x0", "chain: program: at character 1: \"exp\" is a function" },
        { "y0 = 1e99", "chain: program: at character 6: not a finite decimal number" },
        { "y0 = 0x10", "chain: program: at character 6: not a finite decimal number" },
        { "t = x0", "chain: program: it sets no output: no y0" },
        { "y1 = x0", "chain: program: it does not set y0, which is given" },
        { "y0 = x0 + x1", "chain: program: it reads x1, which is NULL" },
        { "y0 = x0; r0 = x0 - max_row(x0)",
          "chain: program: at character 10: \"r0\" is of a row, but its value is of elements" },
        { "r0 = max_row(x0)", "chain: program: it does not set y0, which is given" },
    };
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        expect_message(run(programs[i][0]), TRINE_ERR_ARGUMENT, programs[i][1]);
    for (int i = 0; i < N; i++) cr_expect(y[i] == -1);
}

/* `count` times the same, "#" being the number of each. */
static const char *repeated(const char *start, const char *part, int count, const char *end) {
    static char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", start);
    for (int i = 0; i < count; i++)
        for (const char *at = part; *at; at++)
            used += (size_t)(*at == '#' ? snprintf(text + used, sizeof text - used, "%d", i)
                                        : snprintf(text + used, sizeof text - used, "%c", *at));
    snprintf(text + used, sizeof text - used, "%s", end);
    return text;
}

Test(chain, has_limits) {
    assert_ok(run(repeated("y0=x0", "+#.5*x0", 31, "")));
    cr_expect(y[0] == 1 + 31 * 15.5);
    expect_message(run(repeated("y0=x0", "+#.5*x0", 33, "")), TRINE_ERR_ARGUMENT,
                   "chain: program: it has more than 32 numbers");
    expect_message(run(repeated("y0=", "(", 70, "x0")), TRINE_ERR_ARGUMENT,
                   "chain: program: at character 68: more than 64 levels deep");
    assert_ok(run(repeated("a=x0;", "a=a-max_row(a);", 7, "y0=a")));
    cr_expect(y[0] == -4 && y[4] == 0);
    expect_message(run(repeated("a=x0;", "a=a-max_row(a);", 8, "y0=a")), TRINE_ERR_ARGUMENT,
                   "chain: program: at character 125: more than 7 reductions of one another");
    assert_ok(run(repeated("y0=0", "+sum_row(x0*#)", 8, "")));
    cr_expect(y[0] == 28 * 15);
    expect_message(run(repeated("y0=0", "+sum_row(x0*#)", 9, "")), TRINE_ERR_ARGUMENT,
                   "chain: program: it has more than 8 reductions that go together");
    expect_message(run(repeated("y0=x0", " ", 1020, "")), TRINE_ERR_ARGUMENT,
                   "chain: program: at character 1025: more than 1024 characters");
}

/* Names may be set again, spaces mean nothing, and what is set and not used costs nothing. */
Test(chain, reads_as_it_says) {
    assert_ok(run("a=x0;b=a;a=a*2;c=exp(b);y0=a+b;"));
    for (int i = 0; i < N; i++) cr_expect(y[i] == 3 * x[i]);
    assert_ok(run(" a\t=\nx0 ; y0 = - a\r\n*2 "));
    for (int i = 0; i < N; i++) cr_expect(y[i] == -2 * x[i]);
}

/* One tensor of f64 makes all f64: numbers too, and what is beyond f32. */
Test(chain, is_wide_where_a_tensor_is) {
    double wide[N] = { 0x1p-60, 1 + 0x1p-40, -3, 1e300, 0 }, result[N], sum[1];
    const trine_tensor tx = trine_tensor_1d(x, TRINE_F32, N), tw = trine_tensor_1d(wide, TRINE_F64, N),
                       tr = trine_tensor_1d(result, TRINE_F64, N), ty = trine_tensor_1d(y, TRINE_F32, N),
                       ts = { sum, TRINE_F64, 0, { 0 }, { 0 } };
    assert_ok(trine_chain(
        queue, &(trine_chain_args){ TRINE_ARGS(chain), .x0 = &tw, .y0 = &tr, .program = "y0 = x0 * 0.1 + 1e-99" }));
    for (int i = 0; i < N; i++) cr_expect(fabs(result[i] - (wide[i] * 0.1 + 1e-99)) <= 0x1p-52 * fabs(wide[i]));
    assert_ok(trine_chain(
        queue, &(trine_chain_args){ TRINE_ARGS(chain), .x0 = &tx, .x1 = &tw, .y0 = &ty, .program = "y0 = x1 - x0" }));
    cr_expect(y[0] == -1 && y[1] == (float)(wide[1] - 2) && y[3] == INFINITY);
    assert_ok(trine_chain(queue, &(trine_chain_args){ TRINE_ARGS(chain), .x0 = &tx, .y0 = &ty, .r0 = &ts,
                                                      .program = "y0 = x0; r0 = sum_row(x0) + 0.1" }));
    cr_expect(sum[0] == 15 + 0.1);
    assert_ok(
        trine_chain(queue, &(trine_chain_args){ TRINE_ARGS(chain), .x0 = &tw, .y0 = &tr, .program = "y0 = f32(x0)" }));
    cr_expect(result[0] == 0x1p-60 && result[1] == 1 && result[3] == INFINITY);
    expect_message(run("y0 = x0 * 1e99"), TRINE_ERR_ARGUMENT,
                   "chain: program: at character 11: not a finite decimal number");
}

/* A row's outputs lie anywhere, and rows without elements have them too. */
Test(chain, has_outputs_of_rows) {
    float sum[2 * N], most[N];
    trine_tensor tx = trine_tensor_2d(x, TRINE_F32, N, 1), ty = trine_tensor_2d(y, TRINE_F32, N, 1),
                 ts = { sum, TRINE_F32, 1, { N }, { 2 } }, tm = trine_tensor_1d(most, TRINE_F32, N);
    const trine_chain_args args = {
        TRINE_ARGS(chain), .x0 = &tx, .y0 = &ty,
        .r0 = &ts,         .r1 = &tm, .program = "y0 = x0 * 2; r0 = sum_row(x0) + 1; r1 = max_row(x0)"
    };
    for (int i = 0; i < 2 * N; i++) sum[i] = -1;
    assert_ok(trine_chain(queue, &args));
    for (int i = 0; i < N; i++)
        cr_expect(y[i] == 2 * x[i] && sum[2 * i] == x[i] + 1 && sum[2 * i + 1] == -1 && most[i] == x[i]);
    tx.shape[1] = ty.shape[1] = 0;
    assert_ok(trine_chain(queue, &args));
    for (int i = 0; i < N; i++) cr_expect(sum[2 * i] == 1 && sum[2 * i + 1] == -1 && most[i] == -INFINITY);
    tm.dtype = TRINE_BF16;
    expect_fail(trine_chain(queue, &args), TRINE_ERR_ARGUMENT, "r1 is bf16");
}

/* Two steps of sums, differences and products after one another, of elements and of numbers, and each way round. */
Test(chain, pairs_are_two_steps) {
    static const char signs[] = "+-*";
    float z[N] = { 7, -3, 0, 2, -5 };
    trine_tensor tx = trine_tensor_1d(x, TRINE_F32, N), tz = trine_tensor_1d(z, TRINE_F32, N),
                 ty = trine_tensor_1d(y, TRINE_F32, N);
    for (int all = 0; all < 3 * 7 * 27; all++) {
        const int first = all % 3, second = all / 3 % 7, of[3] = { all / 21 % 3, all / 63 % 3, all / 189 };
        static const char *const names[] = { "x0", "x1", "3" };
        char program[128];
        const char *const c = names[of[2]];
        const int length = snprintf(program, sizeof program, "r=%s%c%s;y0=", names[of[0]], signs[first], names[of[1]]);
        if (second < 3)
            snprintf(program + length, sizeof program - (size_t)length, "r%c%s", signs[second], c);
        else if (second < 6)
            snprintf(program + length, sizeof program - (size_t)length, "%s%cr", c, signs[second - 3]);
        else
            snprintf(program + length, sizeof program - (size_t)length, "relu(r)+0*%s", c);
        assert_ok(trine_chain(
            queue, &(trine_chain_args){ TRINE_ARGS(chain), .x0 = &tx, .x1 = &tz, .y0 = &ty, .program = program }));
        for (int i = 0; i < N; i++) {
            const float value[] = { x[i], z[i], 3 }, a = value[of[0]], b = value[of[1]], d = value[of[2]],
                        r = first == 0   ? a + b
                            : first == 1 ? a - b
                                         : a * b;
            const float wanted = second == 0   ? r + d
                                 : second == 1 ? r - d
                                 : second == 2 ? r * d
                                 : second == 3 ? d + r
                                 : second == 4 ? d - r
                                 : second == 5 ? d * r
                                 : r > 0       ? r
                                               : 0;
            cr_expect(y[i] == wanted, "\"%s\" gives %g at %d, not %g", program, (double)y[i], i, (double)wanted);
        }
    }
}
