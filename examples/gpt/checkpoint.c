/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint file: a header of 64-bit words, losses, parameters and optimizer state, then the FNV-1a hash of all
 * before it. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint.h"
#include "data.h"

/* Words of the header. The magic number has bytes that a text-mode copy would change. */
enum {
    MAGIC,
    VERSION,
    CONTEXT,
    BATCH,
    LAYERS,
    WIDTH,
    HEADS,
    KV_HEADS,
    HIDDEN,
    STEPS,
    WARMUP,
    RATE,
    BETA1,
    BETA2,
    WEIGHT_DECAY,
    MAX_NORM,
    RANDOM,
    TEXT_HASH = RANDOM + 4,
    STEP,
    HISTORY,
    HELD_OUT,
    PARAMETERS,
    VOCABULARY,
    MIXED,
    HEADER
};
#define MAGIC_WORD 0x0a0d1a7470677274u /* "trgpt", 0x1a, CR, LF, in the order of bytes */
#define FILE_VERSION 2
#define FILE_LIMIT ((int64_t)1 << 36)
#define STEP_LIMIT ((int64_t)1 << 40)

static uint64_t get(const uint8_t *bytes, int count) {
    uint64_t x = 0;
    for (int i = count - 1; i >= 0; i--) x = x << 8 | bytes[i];
    return x;
}

static void put(uint8_t *bytes, int count, uint64_t x) {
    for (int i = 0; i < count; i++, x >>= 8) bytes[i] = (uint8_t)x;
}

static float float_of(uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return x;
}

static uint64_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void get_floats(float *to, const uint8_t **at, int64_t count) {
    for (int64_t i = 0; i < count; i++, *at += 4) to[i] = float_of(get(*at, 4));
}

static void put_floats(uint8_t **at, const float *from, int64_t count) {
    for (int64_t i = 0; i < count; i++, *at += 4) put(*at, 4, bits_of(from[i]));
}

static bool within(float x, float low, float high) { return x >= low && x <= high; }

/* NULL, or what is wrong. */
static const char *header_check(const gpt_checkpoint *c, const uint64_t *word) {
    for (int i = CONTEXT; i <= HIDDEN; i++)
        if (word[i] > INT32_MAX || word[VOCABULARY] > INT32_MAX || word[MIXED] > 1) return "a size is out of range";
    for (int i = RATE; i <= MAX_NORM; i++)
        if (word[i] > UINT32_MAX) return "a rate is out of range";
    const char *wrong = gpt_config_check(&c->config);
    if (wrong) return wrong;
    const gpt_schedule *s = &c->schedule;
    if (s->steps < 1 || s->steps > STEP_LIMIT || s->warmup < 0 || s->warmup > s->steps)
        return "the schedule's steps are out of range";
    if (!within(s->rate, 0, 1e3f) || !within(s->beta1, 0, 0.9999999f) || !within(s->beta2, 0, 0.9999999f) ||
        !within(s->weight_decay, 0, 1e3f) || !within(s->max_norm, 0, 1e30f))
        return "the schedule's rates are out of range";
    if (c->step < 0 || c->step > s->steps) return "the step is out of range";
    if (c->history.count != c->step || c->history.held_out_count < 0 || c->history.held_out_count > c->step + 1)
        return "the history does not fit the step";
    if (!(c->random.state[0] | c->random.state[1] | c->random.state[2] | c->random.state[3]))
        return "the random state is zero";
    return c->parameters == gpt_parameters(&c->config) ? NULL : "the number of parameters does not fit the model";
}

