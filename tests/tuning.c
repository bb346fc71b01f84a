/* SPDX-License-Identifier: Apache-2.0 */
/* The tuning cache: what it chooses, and files that are foreign, corrupt or written by several at a time. */
#include <pthread.h>
#include <stdint.h>

#include "good.h"

TestSuite(tune, .timeout = 120);

static char directory[128], cache[256];

static void set_up_cache(void) {
    make_directory(directory);
    snprintf(cache, sizeof cache, "%s/below/it/tune", directory);
}
static void tear_down_cache(void) { remove_directory(directory); }

static trine *open_tuned(void) {
    trine *tuned;
    const trine_options options = { .struct_size = sizeof options, .plugin_path = TEST_MODULES, .tune_file = cache };
    assert_ok(trine_open(&options, &tuned));
    return tuned;
}

/* Which kernel of the module's device would take `n` elements, and why. */
static void expect_choice(int64_t n, uint32_t flags, const char *kernel, const char *reason) {
    trine_tensor tx, ty;
    const trine_scale_args args = small_call(&tx, &ty, n);
    trine *tuned = open_tuned();
    trine_queue *good = open_good(tuned, NULL, flags);
    trine_explanation why;
    assert_ok(trine_explain(good, TRINE_OP_SCALE, &args, &why));
    cr_assert(why.chosen >= 0);
    cr_expect(strcmp(why.candidate[why.chosen].kernel, kernel) == 0, "%s for n = %d", why.candidate[why.chosen].kernel,
              (int)n);
    cr_expect(strcmp(why.why, reason) == 0, "%s", why.why);
    trine_queue_close(good);
    trine_close(tuned);
}

static void tune(int64_t n) {
    trine_tensor tx, ty;
    const trine_scale_args args = small_call(&tx, &ty, n);
    trine *tuned = open_tuned();
    trine_queue *good = open_good(tuned, NULL, 0);
    assert_ok(trine_tune_call(good, TRINE_OP_SCALE, &args));
    assert_ok(trine_scale(good, &args));
    trine_queue_close(good);
    trine_close(tuned);
}

Test(tune, chooses_the_fastest, .init = set_up_cache, .fini = tear_down_cache) {
    expect_choice(8, 0, "good_slow", "first that accepts");
    tune(8);
    expect_choice(8, 0, "good_fast", "tuning cache");
    expect_choice(9, 0, "good_fast", "tuning cache"); /* the same bucket */
    expect_choice(10, 0, "good_slow", "first that accepts");
    expect_choice(7, 0, "good_slow", "first that accepts");
    expect_choice(16, 0, "good_slow", "first that accepts");
    expect_choice(8, TRINE_QUEUE_ATOMICS, "good_slow", "first that accepts");
    tune(8);
    tune(16);
    char *text = read_whole(cache, NULL);
    cr_expect(count_lines(text, "\n") == 3, "a header and two lines: %s", text);
    cr_expect(strstr(text, "\ta good device, host, 1 units\t1.0\tscale\tX=f32 T=f32 p=1 q=1 r=1 n=8\tgood_fast\t") !=
                  NULL,
              "%s", text);
    free(text);
}

/* What a backend ships serves its device, whatever the specification was when it was measured;
 * the cache goes before it. */
Test(tune, shipped, .init = set_up_cache, .fini = tear_down_cache) {
    expect_choice(12, 0, "good_fast", "tuned for this device");
    expect_choice(13, 0, "good_fast", "tuned for this device");
    expect_choice(11, 0, "good_slow", "first that accepts");
    expect_choice(6, 0, "good_slow", "first that accepts");
    tune(12);
    expect_choice(12, 0, "good_fast", "tuning cache");
}

Test(tune, errors, .init = set_up_cache, .fini = tear_down_cache) {
    trine_tensor tx, ty;
    trine_scale_args args = small_call(&tx, &ty, 8);
    trine *plain = open_plain(TEST_MODULES);
    trine_queue *good = open_good(plain, NULL, 0);
    expect_fail(trine_tune_call(good, TRINE_OP_SCALE, &args), TRINE_ERR_IO, "tuning cache: there is none");
    expect_fail(trine_tune_call(good, TRINE_OP_SCALE, NULL), TRINE_ERR_ARGUMENT, "scale: args is NULL");
    expect_fail(trine_tune_call(good, (trine_op)9999, &args), TRINE_ERR_ARGUMENT, "9999");
    expect_fail(trine_tune_call(NULL, TRINE_OP_SCALE, &args), TRINE_ERR_ARGUMENT, "queue is NULL");
    expect_fail(trine_tune_choose(good, TRINE_OP_SCALE, &args, NULL, 1), TRINE_ERR_ARGUMENT, "kernel is NULL");
    expect_fail(trine_tune_choose(good, TRINE_OP_SCALE, &args, "good_fast", -1), TRINE_ERR_ARGUMENT,
                "seconds is not a time");
    expect_fail(trine_tune_choose(good, TRINE_OP_SCALE, &args, "good_gone", 1), TRINE_ERR_NOT_FOUND, "good_gone");
    tx.dtype = ty.dtype = TRINE_BF16;
    expect_fail(trine_tune_call(good, TRINE_OP_SCALE, &args), TRINE_ERR_UNSUPPORTED, "only f32");
    trine_queue_close(good);
    trine_close(plain);
    /* The path is a directory. */
    snprintf(cache, sizeof cache, "%s", directory);
    trine *tuned = open_tuned();
    good = open_good(tuned, NULL, 0);
    args = small_call(&tx, &ty, 8);
    expect_fail(trine_tune_call(good, TRINE_OP_SCALE, &args), TRINE_ERR_IO, directory);
    trine_queue_close(good);
    trine_close(tuned);
}

