/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint file: a header of 64-bit words, losses, parameters and optimizer state, then the FNV-1a hash of all
 * before it. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
enum { SOME = GPT_STATE_PIECE }; /* numbers that are read and written at once */

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
    c->config = (gpt_config){ .context = (int32_t)word[CONTEXT],
                              .batch = (int32_t)word[BATCH],
                              .layers = (int32_t)word[LAYERS],
                              .width = (int32_t)word[WIDTH],
                              .heads = (int32_t)word[HEADS],
                              .kv_heads = (int32_t)word[KV_HEADS],
                              .hidden = (int32_t)word[HIDDEN],
                              .vocabulary = (int32_t)word[VOCABULARY],
                              .mixed = (int32_t)word[MIXED] };
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
    c->history.train = calloc((size_t)c->history.count + 1, sizeof(float));
    c->history.held_out = calloc((size_t)c->history.held_out_count + 1, sizeof *c->history.held_out);
    return c->history.train && c->history.held_out;
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
    c.state = at;
    *checkpoint = c;
    return true;
}

bool gpt_checkpoint_state(const gpt_checkpoint *checkpoint, int which, int64_t first, int64_t count, float *to) {
    const gpt_checkpoint *c = checkpoint;
    if (!c->state) return c->read(c->from, which, first, count, to);
    const uint8_t *at = c->state + 4 * (which * c->parameters + first);
    get_floats(to, &at, count);
    return true;
}

/* The bytes of a file without a copy of them; NULL and errno. */
static void *map(const char *path, size_t *size_out) {
    struct stat s;
    void *bytes = MAP_FAILED;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return NULL;
    int reason = fstat(file, &s) == 0 ? 0 : errno;
    if (!reason && (S_ISDIR(s.st_mode) || s.st_size > FILE_LIMIT)) reason = S_ISDIR(s.st_mode) ? EISDIR : EFBIG;
    *size_out = reason ? 0 : (size_t)s.st_size;
    if (!reason && (bytes = mmap(NULL, *size_out + !*size_out, PROT_READ, MAP_PRIVATE, file, 0)) == MAP_FAILED)
        reason = errno;
    close(file);
    errno = reason;
    return reason ? NULL : bytes;
}

bool gpt_checkpoint_load(gpt_checkpoint *checkpoint, const char *path, char *error_out, size_t error_size) {
    size_t size = 0;
    *checkpoint = (gpt_checkpoint){ 0 };
    void *bytes = map(path, &size);
    if (!bytes) {
        snprintf(error_out, error_size, "%s: %s", path, strerror(errno));
        return false;
    }
    char wrong[128];
    const bool good = gpt_checkpoint_parse(checkpoint, bytes, size, wrong, sizeof wrong);
    if (!good) snprintf(error_out, error_size, "%s: %s", path, wrong);
    checkpoint->mapped = bytes;
    checkpoint->size = size + !size;
    if (!good) gpt_checkpoint_free(checkpoint);
    return good;
}

/* A file that is being written, and the hash of what was. */
typedef struct writer {
    int file, reason; /* 0, or errno */
    uint64_t hash;
} writer;

static void emit(writer *w, const uint8_t *bytes, int64_t size) {
    w->hash = gpt_hash(w->hash, bytes, (size_t)size);
    for (int64_t done = 0; done < size && !w->reason;) {
        const ssize_t wrote = write(w->file, bytes + done, (size_t)(size - done));
        if (wrote > 0)
            done += wrote;
        else if (wrote == 0 || errno != EINTR)
            w->reason = wrote == 0 ? EIO : errno;
    }
}

static void emit_header(writer *w, const gpt_checkpoint *c) {
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
    uint8_t bytes[8 * HEADER], *at = bytes;
    for (int i = 0; i < HEADER; i++, at += 8) put(at, 8, word[i]);
    emit(w, bytes, sizeof bytes);
}

static void emit_history(writer *w, const gpt_history *history, uint8_t *buffer) {
    for (int64_t first = 0; first < history->count; first += SOME) {
        const int64_t count = history->count - first < SOME ? history->count - first : SOME;
        uint8_t *at = buffer;
        put_floats(&at, history->train + first, count);
        emit(w, buffer, 4 * count);
    }
    for (int64_t i = 0; i < history->held_out_count; i++) {
        put(buffer, 8, (uint64_t)history->held_out[i].step);
        put(buffer + 8, 4, bits_of(history->held_out[i].loss));
        emit(w, buffer, 12);
    }
}

/* False if the state could not be read. */
static bool emit_state(writer *w, const gpt_checkpoint *c, uint8_t *buffer, float *state) {
    for (int which = GPT_PARAM; which <= GPT_V; which++)
        for (int64_t first = 0; first < c->parameters && !w->reason; first += SOME) {
            const int64_t count = c->parameters - first < SOME ? c->parameters - first : SOME;
            uint8_t *at = buffer;
            if (!gpt_checkpoint_state(c, which, first, count, state)) return false;
            put_floats(&at, state, count);
            emit(w, buffer, 4 * count);
        }
    return true;
}

/* All of it on the disk. False with errno; or with 0, if the state could not be read. */
static bool write_file(const char *path, const gpt_checkpoint *c, uint8_t *buffer, float *state) {
    writer w = { open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), 0, GPT_HASH_START };
    if (w.file < 0) return false;
    emit_header(&w, c);
    emit_history(&w, &c->history, buffer);
    const bool read = emit_state(&w, c, buffer, state);
    put(buffer, 8, w.hash);
    emit(&w, buffer, 8);
    if (!w.reason && fsync(w.file) != 0) w.reason = errno;
    if (close(w.file) != 0 && !w.reason) w.reason = errno;
    errno = read ? w.reason : 0;
    return read && !w.reason;
}

bool gpt_checkpoint_save(const gpt_checkpoint *checkpoint, const char *path, char *error_out, size_t error_size) {
    const size_t room = strlen(path) + 32;
    char *temporary = malloc(room);
    uint8_t *buffer = malloc(4 * SOME);
    float *state = malloc(SOME * sizeof *state);
    bool good = temporary && buffer && state;
    if (good) {
        snprintf(temporary, room, "%s.%ld.tmp", path, (long)getpid());
        unlink(temporary); /* of a process of this number that died */
        good = write_file(temporary, checkpoint, buffer, state) && rename(temporary, path) == 0;
        const int reason = errno;
        if (!good) unlink(temporary);
        errno = reason;
    }
    if (!good && errno) snprintf(error_out, error_size, "%s: not written: %s", path, strerror(errno));
    free(temporary);
    free(buffer);
    free(state);
    return good;
}

void gpt_checkpoint_free(gpt_checkpoint *checkpoint) {
    free(checkpoint->history.train);
    free(checkpoint->history.held_out);
    if (checkpoint->mapped) munmap(checkpoint->mapped, checkpoint->size);
    *checkpoint = (gpt_checkpoint){ 0 };
}