static void header_read(gpt_checkpoint *c, const uint64_t *word) {
    c->config = (gpt_config){ (int32_t)word[CONTEXT], (int32_t)word[BATCH],      (int32_t)word[LAYERS],
                              (int32_t)word[WIDTH],   (int32_t)word[HEADS],      (int32_t)word[KV_HEADS],
                              (int32_t)word[HIDDEN],  (int32_t)word[VOCABULARY], (int32_t)word[MIXED] };
    c->schedule = (gpt_schedule){ (int64_t)word[STEPS],    (int64_t)word[WARMUP], float_of(word[RATE]),
                                  float_of(word[BETA1]),   float_of(word[BETA2]), float_of(word[WEIGHT_DECAY]),
                                  float_of(word[MAX_NORM]) };
    memcpy(c->random.state, word + RANDOM, sizeof c->random.state);
    c->text_hash = word[TEXT_HASH];
    c->step = (int64_t)word[STEP];
    c->history = (gpt_history){ .count = (int64_t)word[HISTORY], .held_out_count = (int64_t)word[HELD_OUT] };
    c->parameters = (int64_t)word[PARAMETERS];
}

/* Bytes of a file whose header has been checked. */
static int64_t file_size(const gpt_checkpoint *c) {
    return 8 * HEADER + 4 * c->history.count + 12 * c->history.held_out_count + 12 * c->parameters + 8;
}

static bool allocate(gpt_checkpoint *c) {
    const size_t n = (size_t)c->parameters;
    c->history.train = calloc((size_t)c->history.count + 1, sizeof(float));
    c->history.held_out = calloc((size_t)c->history.held_out_count + 1, sizeof *c->history.held_out);
    c->param = malloc(n * sizeof(float));
    c->m = malloc(n * sizeof(float));
    c->v = malloc(n * sizeof(float));
    return c->history.train && c->history.held_out && c->param && c->m && c->v;
}

bool gpt_checkpoint_parse(gpt_checkpoint *checkpoint, const uint8_t *bytes, size_t size, char *error_out,
                          size_t error_size) {
    gpt_checkpoint c = { 0 };
    uint64_t word[HEADER];
    const char *wrong = NULL;
    *checkpoint = c;
    if (size < 8 || get(bytes, 8) != MAGIC_WORD)
        wrong = "not a checkpoint";
    else if (size < 8 * HEADER + 8)
        wrong = "truncated";
    else if (get(bytes + 8, 8) != FILE_VERSION)
        wrong = "a checkpoint of another version";
    else if (gpt_hash(GPT_HASH_START, bytes, size - 8) != get(bytes + size - 8, 8))
        wrong = "corrupt: the checksum does not match";
    if (!wrong) {
        for (int i = 0; i < HEADER; i++) word[i] = get(bytes + 8 * i, 8);
        header_read(&c, word);
        wrong = header_check(&c, word);
    }
    if (!wrong && (int64_t)size != file_size(&c)) wrong = "the size of the file does not fit its header";
    if (!wrong && !allocate(&c)) wrong = "out of memory";
    if (wrong) {
        gpt_checkpoint_free(&c);
        snprintf(error_out, error_size, "%s", wrong);
        return false;
    }
    const uint8_t *at = bytes + 8 * HEADER;
    get_floats(c.history.train, &at, c.history.count);
    for (int64_t i = 0; i < c.history.held_out_count; i++, at += 12)
        c.history.held_out[i] = (struct gpt_held_out){ (int64_t)get(at, 8), float_of(get(at + 8, 4)) };
    get_floats(c.param, &at, c.parameters);
    get_floats(c.m, &at, c.parameters);
    get_floats(c.v, &at, c.parameters);
    *checkpoint = c;
    return true;
}

bool gpt_checkpoint_load(gpt_checkpoint *checkpoint, const char *path, char *error_out, size_t error_size) {
    size_t size = 0;
    *checkpoint = (gpt_checkpoint){ 0 };
    uint8_t *bytes = gpt_read_file(path, FILE_LIMIT, &size);
    if (!bytes) {
        snprintf(error_out, error_size, "%s: %s", path, strerror(errno));
        return false;
    }
    char wrong[128];
    const bool good = gpt_checkpoint_parse(checkpoint, bytes, size, wrong, sizeof wrong);
    if (!good) snprintf(error_out, error_size, "%s: %s", path, wrong);
    free(bytes);
    return good;
}