/* A cache that cannot be made: the message names the directory at which it failed, and why. */
Test(tune, no_directory, .init = set_up_cache, .fini = tear_down_cache) {
    trine_tensor tx, ty;
    const trine_scale_args args = small_call(&tx, &ty, 8);
    char file[160], wanted[256];
    snprintf(file, sizeof file, "%s/file", directory);
    write_file(file, "", 0);
    snprintf(cache, sizeof cache, "%.120s/trine/tune", file);
    trine *tuned = open_tuned();
    trine_queue *good = open_good(tuned, NULL, 0);
    snprintf(wanted, sizeof wanted, "tuning cache: cannot make %s/trine: Not a directory", file);
    expect_message(trine_tune_call(good, TRINE_OP_SCALE, &args), TRINE_ERR_IO, wanted);
    trine_queue_close(good);
    trine_close(tuned);
}

/* A strict queue is not given more workspace behind its back. */
Test(tune, strict_queue, .init = set_up_cache, .fini = tear_down_cache) {
    trine_tensor tx, ty;
    const trine_scale_args args = small_call(&tx, &ty, 8);
    trine *tuned = open_tuned();
    trine_queue *good = open_good(tuned, NULL, TRINE_QUEUE_STRICT_WORKSPACE);
    expect_message(trine_tune_call(good, TRINE_OP_SCALE, &args), TRINE_ERR_WORKSPACE,
                   "scale: needs 32 bytes of workspace, but 0 are reserved");
    trine_explanation why;
    assert_ok(trine_explain(good, TRINE_OP_SCALE, &args, &why));
    cr_expect(strcmp(why.why, "first that accepts") == 0, "the queue is as it was");
    assert_ok(trine_queue_reserve(good, 32));
    assert_ok(trine_tune_call(good, TRINE_OP_SCALE, &args));
    trine_queue_close(good);
    trine_close(tuned);
}

/* Replaces the cache by its own text with the last `from` exchanged for `to`, and `more` behind. */
static void edit_cache(const char *from, const char *to, const char *more) {
    char *text = read_whole(cache, NULL), *at = NULL;
    for (char *next = strstr(text, from); next != NULL; next = strstr(next + 1, from)) at = next;
    cr_assert(at != NULL, "%s in %s", from, text);
    FILE *file = fopen(cache, "we");
    cr_assert(file != NULL);
    fprintf(file, "%.*s%s%s%s", (int)(at - text), text, to, at + strlen(from), more);
    cr_assert(fclose(file) == 0);
    free(text);
}

/* Entries of another driver, device, kernel list or specification are kept, but not used. */
Test(tune, foreign, .init = set_up_cache, .fini = tear_down_cache) {
    static const char *const edits[][2] = { { "\t1.0\t", "\t1.1\t" },
                                            { "a good device", "another device" },
                                            { "1 units", "2 units" } };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        tune(8);
        expect_choice(8, 0, "good_fast", "tuning cache");
        edit_cache(edits[i][0], edits[i][1], "");
        expect_choice(8, 0, "good_slow", "first that accepts");
    }
    tune(8);
    edit_cache("kernel, seconds\n",
               "kernel, seconds\n0123456789abcdef\tfedcba9876543210\tsome GPU\t570.1\tan_op_of_tomorrow\tT=f4 "
               "z=3\ta_kernel\t1e-3\n",
               "");
    tune(16);
    char *text = read_whole(cache, NULL);
    cr_expect(count_lines(text, "\n") == 7, "%s", text);
    cr_expect(
        strstr(
            text,
            "\n0123456789abcdef\tfedcba9876543210\tsome GPU\t570.1\tan_op_of_tomorrow\tT=f4 z=3\ta_kernel\t1e-3\n") !=
        NULL);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++)
        cr_expect(strstr(text, edits[i][1]) != NULL, "%s", text);
    free(text);
    expect_choice(8, 0, "good_fast", "tuning cache");
}

/* A tuned kernel that does not exist, or that refuses after all, is passed over. */
Test(tune, unknown_kernel, .init = set_up_cache, .fini = tear_down_cache) {
    tune(8);
    edit_cache("good_fast", "good_gone", "");
    expect_choice(8, 0, "good_slow", "first that accepts");
    edit_cache("good_gone", "good_never", "");
    expect_choice(8, 0, "good_slow", "first that accepts");
}

