/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the example: what tests/golden/generate says of blocks, texts and models. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llama.h"
#include "sampler.h"
#include "tests/tap.h"

#define GOLDEN GENERATE_SOURCE "/tests/golden/generate/"

/* ----------------------------------------------------------------------------------------------------- golden files */

/* Numbers of a golden file, up to the next line that does not begin with a space. */
typedef struct numbers {
    int64_t count;
    uint32_t value[4096];
} numbers;

static FILE *golden_open(const char *path) {
    FILE *file = fopen(path, "r");
    char line[128];
    /* the two lines of comment */
    return file && fgets(line, sizeof line, file) && fgets(line, sizeof line, file) ? file : NULL;
}

/* The next word of a line that names it, to `word`, up to `size` bytes. */
static bool golden_word(FILE *file, const char *expected, char *word, size_t size) {
    char *line = NULL;
    size_t room = 0;
    const ssize_t length = getline(&line, &room, file);
    const size_t skip = strlen(expected);
    const bool good = length > (ssize_t)skip && !strncmp(line, expected, skip) && (size_t)length - skip < size;
    if (good) {
        line[length - 1] = 0;
        snprintf(word, size, "%s", line + skip + (line[skip] == ' '));
    } else if (length > 0) {
        fseek(file, -length, SEEK_CUR);
    }
    free(line);
    return good;
}

static void golden_numbers(FILE *file, int base, numbers *out) {
    out->count = 0;
    for (int c; (c = fgetc(file)) == ' ' || c == '\n';) {
        char word[16];
        const int next = fgetc(file);
        ungetc(next, file);
        if (c == '\n' && next != ' ') break;
        if (c == '\n' || fscanf(file, "%15s", word) != 1) continue;
        if (out->count < 4096) out->value[out->count++] = (uint32_t)strtoul(word, NULL, base);
    }
}

static float f32_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

static size_t bytes_of_hex(const char *text, uint8_t *out) {
    size_t size = 0;
    for (; sscanf(text + 2 * size, "%2" SCNx8, &out[size]) == 1; size++) continue;
    return size;
}

static float packed_number(const packing *p, const void *data, int64_t i) {
    return p->wide ? ((const float *)data)[i] : storage_half((const uint8_t *)data + 2 * i);
}

/* What codes in groups stand for is what is decoded, up to a rounding where a min is added. */
static void check_packing(const storage *s, const uint8_t *bytes, size_t size, const float *decoded) {
    const packing *p = s->packing;
    const int64_t blocks = (int64_t)size / s->bytes;
    uint8_t codes[512];
    _Alignas(4) uint8_t scales[256], mins[256];
    int64_t wrong = 0;
    p->pack(bytes, blocks, codes, scales, mins);
    for (int64_t i = 0; i < blocks * s->block; i++) {
        const int64_t g = i / p->group, bit = i * p->bits;
        int code = codes[bit / 8] >> bit % 8 & ((1 << p->bits) - 1);
        if (p->is_signed && code >> (p->bits - 1)) code -= 1 << p->bits;
        const float min = p->mins ? packed_number(p, mins, g) : 0,
                    x = (float)(code - p->offset) * packed_number(p, scales, g) + min;
        wrong += isnan(decoded[i]) ? !isnan(x) : !(fabsf(x - decoded[i]) <= 0x1p-23f * fabsf(x - min));
    }
    tap(wrong == 0, "%s in groups: %" PRId64 " elements are wrong", s->name, wrong);
}

static void check_blocks(void) {
    static char word[1024];
    static numbers want;
    uint8_t bytes[512];
    float got[512];
    FILE *file = golden_open(GOLDEN "blocks.txt");
    int types = 0;
    for (char name[16]; file && golden_word(file, "type", name, sizeof name); types++) {
        const storage *s = storage_named(slice_of(name));
        const bool read = golden_word(file, "bytes", word, sizeof word);
        const size_t size = read ? bytes_of_hex(word, bytes) : 0;
        golden_numbers(file, 16, &want);
        if (!tap(s && size > 0 && size % (size_t)s->bytes == 0 && want.count == (int64_t)size / s->bytes * s->block,
                 "blocks of %s", name))
            continue;
        s->decode(bytes, (int64_t)size / s->bytes, got);
        int64_t wrong = 0;
        /* Where a scale and an offset are added, a compiler may have fused the product with the sum: then a rounding
         * of the product is missing, which is at most 2^-24 of 15 scales of 0.05. */
        for (int64_t i = 0; i < want.count; i++) {
            const float w = f32_of(want.value[i]);
            wrong += isnan(w) ? !isnan(got[i]) : !(got[i] == w || fabsf(got[i] - w) <= 0x1p-24f);
        }
        tap(wrong == 0, "%s: %" PRId64 " of %" PRId64 " elements are wrong", name, wrong, want.count);
        if (s->packing) check_packing(s, bytes, size, got);
    }
    int known = 0;
    while (storage_row(known)) known++;
    tap(types == known, "all types of tensors have golden blocks: %d of %d", types, known);
    if (file) fclose(file);
}