static void encode(const gpt_checkpoint *c, uint8_t *bytes, int64_t size) {
    const gpt_schedule *s = &c->schedule;
    uint64_t word[HEADER] = { [MAGIC] = MAGIC_WORD,
                              [VERSION] = FILE_VERSION,
                              [CONTEXT] = (uint64_t)c->config.context,
                              [BATCH] = (uint64_t)c->config.batch,
                              [LAYERS] = (uint64_t)c->config.layers,
                              [WIDTH] = (uint64_t)c->config.width,
                              [HEADS] = (uint64_t)c->config.heads,
                              [KV_HEADS] = (uint64_t)c->config.kv_heads,
                              [HIDDEN] = (uint64_t)c->config.hidden,
                              [STEPS] = (uint64_t)s->steps,
                              [WARMUP] = (uint64_t)s->warmup,
                              [RATE] = bits_of(s->rate),
                              [BETA1] = bits_of(s->beta1),
                              [BETA2] = bits_of(s->beta2),
                              [WEIGHT_DECAY] = bits_of(s->weight_decay),
                              [MAX_NORM] = bits_of(s->max_norm),
                              [TEXT_HASH] = c->text_hash,
                              [STEP] = (uint64_t)c->step,
                              [HISTORY] = (uint64_t)c->history.count,
                              [HELD_OUT] = (uint64_t)c->history.held_out_count,
                              [PARAMETERS] = (uint64_t)c->parameters,
                              [VOCABULARY] = (uint64_t)c->config.vocabulary,
                              [MIXED] = (uint64_t)c->config.mixed };
    memcpy(word + RANDOM, c->random.state, sizeof c->random.state);
    uint8_t *at = bytes;
    for (int i = 0; i < HEADER; i++, at += 8) put(at, 8, word[i]);
    put_floats(&at, c->history.train, c->history.count);
    for (int64_t i = 0; i < c->history.held_out_count; i++, at += 12) {
        put(at, 8, (uint64_t)c->history.held_out[i].step);
        put(at + 8, 4, bits_of(c->history.held_out[i].loss));
    }
    put_floats(&at, c->param, c->parameters);
    put_floats(&at, c->m, c->parameters);
    put_floats(&at, c->v, c->parameters);
    put(at, 8, gpt_hash(GPT_HASH_START, bytes, (size_t)size - 8));
}

/* All of it on the disk, or false with errno. */
static bool write_file(const char *path, const uint8_t *bytes, int64_t size) {
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return false;
    int reason = 0;
    for (int64_t done = 0; done < size && !reason;) {
        const ssize_t wrote = write(file, bytes + done, (size_t)(size - done));
        if (wrote > 0)
            done += wrote;
        else if (wrote == 0 || errno != EINTR)
            reason = wrote == 0 ? EIO : errno;
    }
    if (!reason && fsync(file) != 0) reason = errno;
    if (close(file) != 0 && !reason) reason = errno;
    errno = reason;
    return !reason;
}

bool gpt_checkpoint_save(const gpt_checkpoint *checkpoint, const char *path, char *error_out, size_t error_size) {
    const int64_t size = file_size(checkpoint);
    const size_t room = strlen(path) + 32;
    char *temporary = malloc(room);
    uint8_t *bytes = malloc((size_t)size);
    bool good = temporary && bytes;
    if (good) {
        encode(checkpoint, bytes, size);
        snprintf(temporary, room, "%s.%ld.tmp", path, (long)getpid());
        unlink(temporary); /* of a process of this number that died */
        good = write_file(temporary, bytes, size) && rename(temporary, path) == 0;
        const int reason = errno;
        if (!good) unlink(temporary);
        errno = reason;
    }
    if (!good) snprintf(error_out, error_size, "%s: not written: %s", path, strerror(errno));
    free(temporary);
    free(bytes);
    return good;
}

void gpt_checkpoint_free(gpt_checkpoint *checkpoint) {
    free(checkpoint->history.train);
    free(checkpoint->history.held_out);
    free(checkpoint->param);
    free(checkpoint->m);
    free(checkpoint->v);
    *checkpoint = (gpt_checkpoint){ 0 };
}
