/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: the files of a folder of any bytes. Two words of 32 bits are the sizes of config.json and tokenizer.json,
 * which follow; the rest is model.safetensors. What is refused is refused with a sentence; of what is a model, the
 * tokenizer encodes text. */
#include <stdlib.h>

#include "examples/generate/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const model_file *m) {
    static const char text[] = "<|im_start|>It's 12 of\xf0\x9f\x98\x80\xff  \n\n the ";
    token_list list = { 0 };
    problem why = { 0 };
    if (!tokenizer_encode(&m->tokenizer, slice_of(text), true, &list, &why) && why.text[0] == 0) abort();
    for (int64_t i = 0; i < list.count; i++) {
        if (list.id[i] < 0 || list.id[i] >= m->tokenizer.tokens) abort();
        tokenizer_text(&m->tokenizer, list.id[i]);
    }
    token_list_free(&list);
    float out[1];
    for (int64_t i = 0; i < m->tensors; i++) {
        const stored *t = &m->tensor[i];
        int64_t count;
        if (!stored_size(t, &count, NULL)) abort();
        for (int64_t at = 0; at < count; at++) t->type->decode(t->data + at * t->type->bytes, 1, out);
    }
}

static void check(bool good, const problem *why) {
    if (!good && why->text[0] == 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cursor c = { data, data + size };
    uint32_t config, words;
    const uint8_t *at[2];
    model_file m = { 0 };
    tokenizer t;
    safetensors s;
    problem why[3] = { { .text = "" } };
    if (!cursor_u32(&c, &config) || !cursor_u32(&c, &words) || !cursor_take(&c, config, &at[0]) ||
        !cursor_take(&c, words, &at[1]))
        return 0;
    const model_parts parts = { .config = { (const char *)at[0], config },
                                .tokenizer = { (const char *)at[1], words },
                                .weights = { { (const char *)c.at, (size_t)(c.end - c.at) } },
                                .weight_files = 1 };
    const bool good = model_parse_hugging_face(&m, &parts, &why[0]);
    check(good, &why[0]);
    if (good) use(&m);
    model_close(&m);
    /* Each by itself too, so that one that is wrong does not hide another. */
    t = (tokenizer){ 0 };
    check(model_tokenizer_json(&t, parts.tokenizer, &why[1]), &why[1]);
    tokenizer_free(&t);
    check(safetensors_parse(&s, c.at, (size_t)(c.end - c.at), &why[2]), &why[2]);
    safetensors_free(&s);
    return 0;
}
