/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the example: the whole model's gradient against finite differences, resuming bit by bit, and checkpoints
 * that are damaged. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "tests/tap.h"

/* -------------------------------------------------------------------------------------------------------- gradients */

enum { SEQUENCES = 3, LENGTH = 11 };

typedef struct probe {
    gpt_model model;
    float *param, *grad, *moved; /* on the host */
    int32_t tokens[SEQUENCES * LENGTH], labels[SEQUENCES * LENGTH];
} probe;

static bool loss_at(probe *p, const float *param, double *loss_out) {
    return trine_memory_write(p->model.queue, p->model.param, param, (size_t)p->model.parameters * sizeof(float)) ==
               TRINE_OK &&
           gpt_loss(&p->model, p->tokens, p->labels, SEQUENCES, LENGTH, loss_out);
}

/* Slope of the loss along `direction` (of length 1) by central differences at h and 2h, extrapolated to fourth
 * order. */
static bool slope(probe *p, const double *direction, int64_t first, int64_t count, double h, double *slope_out) {
    double loss[4];
    for (int i = 0; i < 4; i++) {
        const double at = h * (double[]){ -2, -1, 1, 2 }[i];
        memcpy(p->moved, p->param, (size_t)p->model.parameters * sizeof(float));
        for (int64_t k = 0; k < count; k++) p->moved[first + k] = (float)(p->param[first + k] + at * direction[k]);
        if (!loss_at(p, p->moved, &loss[i])) return false;
    }
    *slope_out = (8 * (loss[2] - loss[1]) - (loss[3] - loss[0])) / (12 * h);
    return true;
}

static void unit(double *direction, int64_t count) {
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += direction[k] * direction[k];
    for (int64_t k = 0; k < count; k++) direction[k] /= sqrt(sum);
}

/* The gradient of one parameter tensor, along itself, along two random directions and along its three largest elements.
 * The losses are means of f32 numbers near 5.5, each good to about 1e-6; with h = 0.02 that is 1e-4 of slope at most,
 * and the fourth-order rest is below it for this model. */
static void check_tensor(probe *p, const char *name, int64_t first, int64_t count, gpt_random *random) {
    const double h = 0.02, tolerance = 1e-4;
    double *direction = malloc((size_t)count * sizeof *direction), worst = 0, along_itself = 0;
    bool good = direction != NULL;
    int64_t largest[3] = { 0 };
    for (int rank = 0; rank < 3; rank++)
        for (int64_t k = 0; k < count; k++) {
            const bool taken = (rank > 0 && k == largest[0]) || (rank > 1 && k == largest[1]);
            if (!taken && (fabsf(p->grad[first + k]) > fabsf(p->grad[first + largest[rank]]) ||
                           (rank > 0 && largest[rank] == largest[rank - 1])))
                largest[rank] = k;
        }
    for (int trial = 0; good && trial < 6; trial++) {
        double expected = 0, measured = 0;
        for (int64_t k = 0; k < count; k++)
            direction[k] = trial == 0  ? p->grad[first + k]
                           : trial < 3 ? gpt_random_uniform(random) - 0.5
                                       : k == largest[trial - 3];
        unit(direction, count);
        for (int64_t k = 0; k < count; k++) expected += direction[k] * p->grad[first + k];
        good = slope(p, direction, first, count, h, &measured);
        if (trial == 0) along_itself = expected;
        worst = fmax(worst, fabs(measured - expected));
    }
    free(direction);
    tap(good && worst <= tolerance && along_itself > 100 * tolerance,
        "gradient of %s: length %.4f, off by at most %.1e", name, along_itself, worst);
}

static void check_gradients(trine_queue *queue) {
    probe p = { 0 };
    gpt_random random;
    double loss;
    gpt_random_seed(&random, 7);
    bool good = gpt_open(&p.model, &tiny, queue, 3);
    const int64_t n = p.model.parameters;
    p.param = malloc((size_t)n * sizeof(float));
    p.grad = malloc((size_t)n * sizeof(float));
    p.moved = malloc((size_t)n * sizeof(float));
    good = good && p.param && p.grad && p.moved &&
           trine_memory_read(queue, p.param, p.model.param, (size_t)n * sizeof(float)) == TRINE_OK;
    for (int64_t i = 0; good && i < n; i++) /* larger than at the start of training, so that all terms count */
        p.param[i] *= i < p.model.decayed ? 8.0f : 0.75f + 0.5f * (float)gpt_random_uniform(&random);
    for (int i = 0; i < SEQUENCES * LENGTH; i++) {
        p.tokens[i] = (int32_t)(gpt_random_next(&random) % 20); /* few, so that embedding rows are shared */
        p.labels[i] = (int32_t)(gpt_random_next(&random) % GPT_BYTES);
    }
    good = good && loss_at(&p, p.param, &loss) && gpt_gradient(&p.model, SEQUENCES, LENGTH) &&
           trine_memory_read(queue, p.grad, p.model.grad, (size_t)n * sizeof(float)) == TRINE_OK;
    if (!tap(good, "loss and gradient of a small model: %s", trine_error_message())) goto done;
    const int64_t width = tiny.width, qkv = width * (tiny.heads + 2 * tiny.kv_heads) * (width / tiny.heads);
    check_tensor(&p, "the embedding", 0, GPT_BYTES * width, &random);
    for (int i = 0; i < tiny.layers; i++) {
        const gpt_layer *l = &p.model.layer[i];
        check_tensor(&p, "an attention's norm", l->norm, width, &random);
        check_tensor(&p, "queries, keys and values", l->w_qkv, qkv, &random);
        check_tensor(&p, "an attention's output", l->w_mixed, width * width, &random);
        check_tensor(&p, "a feed-forward's norm", l->middle_norm, width, &random);
        check_tensor(&p, "gate and up", l->w_gate_up, width * 2 * tiny.hidden, &random);
        check_tensor(&p, "down", l->w_down, tiny.hidden * width, &random);
    }
    check_tensor(&p, "the final norm", p.model.final_norm, width, &random);
done:
    gpt_close(&p.model);
    free(p.param);
    free(p.grad);
    free(p.moved);
}

