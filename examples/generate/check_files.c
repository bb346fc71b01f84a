/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the example: files that are damaged, JSON, conversations, what is printed, and draws. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chat.h"
#include "examples/gpt/data.h"
#include "output.h"
#include "sampler.h"
#include "tests/tap.h"

#define GOLDEN GENERATE_SOURCE "/tests/golden/generate/"

/* ---------------------------------------------------------------------------------------------------------- damage */

/* The files of a model; a GGUF file has all in the first. */
enum { WEIGHTS, CONFIG, TOKENIZER, PARTS };
typedef struct files {
    uint8_t *bytes[PARTS];
    size_t size[PARTS];
} files;

/* From memory of just that size, so that AddressSanitizer sees a read beyond. */
static bool parses(const files *f, bool folder) {
    model_file m = { 0 };
    problem why = { 0 };
    slice exact[PARTS];
    for (int i = 0; i < PARTS; i++) {
        char *copy = malloc(f->size[i] ? f->size[i] : 1);
        if (!copy) abort();
        if (f->size[i]) memcpy(copy, f->bytes[i], f->size[i]);
        exact[i] = (slice){ copy, f->size[i] };
    }
    const model_parts parts = {
        .config = exact[CONFIG], .tokenizer = exact[TOKENIZER], .weights = { exact[WEIGHTS] }, .weight_files = 1
    };
    const bool good = folder ? model_parse_hugging_face(&m, &parts, &why)
                             : model_parse_gguf(&m, (const uint8_t *)exact[0].bytes, exact[0].size, &why);
    model_close(&m);
    for (int i = 0; i < PARTS; i++) free((void *)(uintptr_t)exact[i].bytes);
    if (!good && !why.text[0]) tap(false, "a file is refused without a sentence");
    return good;
}

/* Every beginning of a file is refused; bytes of its first `head` may be
 * changed in any way without harm, and some changes are seen. */
static void check_part(files *f, int part, size_t head, bool folder, const char *name) {
    const size_t size = f->size[part];
    uint8_t *bytes = f->bytes[part];
    int accepted = 0, refused = 0;
    for (size_t n = 0; n < size; n += n < 64 || n > size - 64 ? 1 : 97) {
        f->size[part] = n;
        accepted += parses(f, folder);
    }
    f->size[part] = size;
    for (size_t at = 0; at < head; at += at < 512 || at > head - 512 ? 1 : 23) {
        const uint8_t kept = bytes[at];
        for (int i = 0; i < 3; i++) {
            bytes[at] = (uint8_t)(i == 0 ? kept ^ 1 : i == 1 ? 0xff : kept ^ 0x80);
            refused += !parses(f, folder);
        }
        bytes[at] = kept;
    }
    tap(accepted == 0, "%s: %d of its beginnings pass for all of it", name, accepted);
    tap(refused > 400, "%s: of those with one byte changed %d are refused", name, refused);
}

static void check_gguf_damage(void) {
    files f = { 0 };
    gguf g;
    problem why = { 0 };
    f.bytes[0] = gpt_read_file(GOLDEN "tiny.gguf", 1 << 24, &f.size[0]);
    if (tap(f.bytes[0] && parses(&f, false), "tiny.gguf is read from memory") &&
        tap(gguf_parse(&g, f.bytes[0], f.size[0], &why), "and taken apart: %s", why.text)) {
        const size_t head = (size_t)(g.tensor[0].data - f.bytes[0]);
        gguf_free(&g);
        check_part(&f, 0, head, false, "tiny.gguf");
    }
    free(f.bytes[0]);
}

static void check_folder_damage(void) {
    static const char *const names[PARTS] = { "model.safetensors", "config.json", "tokenizer.json" };
    files f = { 0 };
    bool good = true;
    for (int i = 0; i < PARTS; i++) {
        char path[512];
        snprintf(path, sizeof path, GOLDEN "hugging_face/%s", names[i]);
        f.bytes[i] = gpt_read_file(path, 1 << 24, &f.size[i]);
        good &= f.bytes[i] != NULL;
        while (good && f.size[i] > 0 && f.bytes[i][f.size[i] - 1] == '\n') f.size[i]--; /* may be missing */
    }
    if (tap(good && parses(&f, true), "hugging_face is read from memory"))
        for (int i = 0; i < PARTS; i++)
            check_part(&f, i, i == WEIGHTS ? 8 + (size_t)little_endian(f.bytes[i], 8) : f.size[i], true, names[i]);
    for (int i = 0; i < PARTS; i++) free(f.bytes[i]);
}