/* ----------------------------------------------------------------------------------------------------------- tokens */

static bool lacks(const tokenizer *t, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (t->of_byte[bytes[i]] < 0) return true;
    return false;
}

/* Whether a text has the tokens it should, which spell it again. */
static bool text_agrees(const tokenizer *t, slice text, const numbers *want) {
    problem why = { 0 };
    token_list list = { 0 };
    bool good = tokenizer_encode(t, text, true, &list, &why) && list.count == want->count;
    for (int64_t i = 0; good && i < list.count; i++) good = (uint32_t)list.id[i] == want->value[i];
    list.count = 0;
    good = good && tokenizer_encode(t, text, false, &list, &why);
    size_t at = 0;
    for (int64_t i = 0; good && i < list.count; i++) {
        const slice s = tokenizer_text(t, list.id[i]);
        good = lacks(t, (const uint8_t *)text.bytes, text.size) ||
               (at + s.size <= text.size && !memcmp(text.bytes + at, s.bytes, s.size));
        at += s.size;
    }
    token_list_free(&list);
    return good && (at == text.size || lacks(t, (const uint8_t *)text.bytes, text.size));
}

static void check_tokens(tokenizer *t) {
    static char word[4096];
    static uint8_t bytes[2048];
    static numbers want;
    const split_kind *own = t->kind;
    FILE *file = golden_open(GOLDEN "tokens.txt");
    int kinds = 0;
    for (char name[32]; file && golden_word(file, "cut", name, sizeof name); kinds++) {
        int texts = 0, wrong = 0;
        t->kind = split_kind_named(slice_of(name));
        t->whole = t->kind && split_kind_whole(t->kind);
        while (t->kind && golden_word(file, "text", word, sizeof word)) {
            const size_t size = bytes_of_hex(word, bytes);
            golden_numbers(file, 10, &want);
            wrong += !text_agrees(t, (slice){ (const char *)bytes, size }, &want);
            texts++;
        }
        tap(texts > 50 && wrong == 0, "%s: %d of %d texts have other tokens", name, wrong, texts);
    }
    tap(kinds == 3, "three ways of cutting texts");
    t->kind = own;
    t->whole = split_kind_whole(own);
    if (file) fclose(file);
}

/* ----------------------------------------------------------------------------------------------------------- models */

typedef struct golden_model {
    numbers prompt, place[3], losses, follows;
    numbers logits[3];
} golden_model;

static bool golden_model_read(FILE *file, golden_model *g, char *name, size_t size) {
    char word[64];
    if (!golden_word(file, "model", name, size) || !golden_word(file, "prompt", word, sizeof word)) return false;
    golden_numbers(file, 10, &g->prompt);
    for (int i = 0; i < 3; i++) {
        if (!golden_word(file, "logits", word, sizeof word)) return false;
        g->place[i].value[0] = (uint32_t)strtoul(word, NULL, 10);
        golden_numbers(file, 16, &g->logits[i]);
    }
    if (!golden_word(file, "losses", word, sizeof word)) return false;
    golden_numbers(file, 16, &g->losses);
    if (!golden_word(file, "follows", word, sizeof word)) return false;
    golden_numbers(file, 10, &g->follows);
    return g->prompt.count > 0 && g->follows.count > 0;
}

/* The largest difference, as a part of the largest expected number. */
static double difference(const float *got, const numbers *want) {
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < want->count; i++) {
        const double w = (double)f32_of(want->value[i]), d = fabs((double)got[i] - w);
        largest = fmax(largest, fabs(w));
        worst = d <= worst ? worst : d; /* NaN becomes the worst */
    }
    return worst / largest;
}

/* The prompt in parts of `part` tokens: the logits at the golden places, in the file's order. */
static double logits_differ(llama *m, const golden_model *g, int64_t part, float *logits) {
    double worst = 0;
    problem why = { 0 };
    int64_t at = 0;
    sequence s = { 0 };
    for (int i = 0; i < 3; i++)
        for (const int64_t end = (int64_t)g->place[i].value[0] + 1; at < end;) {
            const int64_t n = end - at < part ? end - at : part;
            if (!llama_read(m, &s, (const int32_t *)g->prompt.value + at, n, logits, &why)) return INFINITY;
            at += n;
            if (at == end) worst = fmax(worst, difference(logits, &g->logits[i]));
        }
    sequence_end(&m->pool, &s);
    return worst;
}