/* Corrupt lines are ignored with one warning, the rest serves, and the next record leaves them out. */
Test(tune, corrupt, .init = set_up_cache, .fini = tear_down_cache) {
    static char command[1024], output[1 << 14];
    tune(8);
    edit_cache("kernel, seconds\n", "kernel, seconds\ngarbage\n\t\t\t\n\x01\x02\n",
               "0123\tx\ty\tz\tscale\tT=f32\tk\t1\n"
               "0123456789abcdef\t0123456789abcdef\td\te\tscale\tT=f32\tk\t-1\n"
               "0123456789abcdef\t0123456789abcdef\td\te\tscale\tT=f32\tk\tnan\n"
               "0123456789abcdef\t0123456789abcdef\td\te\tscale\tT=f32\tk\t1\textra\n"
               "a line without an end");
    expect_choice(8, 0, "good_fast", "tuning cache");
    snprintf(command, sizeof command, "TRINE_PATH=%s TRINE_TUNE=%s TRINE_DEVICE=good %s 2>&1", TEST_MODULES, cache,
             TEST_PROBE);
    cr_expect(run_command(command, output, sizeof output) == 0, "%s", output);
    cr_expect(strstr(output, "8 corrupt lines ignored, the first is line 2") != NULL, "%s", output);
    cr_expect(count_lines(output, "trine:") == 1, "%s", output);
    tune(16);
    char *text = read_whole(cache, NULL);
    cr_expect(count_lines(text, "\n") == 3, "%s", text);
    free(text);
}

/* Bytes of any kind, at any length. */
Test(tune, noise, .init = set_up_cache, .fini = tear_down_cache) {
    static unsigned char noise[100000];
    tune(8);
    uint32_t state = 1;
    for (size_t size = 0; size <= sizeof noise; size = size * 3 + 1) {
        for (size_t i = 0; i < size; i++) noise[i] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
        write_file(cache, noise, size);
        expect_choice(8, 0, "good_slow", "first that accepts");
    }
    tune(8);
    expect_choice(8, 0, "good_fast", "tuning cache");
}

Test(tune, not_a_file, .init = set_up_cache, .fini = tear_down_cache) {
    snprintf(cache, sizeof cache, "%s/pipe", directory);
    cr_assert(mkfifo(cache, 0600) == 0);
    expect_choice(8, 0, "good_slow", "first that accepts");
    snprintf(cache, sizeof cache, "%s", "/dev/null");
    expect_choice(8, 0, "good_slow", "first that accepts");
    struct stat status;
    cr_expect(stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode));
}

/* A link stays one, and what it points to is replaced. */
Test(tune, link, .init = set_up_cache, .fini = tear_down_cache) {
    char target[256];
    struct stat status;
    snprintf(target, sizeof target, "%s/target", directory);
    snprintf(cache, sizeof cache, "%s/link", directory);
    write_file(target, "", 0);
    cr_assert(symlink(target, cache) == 0);
    tune(8);
    cr_expect(lstat(cache, &status) == 0 && S_ISLNK(status.st_mode));
    cr_expect(stat(target, &status) == 0 && status.st_size > 0);
    expect_choice(8, 0, "good_fast", "tuning cache");
}

/* Ranks of a job that tune at once lose nothing: each writer's size is there at the end. */
static void *write_one(void *argument) {
    trine_tensor tx, ty;
    trine *tuned = open_tuned();
    trine_queue *good = open_good(tuned, "good_fast", 0);
    static float data[1 << 16], result[16][1 << 16];
    const int which = (int)(intptr_t)argument;
    tx = trine_tensor_1d(data, TRINE_F32, INT64_C(1) << which);
    ty = trine_tensor_1d(result[which], TRINE_F32, INT64_C(1) << which);
    const trine_status status =
        trine_tune_call(good, TRINE_OP_SCALE, &(trine_scale_args){ TRINE_ARGS(scale), .x = &tx, .y = &ty, .alpha = 2 });
    trine_queue_close(good);
    trine_close(tuned);
    return (void *)(intptr_t)status;
}

Test(tune, concurrent_writers, .init = set_up_cache, .fini = tear_down_cache) {
    pthread_t thread[16];
    for (intptr_t i = 0; i < 16; i++) cr_assert(pthread_create(&thread[i], NULL, write_one, (void *)i) == 0);
    for (int i = 0; i < 16; i++) {
        void *status;
        pthread_join(thread[i], &status);
        cr_expect((intptr_t)status == TRINE_OK);
    }
    char *text = read_whole(cache, NULL);
    for (int i = 0; i < 16; i++) {
        char line[64];
        snprintf(line, sizeof line, " n=%d\tgood_fast\t", 1 << i);
        cr_expect(count_lines(text, line) == 1, "%s in %s", line, text);
    }
    free(text);
}