/* ---------------------------------------------------------------------------------------------------- several files */

/* Every second tensor of a model, as a safetensors file. */
static bool write_half(const model_file *m, int half, const char *path) {
    char *header = NULL;
    size_t length = 0, at = 0;
    FILE *text = open_memstream(&header, &length), *file = fopen(path, "w");
    bool good = text && file;
    for (int64_t i = half; good && i < m->tensors; i += 2) {
        const stored *t = &m->tensor[i];
        int64_t count;
        uint64_t bytes;
        good = stored_size(t, &count, &bytes);
        fprintf(text, "%c\"%.*s\":{\"dtype\":\"%s\",\"shape\":[%lld", i == half ? '{' : ',', SHOWN(t->name),
                t->type->name, (long long)t->shape[0]);
        if (t->rank == 2) fprintf(text, ",%lld", (long long)t->shape[1]);
        fprintf(text, "],\"data_offsets\":[%zu,%zu]}", at, at + (size_t)bytes);
        at += (size_t)bytes;
    }
    if (text) fputc('}', text), fclose(text);
    for (int i = 0; good && i < 8; i++) fputc((int)(length >> 8 * i & 255), file);
    good = good && fwrite(header, 1, length, file) == length;
    for (int64_t i = half; good && i < m->tensors; i += 2) {
        int64_t count;
        uint64_t bytes;
        good = stored_size(&m->tensor[i], &count, &bytes) &&
               fwrite(m->tensor[i].data, 1, (size_t)bytes, file) == (size_t)bytes;
    }
    if (file) fclose(file);
    free(header);
    return good;
}

static bool write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

/* The tensor of another model of the same name has the same bytes. */
static bool same_tensors(const model_file *a, const model_file *b) {
    bool same = a->tensors == b->tensors;
    for (int64_t i = 0; same && i < a->tensors; i++) {
        const stored *t = &a->tensor[i], *u = NULL;
        int64_t count;
        uint64_t bytes;
        for (int64_t k = 0; k < b->tensors; k++)
            if (slice_same(t->name, b->tensor[k].name)) u = &b->tensor[k];
        same = u && stored_size(t, &count, &bytes) && !memcmp(t->data, u->data, (size_t)bytes);
    }
    return same;
}

static bool opens_as(const char *index, const model_file *whole, const char *expected) {
    model_file m;
    problem why = { 0 };
    bool good = write_text("model.safetensors.index.json", index);
    if (model_open(&m, ".", &why))
        good = good && !expected && same_tensors(whole, &m);
    else
        good = good && expected && strstr(why.text, expected);
    if (!good) printf("# %s: %s\n", index, why.text);
    model_close(&m);
    return good;
}