static int64_t follows_wrongly(llama *m, const golden_model *g, int32_t tokens, float *logits) {
    sampler greedy = { 0 };
    problem why = { 0 };
    int64_t wrong = 0;
    sequence s = { 0 };
    if (!llama_read(m, &s, (const int32_t *)g->prompt.value, g->prompt.count, logits, &why)) return -1;
    for (int64_t i = 0; i < g->follows.count; i++) {
        const int32_t id = (int32_t)g->follows.value[i];
        wrong += sampler_pick(&greedy, logits, tokens) != id;
        if (!llama_read(m, &s, &id, 1, logits, &why)) return -1;
    }
    sequence_end(&m->pool, &s);
    return wrong;
}

static double losses_differ(llama *m, const golden_model *g) {
    float losses[64];
    problem why = { 0 };
    sequence s = { 0 };
    const int32_t *tokens = (const int32_t *)g->prompt.value;
    const bool good = llama_losses(m, &s, tokens, tokens + 1, g->losses.count, losses, &why);
    sequence_end(&m->pool, &s);
    return good ? difference(losses, &g->losses) : INFINITY;
}

static void check_model(trine_queue *queue, const model_file *file, const golden_model *g, trine_dtype type,
                        bool decoded, const char *name, const char *device) {
    llama m;
    problem why = { 0 };
    const char *type_name = trine_dtype_name(type);
    const llama_options options = { .type = type, .decoded = decoded, .context = 64, .slots = 4 };
    sequence s = { 0 };
    /* Of the largest logit. Sums of up to 256 products of f32 are off by some 2^-22 of their size, and seven of them
     * follow each other in two layers; bf16 has 16 bits less. */
    const double bound = type == TRINE_F32 ? 0x1p-17 : 0x1p-4;
    float *logits = malloc((size_t)file->config.vocabulary * sizeof *logits);
    if (!tap(logits && llama_open(&m, file, queue, &options, &why), "%s opens on %s in %s%s: %s", name, device,
             type_name, decoded ? ", decoded" : "", why.text))
        goto done;
    double off = logits_differ(&m, g, 64, logits);
    tap(off <= bound, "its logits are off by %.1e of the largest", off);
    off = logits_differ(&m, g, 1, logits);
    tap(off <= bound, "read token by token: %.1e", off);
    m.options.chunk = 5;
    off = logits_differ(&m, g, 64, logits);
    tap(off <= bound, "read in parts: %.1e", off);
    off = losses_differ(&m, g);
    tap(off <= bound, "its losses: %.1e", off);
    const int64_t wrong = follows_wrongly(&m, g, file->tokenizer.tokens ? file->tokenizer.tokens : 512, logits);
    tap(type == TRINE_F32 ? wrong == 0 : wrong >= 0, "tokens that follow: %" PRId64 " of %" PRId64 " differ", wrong,
        g->follows.count);
    tap(!llama_read(&m, &s, (const int32_t *)g->prompt.value, 65, logits, &why) && strstr(why.text, "context of 64"),
        "more tokens than fit: %s", why.text);
done:
    llama_close(&m);
    free(logits);
}

static void check_models(trine *lib) {
    static golden_model g;
    char name[64];
    FILE *golden = golden_open(GOLDEN "model.txt");
    int models = 0;
    for (; golden && golden_model_read(golden, &g, name, sizeof name); models++) {
        char path[512];
        model_file file;
        problem why = { 0 };
        snprintf(path, sizeof path, GOLDEN "%s", name);
        if (tap(model_open(&file, path, &why), "%s: %s", name, why.text))
            for (int d = 0; d < trine_device_count(lib); d++) {
                trine_queue *queue = NULL;
                trine_device_info_t info = { 0 };
                if (!tap(trine_device_info(lib, d, &info) == TRINE_OK &&
                             trine_queue_open(lib, d, NULL, &queue) == TRINE_OK,
                         "device %d: %s", d, trine_error_message()))
                    continue;
                for (int decoded = 0; decoded < 2; decoded++) {
                    check_model(queue, &file, &g, TRINE_F32, decoded, name, info.name);
                    check_model(queue, &file, &g, TRINE_BF16, decoded, name, info.name);
                }
                trine_queue_close(queue);
            }
        model_close(&file);
    }
    tap(models == 2, "%d models", models);
    if (golden) fclose(golden);
}

int main(void) {
    trine *lib = NULL;
    model_file m;
    problem why = { 0 };
    check_blocks();
    static const char *const models[] = { "tiny.gguf", "hugging_face" };
    for (int i = 0; i < 2; i++) {
        char path[512];
        snprintf(path, sizeof path, GOLDEN "%s", models[i]);
        if (tap(model_open(&m, path, &why), "%s: %s", models[i], why.text)) check_tokens(&m.tokenizer);
        model_close(&m);
    }
    if (tap(trine_open(NULL, &lib) == TRINE_OK, "trine opens: %s", trine_error_message())) check_models(lib);
    trine_close(lib);
    return tap_end();
}
