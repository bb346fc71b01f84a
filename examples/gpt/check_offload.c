/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of state that is not on the device: the same bits wherever it is, checkpoints, and files that cannot be had or
 * written. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "tests/tap.h"

/* More pieces than the ring has buffers, also of half the model; one of them ends where decay does. */
enum { PIECE = 1024 };
/* Of 12600 parameters, of which 12480 decay: none, the embedding, all matrices and some norms, all, as measured. */
static const float shares[] = { 0, 0.5f, 0.999f, 1, -1 };

static bool same_bits(trine_queue *queue, trine *lib, const gpt_data *data, int64_t steps, const char *file) {
    bool good = true;
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        const gpt_offload away = { .lib = lib, .threads = 2, .file = file, .share = shares[i], .piece = PIECE };
        tiny.away = &away;
        const bool same = train_to(queue, data, NULL, steps, "part") && same_files("straight", "part");
        if (!same) printf("# a share of %g\n", (double)shares[i]);
        good = good && same;
    }
    tiny.away = NULL;
    return good && access("state", F_OK) != 0;
}

static void check_same(trine_queue *queue, trine *lib, const gpt_data *data, int64_t steps, const char *where) {
    for (tiny.mixed = 0; tiny.mixed < 2; tiny.mixed++) {
        const char *type = tiny.mixed ? ", in bf16" : "";
        const bool straight = train_to(queue, data, NULL, steps, "straight");
        tap(straight && same_bits(queue, lib, data, steps, NULL),
            "%s: the same bits with state in the host's memory, of all parameters, some or none%s", where, type);
        tap(straight && same_bits(queue, lib, data, steps, "state"), "%s: and with state in a file%s", where, type);
    }
    tiny.mixed = 0;
}

/* From state in one place to state in another. */
static void check_moves(trine_queue *queue, trine *lib, const gpt_data *data) {
    const gpt_offload file = { .lib = lib, .file = "state", .share = 0.25f, .piece = PIECE },
                      memory = { .lib = lib, .share = 0, .piece = 3 * PIECE };
    for (tiny.mixed = 1; tiny.mixed >= 0; tiny.mixed--) {
        bool good = train_to(queue, data, NULL, STEPS, "straight");
        tiny.away = &file;
        good = good && train_to(queue, data, NULL, 4, "part");
        tiny.away = &memory;
        good = good && train_to(queue, data, "part", 6, "resumed");
        tiny.away = NULL;
        good = good && train_to(queue, data, "resumed", STEPS, "part");
        tap(good && same_files("straight", "part"), "a checkpoint goes on with its state in another place%s",
            tiny.mixed ? ", in bf16" : "");
    }
    tiny.mixed = 0;
}

/* Does training with state in the file fail, at once or at a step, with a sentence that has these words? */
static bool fails(trine_queue *queue, trine *lib, const gpt_data *data, const char *file, rlim_t at_open,
                  rlim_t at_step, const char *words) {
    const gpt_offload away = { .lib = lib, .file = file, .share = 0, .piece = PIECE };
    struct rlimit before, limit;
    gpt_trainer t = { 0 };
    if (getrlimit(RLIMIT_FSIZE, &before) != 0) return false;
    limit = before;
    limit.rlim_cur = at_open;
    tiny.away = &away;
    bool good = setrlimit(RLIMIT_FSIZE, &limit) == 0;
    good = good && gpt_trainer_open(&t, queue, &tiny, &short_schedule, data, 5, NULL);
    limit.rlim_cur = at_step;
    good = setrlimit(RLIMIT_FSIZE, &limit) == 0 && good && gpt_trainer_step(&t);
    setrlimit(RLIMIT_FSIZE, &before);
    const bool said = strstr(t.error, file) && strstr(t.error, words);
    printf("# %s\n", t.error);
    gpt_trainer_close(&t);
    tiny.away = NULL;
    return !good && said;
}

static void check_failures(trine_queue *queue, trine *lib, const gpt_data *data) {
    const rlim_t all = RLIM_INFINITY;
    signal(SIGXFSZ, SIG_IGN);
    tap(fails(queue, lib, data, "straight", all, all, "exists") && same_files("straight", "part"),
        "a file that is there is not touched");
    tap(fails(queue, lib, data, "missing/state", all, all, "No such file"), "nor is one made where no directory is");
    tap(fails(queue, lib, data, "state", 1 << 16, all, "too large") && access("state", F_OK) != 0,
        "a file that is too large for where it is to be");
    tap(fails(queue, lib, data, "state", all, 0, "too large"), "one that cannot be written at a step");
}

/* The CPU's adamw and a GPU's have the same operations in the same order, where the CPU has fused ones. */
static bool fuses(trine *lib) {
    trine_device_info_t info;
    return trine_device_info(lib, 0, &info) == TRINE_OK &&
           (strcmp(info.arch, "x86-64-v3") == 0 || strcmp(info.arch, "x86-64-v4") == 0);
}

static void check_devices(trine *lib, const gpt_data *data) {
    for (int i = 1; fuses(lib) && i < trine_device_count(lib); i++) {
        trine_device_info_t info = { .name = "?" };
        trine_queue *queue = NULL;
        const bool open =
            trine_device_info(lib, i, &info) == TRINE_OK && trine_queue_open(lib, i, NULL, &queue) == TRINE_OK;
        if (tap(open, "%s opens", info.name)) check_same(queue, lib, data, 2, info.name);
        trine_queue_close(queue);
    }
}

int main(void) {
    char folder[] = "/tmp/trine-gpt-XXXXXX", error[256] = "";
    trine *lib = NULL;
    trine_queue *queue = NULL;
    gpt_data data = { 0 };
    const trine_queue_options two = { sizeof two, .threads = 2 };
    if (!mkdtemp(folder) || chdir(folder) != 0 || !make_text(&data, error, sizeof error)) {
        printf("Bail out! %s: %s%s\n", folder, strerror(errno), error);
        return 1;
    }
    const bool open = trine_open(NULL, &lib) == TRINE_OK && trine_queue_open(lib, 0, &two, &queue) == TRINE_OK;
    if (tap(open, "trine opens: %s", trine_error_message())) {
        check_same(queue, lib, &data, STEPS, "cpu");
        check_moves(queue, lib, &data);
        check_failures(queue, lib, &data);
        check_devices(lib, &data);
    }
    trine_queue_close(queue);
    trine_close(lib);
    gpt_data_free(&data);
    for (const char *const *name = (const char *const[]){ "text", "straight", "part", "resumed", NULL }; *name; name++)
        unlink(*name);
    if (chdir("/") == 0) rmdir(folder);
    return tap_end();
}