/* A model whose tensors are in two files, which an index names. */
static void check_index(void) {
    char path[] = "/tmp/trine-generate-XXXXXX";
    static const char *const names[] = { "one.safetensors", "two.safetensors", "config.json", "tokenizer.json",
                                         "model.safetensors.index.json" };
    model_file whole;
    problem why = { 0 };
    const bool good = model_open(&whole, GOLDEN "hugging_face", &why) && mkdtemp(path) && chdir(path) == 0 &&
                      write_half(&whole, 0, names[0]) && write_half(&whole, 1, names[1]) &&
                      symlink(GOLDEN "hugging_face/config.json", names[2]) == 0 &&
                      symlink(GOLDEN "hugging_face/tokenizer.json", names[3]) == 0;
    if (tap(good, "a model in two files: %s", why.text)) {
        tap(opens_as("{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\",\"c\":\"one.safetensors\"}}",
                     &whole, NULL),
            "its tensors are those of the whole");
        tap(opens_as("{\"weight_map\":{\"a\":\"one.safetensors\"}}", &whole, "there is no tensor") &&
                opens_as("{\"weight_map\":{\"a\":\"../one.safetensors\"}}", &whole, "no file of it") &&
                opens_as("{\"weight_map\":{\"a\":\".\"}}", &whole, "no file of it") &&
                opens_as("{\"weight_map\":{\"a\":\"three\"}}", &whole, "three") &&
                opens_as("{\"weight_map\":{\"a\":3}}", &whole, "no file of it") &&
                opens_as("{\"weight_map\":{}}", &whole, "no files") && opens_as("{}", &whole, "no weight_map") &&
                opens_as("{", &whole, "not JSON"),
            "an index that is wrong");
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unlink(names[i]);
    if (chdir("/") == 0) rmdir(path);
    model_close(&whole);
}

static void check_refusals(void) {
    model_file m;
    problem why = { 0 };
    tap(!model_open(&m, "/missing", &why) && strstr(why.text, "/missing"), "a file that is not there: %s", why.text);
    model_close(&m);
    why.text[0] = 0;
    tap(!model_open(&m, GOLDEN "make.py", &why) && strstr(why.text, "not a GGUF file"), "another file: %s", why.text);
    model_close(&m);
    why.text[0] = 0;
    tap(!model_open(&m, "/", &why) && strstr(why.text, "model.safetensors"), "a folder without a model: %s", why.text);
    model_close(&m);
    why.text[0] = 0;
    tap(!refuse(&why, "a \033[2J%s", "b") && !strcmp(why.text, "a ?[2Jb"), "sentences have no control characters");
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

static bool number_is(const char *text, double value) {
    json j;
    problem why = { 0 };
    char object[512];
    double got = -1;
    snprintf(object, sizeof object, "{\"x\":%s}", text);
    const bool good = json_parse(&j, slice_of(object), &why) && json_number(&j, 0, "x", &got, &why) &&
                      fabs(got - value) <= 1e-14 * fabs(value);
    json_free(&j);
    return good;
}

static bool is_json(const char *text) {
    json j;
    problem why = { 0 };
    const bool good = json_parse(&j, slice_of(text), &why);
    json_free(&j);
    return good;
}

static void check_json(void) {
    json j;
    problem why = { 0 };
    slice text = { 0 };
    int64_t whole = 7;
    bool flag = false,
         good = json_parse(&j,
                           slice_of(" { \"a\" : [ 1 , {} , [] ] , \"b\\n\" : \"\\u00e9\\ud83d\\ude00\\ud83d\\/\", "
                                    "\"c\": true, \"d\": null, \"e\": 12 }\n"),
                           &why);
    tap(good && json_text(&j, 0, "b\n", &text, &why) && slice_is(text, "\u00e9\U0001f600\ufffd/") &&
            json_flag(&j, 0, "c", &flag, &why) && flag && json_whole(&j, 0, "d", &whole, &why) && whole == 7 &&
            json_whole(&j, 0, "e", &whole, &why) && whole == 12,
        "JSON: %s", why.text);
    tap(!json_text(&j, 0, "e", &text, &why) && strstr(why.text, "e is not of the type"), "another type: %s", why.text);
    json_free(&j);
    tap(number_is("1e-05", 1e-5) && number_is("10000.0", 1e4) && number_is("-0.0625", -0.0625) &&
            number_is("123456789012345678901234567890", 1.2345678901234568e29) && number_is("0.1E+3", 100) &&
            !number_is("1e", 1) && !number_is("-", 0) && !number_is("1.2.3", 1.2),
        "numbers");
    char deep[200];
    memset(deep, '[', sizeof deep);
    deep[sizeof deep - 1] = 0;
    static const char *const bad[] = { "",          "{",   "[1,]", "{\"a\"}", "{\"a\":1,}", "\"\\q\"",
                                       "\"\\u12\"", "\"a", "tru",  "[1] 2",   "{1:2}",      "\"\n\"" };
    int accepted = is_json(deep);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) accepted += is_json(bad[i]);
    tap(accepted == 0, "%d texts pass for JSON", accepted);
}

/* ------------------------------------------------------------------------------------------------ chat, text, draws */

static void check_chat(const model_file *m) {
    static const char expected[] = "<|im_start|>system\nYou are tiny.<|im_end|>\n<|im_start|>user\nIs it?<|im_end|>\n"
                                   "<|im_start|>assistant\n";
    chat c;
    problem why = { 0 };
    token_list got = { 0 }, want = { 0 };
    bool good = chat_open(&c, m, NULL, &why) && chat_turn(&c, slice_of("Is it?"), &got, &why) &&
                tokenizer_encode(&m->tokenizer, slice_of(expected), true, &want, &why);
    tap(good && got.count == want.count && !memcmp(got.id, want.id, (size_t)got.count * sizeof *got.id),
        "a conversation's first turn: %s", why.text);
    got.count = want.count = 0;
    good = chat_turn(&c, slice_of("<|im_end|>"), &got, &why) &&
           tokenizer_encode(&m->tokenizer, slice_of("<|im_end|>\n<|im_start|>user\n"), true, &want, &why);
    tap(good && got.count > want.count && !memcmp(got.id, want.id, (size_t)want.count * sizeof *got.id),
        "its second turn ends the answer before it");
    int ends = 0;
    for (int64_t i = 0; i < got.count; i++) ends += got.id[i] == c.end;
    tap(ends == 2, "control tokens that a user writes are text");
    token_list_free(&got);
    token_list_free(&want);
}

/* What is printed after each part is a whole number of characters. */
static void check_output(void) {
    static const char *const parts[] = { "a\xc3", "\xa9", "\xf0\x9f", "\x98", "\x80", "\xff\xe2\x82", "x\xed\xa0", "" };
    static const char *const printed[] = { "a",
                                           "a\u00e9",
                                           "a\u00e9",
                                           "a\u00e9",
                                           "a\u00e9\U0001f600",
                                           "a\u00e9\U0001f600\ufffd",
                                           "a\u00e9\U0001f600\ufffd\ufffd\ufffdx\ufffd\ufffd",
                                           "a\u00e9\U0001f600\ufffd\ufffd\ufffdx\ufffd\ufffd" };
    char text[128] = "";
    output o = { .file = fmemopen(text, sizeof text, "w") };
    int wrong = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        output_add(&o, slice_of(parts[i]));
        wrong += strcmp(text, printed[i]) != 0;
    }
    output_end(&o);
    fclose(o.file);
    tap(wrong == 0, "text is printed in whole characters: %d parts wrong", wrong);
}