/* --------------------------------------------------------------------------------------------------------- resuming */

/* Poison in place of what an earlier step left: what a buffer shares its memory with is never read. */
static bool poisoned(trine_queue *queue, const gpt_data *data, int32_t memory, float *losses_out) {
    gpt_trainer t = { 0 };
    gpt_config config = tiny;
    config.memory = memory;
    bool good = gpt_trainer_open(&t, queue, &config, &short_schedule, data, 3, NULL);
    while (good && t.step < STEPS) {
        memset(t.model.activations, 0xff, (size_t)t.model.arena.bytes);
        good = gpt_trainer_step(&t);
    }
    good = good && gpt_trainer_wait(&t);
    if (good) memcpy(losses_out, t.history.train, STEPS * sizeof(float));
    if (!good) printf("# %s\n", t.error);
    printf("# %s: activations of %lld bytes in %lld\n", tiny.mixed ? "bf16" : "f32", (long long)t.model.arena.separate,
           (long long)t.model.arena.bytes);
    gpt_trainer_close(&t);
    return good;
}

static void check_memory(trine_queue *queue, const gpt_data *data) {
    float separate[STEPS], shared[STEPS], recomputed[STEPS];
    for (tiny.mixed = 0; tiny.mixed < 2; tiny.mixed++) {
        const bool good = poisoned(queue, data, GPT_SEPARATE, separate) && poisoned(queue, data, GPT_SHARED, shared) &&
                          poisoned(queue, data, GPT_RECOMPUTED, recomputed);
        tap(good && !memcmp(separate, shared, sizeof shared) && !memcmp(separate, recomputed, sizeof recomputed),
            "activations that share memory, and some made anew, give the same losses%s", tiny.mixed ? " in bf16" : "");
    }
    tiny.mixed = 0;
}

static void check_resume(trine_queue *queue, trine_queue *single, const gpt_data *data) {
    tap(train_to(queue, data, NULL, 9, "straight"), "nine steps");
    tap(train_to(queue, data, NULL, 4, "part") && train_to(queue, data, "part", 9, "resumed"),
        "four steps, and five more from the checkpoint");
    tap(same_files("straight", "resumed"), "both end in the same bits");
    tap(train_to(single, data, "part", 9, "resumed") && same_files("straight", "resumed"),
        "and so they do with one thread");
    tiny.mixed = 1;
    const bool mixed = train_to(queue, data, NULL, 9, "resumed") && train_to(queue, data, NULL, 4, "part") &&
                       !same_files("straight", "resumed");
    tap(mixed && train_to(single, data, "part", 9, "straight") && same_files("straight", "resumed"),
        "likewise in bf16 with the optimizer in f32");
    tiny.mixed = 0;
    tap(train_to(queue, data, NULL, 9, "straight") && train_to(queue, data, NULL, 4, "part"), "and again in f32");
}

/* ---------------------------------------------------------------------------------------------------------- devices */

/* Another device, or CPU level, may round as the bounds allow. */
static void check_device(trine_queue *queue, trine *lib, int device, const gpt_data *data) {
    float here[CURVE], there[CURVE], perturbed[CURVE];
    double product, sum, worst = 0, most = 0;
    trine_device_info_t info = { .name = "?", .arch = "?" };
    trine_queue *other = NULL;
    bool good =
        trine_device_info(lib, device, &info) == TRINE_OK && trine_queue_open(lib, device, NULL, &other) == TRINE_OK;
    good = good && coefficients(queue, &tiny, &product, &sum) && curve_of(queue, data, &tiny, 0, here) &&
           curve_of(other, data, &tiny, 0, there) && curve_of(queue, data, &tiny, product, perturbed);
    if (good) worst = off_by(here, there, perturbed, sum, &most);
    tap(good && worst <= 1, "the losses of %d steps on %s (%s): off by up to %.1e, %.2f of what the bounds allow",
        CURVE, info.name, info.arch, most, worst);
    trine_queue_close(other);
}

