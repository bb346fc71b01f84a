/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer of a tokenizer.json, as the library tokenizers writes it, where it is one that this program has. */
#include <stdlib.h>

#include "model.h"

enum { MAX_ID = 1 << 22 };

static bool type_is(const json *j, int32_t node, const char *type) {
    const int32_t value = json_member(j, node, "type");
    return value >= 0 && j->node[value].type == JSON_STRING && slice_is(j->node[value].text, type);
}

static bool flag_is(const json *j, int32_t node, const char *name, bool value) {
    const int32_t flag = json_member(j, node, name);
    return flag >= 0 && j->node[flag].type == (value ? JSON_TRUE : JSON_FALSE);
}

/* ---------------------------------------------------------------------------------------------------------- cutting */

static bool is_llama3(const json *j, int32_t step) {
    static const char pattern[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
                                  " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    const int32_t regex = json_member(j, json_member(j, step, "pattern"), "Regex"),
                  behavior = json_member(j, step, "behavior");
    return type_is(j, step, "Split") && regex >= 0 && slice_is(j->node[regex].text, pattern) && behavior >= 0 &&
           slice_is(j->node[behavior].text, "Isolated") && !flag_is(j, step, "invert", true);
}

static bool is_bytes(const json *j, int32_t step, bool cuts) {
    return type_is(j, step, "ByteLevel") && flag_is(j, step, "add_prefix_space", false) &&
           !flag_is(j, step, "use_regex", !cuts);
}

/* The kind that a list of one or two steps amounts to. */
static const split_kind *kind_of_steps(const json *j, int32_t first, int32_t after) {
    const int32_t second = j->node[first].after, end = second < after ? j->node[second].after : second;
    const bool alone = second == after;
    if (alone && is_bytes(j, first, true)) return split_kind_named(slice_of("gpt-2"));
    if (alone || end != after) return NULL;
    if (type_is(j, first, "Digits") && flag_is(j, first, "individual_digits", true) && is_bytes(j, second, true))
        return split_kind_named(slice_of("smollm"));
    return is_llama3(j, first) && is_bytes(j, second, false) ? split_kind_named(slice_of("llama-bpe")) : NULL;
}

static const split_kind *kind_of(const json *j) {
    const int32_t cutter = json_member(j, 0, "pre_tokenizer");
    if (cutter < 0) return NULL;
    if (!type_is(j, cutter, "Sequence")) return kind_of_steps(j, cutter, j->node[cutter].after);
    const int32_t steps = json_member(j, cutter, "pretokenizers");
    if (steps < 0 || j->node[steps].type != JSON_ARRAY || j->node[steps].after == steps + 1) return NULL;
    return kind_of_steps(j, steps + 1, j->node[steps].after);
}

/* ----------------------------------------------------------------------------------------------------------- tokens */

typedef struct entry {
    slice spelled;
    token_kind kind;
} entry;

/* The largest number of a token, of the vocabulary and of the tokens that were added to it. */
static bool largest_id(const json *j, int32_t vocabulary, int32_t added, uint64_t *out, problem *why) {
    uint64_t id;
    *out = 0;
    for (int32_t i = vocabulary + 1; i < j->node[vocabulary].after; i = j->node[i + 1].after) {
        if (!json_index(j, i + 1, &id) || id >= MAX_ID) return refuse(why, "a token's number is out of range");
        *out = id > *out ? id : *out;
    }
    for (int32_t i = added + 1; added >= 0 && i < j->node[added].after; i = j->node[i].after) {
        const int32_t number = json_member(j, i, "id");
        if (number < 0 || !json_index(j, number, &id) || id >= MAX_ID)
            return refuse(why, "an added token's number is out of range");
        *out = id > *out ? id : *out;
    }
    return true;
}

static bool read_added(const json *j, int32_t added, entry *entries, problem *why) {
    for (int32_t i = added + 1; added >= 0 && i < j->node[added].after; i = j->node[i].after) {
        uint64_t id = 0;
        bool special = false;
        slice content = { 0 };
        json_index(j, json_member(j, i, "id"), &id);
        if (!json_text(j, i, "content", &content, why) || !json_flag(j, i, "special", &special, why)) return false;
        if (flag_is(j, i, "lstrip", true) || flag_is(j, i, "rstrip", true) || flag_is(j, i, "single_word", true))
            return refuse(why, "the added token \"%.*s\" takes space with it, which this program does not know",
                          SHOWN(content));
        entries[id] = (entry){ content, special ? TOKEN_CONTROL : TOKEN_USER };
    }
    return true;
}

static bool add_tokens(tokenizer *t, const entry *entries, uint64_t count, problem *why) {
    for (uint64_t i = 0; i < count; i++)
        if (!tokenizer_add(t, entries[i].spelled, entries[i].kind, why)) return false;
    return tokenizer_add_end(t, why);
}

/* A merge is "left right", or a list of the two. */
static bool read_merges(const json *j, int32_t merges, tokenizer *t, problem *why) {
    for (int32_t i = merges + 1; i < j->node[merges].after; i = j->node[i].after) {
        const slice text = j->node[i].text;
        slice left = text, right = { 0 };
        if (j->node[i].type == JSON_STRING) {
            for (left.size = 0; left.size < text.size && text.bytes[left.size] != ' ';) left.size++;
            if (left.size < text.size) right = (slice){ text.bytes + left.size + 1, text.size - left.size - 1 };
        } else if (j->node[i].type == JSON_ARRAY && j->node[i].after == i + 3) {
            left = j->node[i + 1].text;
            right = j->node[i + 2].text;
        }
        if (!tokenizer_merge(t, left, right, why)) return false;
    }
    return true;
}

static int64_t members(const json *j, int32_t node) {
    int64_t count = 0;
    for (int32_t i = node + 1; i < j->node[node].after; i = j->node[i].after) count++;
    return count;
}

static bool read_model(const json *j, int32_t model, tokenizer *t, problem *why) {
    const int32_t vocabulary = json_member(j, model, "vocab"), merges = json_member(j, model, "merges");
    int32_t added = json_member(j, 0, "added_tokens");
    uint64_t last, bytes = 0;
    const split_kind *kind = kind_of(j);
    if (!kind) return refuse(why, "tokenizer.json cuts texts in a way that this program does not know");
    if (vocabulary < 0 || j->node[vocabulary].type != JSON_OBJECT || merges < 0 || j->node[merges].type != JSON_ARRAY)
        return refuse(why, "the tokenizer's vocabulary or merges are missing");
    if (added >= 0 && j->node[added].type != JSON_ARRAY) added = -1;
    if (!largest_id(j, vocabulary, added, &last, why)) return false;
    entry *entries = calloc(last + 1, sizeof *entries);
    bool good = entries || refuse(why, "out of memory");
    for (int32_t i = vocabulary + 1; good && i < j->node[vocabulary].after; i = j->node[i + 1].after) {
        uint64_t id = 0;
        json_index(j, i + 1, &id);
        entries[id].spelled = j->node[i].text;
    }
    good = good && read_added(j, added, entries, why);
    for (uint64_t i = 0; good && i <= last; i++) bytes += entries[i].spelled.size;
    good = good && tokenizer_open(t, kind, last + 1, (uint64_t)members(j, merges), bytes, why) &&
           add_tokens(t, entries, last + 1, why) && read_merges(j, merges, t, why);
    free(entries);
    return good;
}

/* ------------------------------------------------------------------------------------------------------------ whole */

/* The template in which texts are put, or -1: what is put first is a token of it. */
static int32_t template_of(const json *j, int32_t processor) {
    if (type_is(j, processor, "TemplateProcessing")) return processor;
    const int32_t list = type_is(j, processor, "Sequence") ? json_member(j, processor, "processors") : -1;
    for (int32_t i = list + 1; list >= 0 && i < j->node[list].after; i = j->node[i].after)
        if (type_is(j, i, "TemplateProcessing")) return i;
    return -1;
}

static bool read_first(const json *j, tokenizer *t, problem *why) {
    const int32_t single = json_member(j, template_of(j, json_member(j, 0, "post_processor")), "single");
    slice spelled = { 0 };
    if (single < 0 || j->node[single].type != JSON_ARRAY || j->node[single].after == single + 1) return true;
    const int32_t token = json_member(j, single + 1, "SpecialToken");
    if (token < 0) return true;
    if (!json_text(j, token, "id", &spelled, why)) return false;
    t->first = tokenizer_special(t, spelled);
    return t->first >= 0 || refuse(why, "texts are to begin with \"%.*s\", which is no token", SHOWN(spelled));
}

static bool read_tokenizer(const json *j, tokenizer *t, problem *why) {
    const int32_t model = json_member(j, 0, "model");
    slice prefix = { "", 0 };
    if (model < 0 || !type_is(j, model, "BPE") || flag_is(j, model, "byte_fallback", true))
        return refuse(why, "the tokenizer is not byte-pair encoding over bytes, which this program reads");
    if (json_member(j, 0, "normalizer") >= 0)
        return refuse(why, "the tokenizer changes texts before it cuts them, which this program does not know");
    if (!json_text(j, model, "continuing_subword_prefix", &prefix, why)) return false;
    if (prefix.size > 0)
        return refuse(why, "the tokenizer marks what continues a word, which this program does not know");
    if (!read_model(j, model, t, why) || !read_first(j, t, why)) return false;
    t->whole = flag_is(j, model, "ignore_merges", true);
    return true;
}

bool model_tokenizer_json(tokenizer *t, slice text, problem *why) {
    json j;
    const bool good = json_parse(&j, text, why) && read_tokenizer(&j, t, why);
    json_free(&j);
    return good;
}