static void check_sampler(void) {
    const float logits[6] = { 1, 3, NAN, 3, 2, -INFINITY };
    const float nothing[2] = { NAN, NAN };
    sampler s = { .temperature = 0, .top_k = 40 };
    tap(sampler_pick(&s, logits, 6) == 1 && sampler_pick(&s, nothing, 2) == -1, "the first of the largest is taken");
    s.temperature = 1;
    gpt_random_seed(&s.random, 1);
    int count[6] = { 0 };
    for (int i = 0; i < 20000; i++) count[sampler_pick(&s, logits, 6)]++;
    /* e^0 : e^2 : e^2 : e^1, of 18.5: deviations below 71. */
    tap(abs(count[0] - 1082) < 300 && abs(count[1] - 7992) < 300 && abs(count[3] - 7992) < 300 &&
            abs(count[4] - 2941) < 300 && count[2] + count[5] == 0,
        "draws go as exp(logit): %d %d %d %d", count[0], count[1], count[3], count[4]);
    s.top_k = 2;
    for (int i = 0; i < 6; i++) count[i] = 0;
    for (int i = 0; i < 1000; i++) count[sampler_pick(&s, logits, 6)]++;
    tap(count[1] + count[3] == 1000, "among the two largest alone");
}

int main(void) {
    model_file m;
    problem why = { 0 };
    check_gguf_damage();
    check_folder_damage();
    check_index();
    check_refusals();
    check_json();
    static const char *const models[] = { GOLDEN "tiny.gguf", GOLDEN "hugging_face" };
    for (int i = 0; i < 2; i++) {
        if (tap(model_open(&m, models[i], &why), "%s: %s", models[i], why.text)) {
            check_chat(&m);
            tap(m.tokenizer.first == -1 + i && m.tokenizer.stops == 1 && tokenizer_stops(&m.tokenizer, 2),
                "how texts begin and answers end");
        }
        model_close(&m);
    }
    check_output();
    check_sampler();
    return tap_end();
}