static void check_devices(trine_queue *queue, trine *lib, const gpt_data *data) {
    trine *baseline = NULL;
    if (trine_open(&(trine_options){ .struct_size = sizeof(trine_options), .isa = "baseline" }, &baseline) == TRINE_OK)
        check_device(queue, baseline, 0, data);
    for (int i = 1; i < trine_device_count(lib); i++) check_device(queue, lib, i, data);
    trine_close(baseline);
}

/* ---------------------------------------------------------------------------------------------------- damaged files */

static bool parses(const uint8_t *bytes, size_t size) {
    gpt_checkpoint c;
    char error[256] = "";
    uint8_t *exact = malloc(size + 1); /* so that AddressSanitizer sees a read beyond */
    if (!exact) return false;
    memcpy(exact, bytes, size);
    uint8_t *shrunk = realloc(exact, size ? size : 1);
    const bool good = gpt_checkpoint_parse(&c, shrunk, size, error, sizeof error);
    if (good) gpt_checkpoint_free(&c);
    free(shrunk);
    if (!good && !*error) printf("# no message for %zu bytes\n", size);
    return good || !*error;
}

/* Makes the checksum fit again, so that the checks behind it are reached. */
static void sign(uint8_t *bytes, size_t size) {
    uint64_t hash = gpt_hash(GPT_HASH_START, bytes, size - 8);
    for (int i = 0; i < 8; i++, hash >>= 8) bytes[size - 8 + (size_t)i] = (uint8_t)hash;
}

static void check_damage(void) {
    size_t size = 0;
    uint8_t *bytes = gpt_read_file("straight", 1 << 24, &size);
    if (!tap(bytes && parses(bytes, size), "a whole checkpoint is read")) return;
    int accepted = 0;
    for (size_t cut = 0; cut < size; cut += cut < 300 ? 1 : 997) accepted += parses(bytes, cut);
    tap(accepted == 0, "truncated ones are not");
    for (size_t at = 0; at < size; at += at < 300 ? 1 : 997) {
        bytes[at] ^= 0x10;
        accepted += parses(bytes, size);
        bytes[at] ^= 0x10;
    }
    tap(accepted == 0, "nor ones with a bit changed");
    const size_t context = 2 * 8, parameters = 24 * 8; /* words of the header */
    for (int top = 0; top < 2; top++)
        for (size_t at = context; at <= parameters; at += 8) {
            if (at >= 16 * 8 && at < 21 * 8) continue; /* the random state and the text's hash may be anything */
            uint8_t kept[8];
            memcpy(kept, bytes + at, 8);
            memset(bytes + at, 0xff, 8);
            if (top) bytes[at + 7] = 0x7f;
            sign(bytes, size);
            accepted += parses(bytes, size);
            memcpy(bytes + at, kept, 8);
        }
    tap(accepted == 0, "nor ones with absurd sizes and a good checksum");
    free(bytes);
}

static void check_write(trine_queue *queue, const gpt_data *data) {
    char error[256];
    gpt_checkpoint c;
    tap(mkdir("directory", 0777) == 0 && !train_to(queue, data, "part", 4, "directory") && rmdir("directory") == 0,
        "a checkpoint cannot replace a directory");
    tap(!train_to(queue, data, "part", 4, "missing/file"), "nor be written where there is no directory");
    tap(!gpt_checkpoint_load(&c, "missing", error, sizeof error) && strstr(error, "missing"),
        "a file that is not there: %s", error);
    gpt_data d;
    tap(!gpt_data_load(&d, "missing", 10, error, sizeof error) && strstr(error, "missing"),
        "a text that is not there: %s", error);
    tap(!gpt_data_load(&d, "part", 1 << 20, error, sizeof error) && strstr(error, "needed"),
        "a text that is too short: %s", error);
}

int main(void) {
    char folder[] = "/tmp/trine-gpt-XXXXXX", error[256] = "";
    trine *lib = NULL;
    trine_queue *queue = NULL, *single = NULL;
    gpt_data data = { 0 };
    const trine_queue_options one = { sizeof one, .threads = 1 }, two = { sizeof two, .threads = 2 };
    if (!mkdtemp(folder) || chdir(folder) != 0 || !make_text(&data, error, sizeof error)) {
        printf("Bail out! %s: %s%s\n", folder, strerror(errno), error);
        return 1;
    }
    const bool open = trine_open(NULL, &lib) == TRINE_OK && trine_queue_open(lib, 0, &two, &queue) == TRINE_OK &&
                      trine_queue_open(lib, 0, &one, &single) == TRINE_OK;
    if (tap(open, "trine opens: %s", trine_error_message())) {
        check_gradients(queue);
        check_memory(queue, &data);
        check_resume(queue, single, &data);
        check_devices(queue, lib, &data);
        check_damage();
        check_write(queue, &data);
    }
    trine_queue_close(queue);
    trine_queue_close(single);
    trine_close(lib);
    gpt_data_free(&data);
    for (const char *const *name = (const char *const[]){ "text", "straight", "part", "resumed", NULL }; *name; name++)
        unlink(*name);
    if (chdir("/") == 0) rmdir(folder);
    return tap_end();
}
