/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: a GGUF file of any bytes. What is refused is refused with a sentence. Of what is taken apart, every value
 * and tensor is read; of what is a model, its tokenizer encodes text, and its tokens are spelled. */
#include <stdlib.h>
#include <string.h>

#include "examples/generate/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_values(const gguf *g) {
    for (int64_t i = 0; i < g->values; i++) {
        char key[64];
        int64_t whole;
        double number;
        slice text;
        bool flag;
        problem why = { 0 };
        if (g->value[i].key.size >= sizeof key) continue;
        memcpy(key, g->value[i].key.bytes, g->value[i].key.size);
        key[g->value[i].key.size] = 0;
        if (!gguf_whole(g, key, &whole, &why) + !gguf_number(g, key, &number, &why) + !gguf_text(g, key, &text, &why) +
                    !gguf_flag(g, key, &flag, &why) >
                0 &&
            why.text[0] == 0)
            abort();
    }
}

static void read_tensors(const gguf *g) {
    for (int64_t i = 0; i < g->tensors; i++) {
        const stored *t = &g->tensor[i];
        float out[256];
        int64_t count;
        uint64_t bytes;
        if (!stored_size(t, &count, &bytes)) abort();
        for (int64_t at = 0; at < count; at += t->type->block)
            t->type->decode(t->data + at / t->type->block * t->type->bytes, 1, out);
    }
}

static void use(const model_file *m) {
    static const char text[] = "<|im_start|>It's 12 of\xf0\x9f\x98\x80\xff  \n\n the ";
    token_list list = { 0 };
    chat c;
    problem why = { 0 };
    if (!tokenizer_encode(&m->tokenizer, slice_of(text), true, &list, &why) && why.text[0] == 0) abort();
    for (int64_t i = 0; i < list.count; i++) {
        if (list.id[i] < 0 || list.id[i] >= m->tokenizer.tokens) abort();
        tokenizer_text(&m->tokenizer, list.id[i]);
    }
    if (chat_open(&c, m, NULL, &why)) chat_turn(&c, slice_of(text), &list, &why);
    token_list_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gguf g;
    model_file m = { 0 };
    problem why = { 0 };
    if (gguf_parse(&g, data, size, &why)) {
        read_values(&g);
        read_tensors(&g);
    } else if (why.text[0] == 0) {
        abort();
    }
    gguf_free(&g);
    why.text[0] = 0;
    if (model_parse_gguf(&m, data, size, &why))
        use(&m);
    else if (why.text[0] == 0)
        abort();
    model_close(&m);
    return 0;
}
