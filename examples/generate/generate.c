/* SPDX-License-Identifier: Apache-2.0 */
/* Answers with a language model of Llama's family through trine's public API: the command. */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch.h"
#include "chat.h"
#include "examples/gpt/data.h"
#include "perplexity.h"

typedef struct options {
    const char *model, *prompt, *prompts, *device, *system, *perplexity;
    int64_t tokens, guesses;
    llama_options llama;
    int threads;
    bool chat;
    sampler sampler;
} options;

static const char usage[] =
    "Usage: trine-generate MODEL [OPTION]...\n"
    "Continues a text, or answers, with a language model of Llama's family, through trine.\n"
    "\n"
    "MODEL is a GGUF file, or a folder as transformers saves it: config.json, model.safetensors, tokenizer.json.\n"
    "\n"
    "  --prompt TEXT      what is to be continued, or answered (default: standard input)\n"
    "  --prompts FILE     a prompt on each line, or a question with --chat; several at once, printed in their order\n"
    "  --chat             answer, in the form of ChatML; of standard input each line is a turn\n"
    "  --system TEXT      what a conversation begins with (what the model's template has)\n"
    "  --tokens N         the most to write (256)\n"
    "  --temperature T    of the draw of a token; 0 takes the likeliest (0)\n"
    "  --top-k K          draw among the K likeliest (40)\n"
    "  --seed S           of the draws (1)\n"
    "  --perplexity FILE  instead of all that, print the perplexity of a text\n"
    "  --speculate N      guess N tokens, up to 15, by what followed the last ones before; the text is the same (0)\n"
    "  --context N        tokens that are remembered (2048, or what the model has)\n"
    "  --slots N          prompts at once (8); N of --speculate and 1, times this, is up to 64\n"
    "  --cache N          tokens that are remembered of all prompts at once (what the slots may need)\n"
    "  --chunk N          tokens of a prompt that are read at once (512)\n"
    "  --type TYPE        of activations, and of weights that are numbers: f32 or bf16 (f32)\n"
    "  --decoded          weights of few bits become numbers when they are read\n"
    "  --device NAME      as trine info lists them (TRINE_DEVICE, else the best)\n"
    "  --threads N        on the CPU (the cores)\n"
    "  --help\n";

enum { USUAL_SLOTS = 8 };

static int complain(const char *what, const char *why) {
    fprintf(stderr, "trine-generate: %s%s%s\n", what, *why ? ": " : "", why);
    return 1;
}

/* ---------------------------------------------------------------------------------------------------------- options */

enum {
    PROMPT = 256,
    PROMPTS,
    CHAT,
    SYSTEM,
    TOKENS,
    TEMPERATURE,
    TOP_K,
    SEED,
    PERPLEXITY,
    SPECULATE,
    CONTEXT,
    SLOTS,
    CACHE,
    CHUNK,
    TYPE,
    DECODED,
    DEVICE,
    THREADS,
    HELP
};

static const struct option known[] = {
    { "prompt", 1, 0, PROMPT },
    { "prompts", 1, 0, PROMPTS },
    { "chat", 0, 0, CHAT },
    { "system", 1, 0, SYSTEM },
    { "tokens", 1, 0, TOKENS },
    { "temperature", 1, 0, TEMPERATURE },
    { "top-k", 1, 0, TOP_K },
    { "seed", 1, 0, SEED },
    { "perplexity", 1, 0, PERPLEXITY },
    { "speculate", 1, 0, SPECULATE },
    { "context", 1, 0, CONTEXT },
    { "slots", 1, 0, SLOTS },
    { "cache", 1, 0, CACHE },
    { "chunk", 1, 0, CHUNK },
    { "type", 1, 0, TYPE },
    { "decoded", 0, 0, DECODED },
    { "device", 1, 0, DEVICE },
    { "threads", 1, 0, THREADS },
    { "help", 0, 0, HELP },
    { 0 },
};

/* A whole number in [low, high], or false. */
static bool whole(const char *text, int64_t low, int64_t high, int64_t *value_out) {
    char *end;
    errno = 0;
    *value_out = strtoll(text, &end, 10);
    return end != text && !*end && errno == 0 && *value_out >= low && *value_out <= high;
}

static bool option_set(options *o, int option, const char *text) {
    int64_t n = 0;
    char *end;
    switch (option) {
    case PROMPT: o->prompt = text; return true;
    case PROMPTS: o->prompts = text; return true;
    case CHAT: o->chat = true; return true;
    case DECODED: o->llama.decoded = true; return true;
    case SYSTEM: o->system = text; return true;
    case PERPLEXITY: o->perplexity = text; return true;
    case DEVICE: o->device = text; return true;
    case TOKENS: return whole(text, 1, 1 << 24, &o->tokens);
    case SPECULATE: return whole(text, 0, LLAMA_FEW - 1, &o->guesses);
    case CONTEXT: return whole(text, 1, 1 << 24, &o->llama.context);
    case SLOTS: return whole(text, 1, LLAMA_LOGITS, &o->llama.slots);
    case CACHE: return whole(text, 1, (int64_t)1 << 30, &o->llama.cache);
    case CHUNK: return whole(text, 1, 1 << 16, &o->llama.chunk);
    case TYPE:
        o->llama.type = trine_dtype_parse(text);
        return o->llama.type == TRINE_F32 || o->llama.type == TRINE_BF16;
    case TEMPERATURE:
        o->sampler.temperature = strtod(text, &end);
        return end != text && !*end && o->sampler.temperature >= 0 && o->sampler.temperature <= 100;
    case TOP_K:
        if (!whole(text, 1, SAMPLER_MOST, &n)) return false;
        o->sampler.top_k = (int)n;
        return true;
    case SEED:
        if (!whole(text, 0, INT64_MAX, &n)) return false;
        gpt_random_seed(&o->sampler.random, (uint64_t)n);
        return true;
    case THREADS:
        if (!whole(text, 1, 1 << 20, &n)) return false;
        o->threads = (int)n;
        return true;
    default: return false;
    }
}

/* -1 to go on, else the exit status. */
static int options_read(options *o, int argc, char **argv) {
    for (int option, index = 0; (option = getopt_long(argc, argv, "", known, &index)) != -1;) {
        if (option == HELP) return fputs(usage, stdout), 0;
        if (option == '?') return fputs("Try trine-generate --help.\n", stderr), 2;
        if (!option_set(o, option, optarg)) {
            fprintf(stderr, "trine-generate: --%s: '%s' is not a value it takes\n", known[index].name, optarg);
            return 2;
        }
    }
    if (optind + 1 != argc) return complain("one model is needed", "trine-generate --help says more"), 2;
    o->model = argv[optind];
    if (o->system && !o->chat) return complain("--system", "it is of --chat"), 2;
    if (o->perplexity && (o->chat || o->prompt || o->prompts))
        return complain("--perplexity", "no prompt goes with it"), 2;
    if (o->prompts && o->prompt) return complain("--prompts", "--prompt does not go with it"), 2;
    if ((o->llama.slots || o->llama.cache) && !o->prompts)
        return complain("--slots and --cache", "they are of --prompts"), 2;
    const int64_t most = LLAMA_LOGITS / (o->guesses + 1);
    if (o->llama.slots > most) return complain("--slots", "there are too many for so many guesses"), 2;
    if (!o->llama.slots) o->llama.slots = !o->prompts ? 1 : most < USUAL_SLOTS ? most : USUAL_SLOTS;
    return -1;
}

/* ------------------------------------------------------------------------------------------------------- generating */

typedef struct session {
    const options *o;
    const model_file *file;
    llama llama;
    writer writer;
    problem why;
} session;

/* Writes what follows the tokens that a text has. */
static bool answer(session *s, writing *w) {
    w->left = s->o->tokens;
    w->read = w->ended = false;
    while (!w->read)
        if (!writing_read(&s->writer, w, &s->why)) return false;
    while (!w->ended)
        if (!writing_step(&s->writer, &w, 1, &s->why)) return false;
    output_end(&w->out);
    putchar('\n');
    return true;
}

static bool encode(session *s, slice text, token_list *list) {
    const tokenizer *t = &s->file->tokenizer;
    return (t->first < 0 || token_list_add(list, t->first, &s->why)) &&
           tokenizer_encode(t, text, true, list, &s->why) &&
           (list->count > 0 || refuse(&s->why, "the prompt is empty"));
}

static bool continue_text(session *s, slice text) {
    writing w = { .sampler = s->o->sampler, .out = { .file = stdout } };
    bool good = encode(s, text, &w.tokens);
    if (good) {
        output_add(&w.out, text);
        good = answer(s, &w);
    }
    writing_end(&s->writer, &w);
    return good;
}

static bool turn(session *s, chat *c, slice said, writing *w) {
    return chat_turn(c, said, &w->tokens, &s->why) && answer(s, w);
}

/* A turn for each line of standard input. */
static bool converse(session *s, chat *c, writing *w) {
    char *line = NULL;
    size_t room = 0;
    bool good = true;
    while (good) {
        if (isatty(STDIN_FILENO)) fputs("> ", stderr);
        ssize_t size = getline(&line, &room, stdin);
        if (size < 0) break;
        if (size > 0 && line[size - 1] == '\n') size--;
        if (size > 0) good = turn(s, c, (slice){ line, (size_t)size }, w);
    }
    free(line);
    return good;
}

static bool chat_all(session *s) {
    chat c;
    writing w = { .sampler = s->o->sampler, .out = { .file = stdout } };
    bool good = chat_open(&c, s->file, s->o->system, &s->why);
    if (good) good = s->o->prompt ? turn(s, &c, slice_of(s->o->prompt), &w) : converse(s, &c, &w);
    writing_end(&s->writer, &w);
    return good;
}

static bool prompt_of(session *s, slice line, batch_prompt *p) {
    chat c;
    if (s->o->chat) return chat_open(&c, s->file, s->o->system, &s->why) && chat_turn(&c, line, &p->tokens, &s->why);
    p->shown = line;
    return encode(s, line, &p->tokens);
}

/* A prompt for each line that is not empty. */
static bool continue_lines(session *s, slice text) {
    int64_t lines = 1, count = 0;
    for (size_t i = 0; i < text.size; i++) lines += text.bytes[i] == '\n';
    batch_prompt *prompt = calloc((size_t)lines, sizeof *prompt);
    bool good = prompt || refuse(&s->why, "out of memory");
    for (slice rest = text; good && rest.size > 0;) {
        const char *end = memchr(rest.bytes, '\n', rest.size);
        const slice line = { rest.bytes, end ? (size_t)(end - rest.bytes) : rest.size };
        rest = (slice){ line.bytes + line.size + (end != NULL), rest.size - line.size - (end != NULL) };
        if (line.size > 0) good = prompt_of(s, line, &prompt[count++]);
    }
    good = good && batch_run(&s->writer, prompt, count, s->o->tokens, &s->o->sampler, stdout, &s->why);
    for (int64_t i = 0; i < count; i++) token_list_free(&prompt[i].tokens);
    free(prompt);
    return good;
}

static bool measure(session *s, slice text) { return perplexity_print(&s->llama, &s->file->tokenizer, text, &s->why); }

/* What standard input, or a file, has. */
static bool with_text(session *s, const char *path, bool (*work)(session *, slice)) {
    size_t size = 0;
    uint8_t *bytes = gpt_read_file(path, (int64_t)1 << 30, &size);
    if (!bytes) return refuse(&s->why, "%s: %s", path, strerror(errno));
    const bool good = work(s, (slice){ (const char *)bytes, size });
    free(bytes);
    return good;
}

static void report_speed(const session *s) {
    const speed *v = &s->writer.speed;
    fprintf(stderr, "prefill: %lld tokens, %.1f tokens/s; decode: %lld tokens, %.1f tokens/s", (long long)v->prefilled,
            (double)v->prefilled / fmax(v->prefill, 1e-9), (long long)v->decoded,
            (double)v->decoded / fmax(v->decode, 1e-9));
    if (s->o->guesses)
        fprintf(stderr, "; guesses: %lld, of which %lld came true", (long long)v->guessed, (long long)v->right);
    fputc('\n', stderr);
}

/* ------------------------------------------------------------------------------------------------------------- main */

static bool run(session *s) {
    const options *o = s->o;
    if (o->perplexity) return with_text(s, o->perplexity, measure);
    const bool good = o->prompts  ? with_text(s, o->prompts, continue_lines)
                      : o->chat   ? chat_all(s)
                      : o->prompt ? continue_text(s, slice_of(o->prompt))
                                  : with_text(s, "/dev/stdin", continue_text);
    if (good) report_speed(s);
    return good;
}

static int with_queue(const options *o, const model_file *file, trine_queue *queue) {
    session s = { .o = o, .file = file };
    llama_options choices = o->llama;
    const int64_t longest = file->config.context, usual = longest < 2048 ? longest : 2048;
    if (choices.context > longest) return complain("--context", "the model's is shorter");
    if (!choices.context) choices.context = usual;
    const bool good = llama_open(&s.llama, file, queue, &choices, &s.why) &&
                      writer_open(&s.writer, &s.llama, &file->tokenizer, o->guesses, &s.why) && run(&s);
    writer_close(&s.writer);
    llama_close(&s.llama);
    return good ? 0 : complain(s.why.text, "");
}

static int with_model(const options *o, const model_file *file) {
    trine *lib = NULL;
    trine_queue *queue = NULL;
    int status = 1, device = TRINE_BEST_DEVICE;
    if (trine_open(NULL, &lib) != TRINE_OK) return complain("opening trine", trine_error_message());
    if (o->device && (device = trine_device_find(lib, o->device)) < 0) {
        complain(o->device, "no such device; trine info lists them");
    } else {
        const trine_queue_options choices = { sizeof choices, .threads = o->threads };
        if (trine_queue_open(lib, device, &choices, &queue) != TRINE_OK)
            complain("opening a queue", trine_error_message());
        else
            status = with_queue(o, file, queue);
    }
    trine_queue_close(queue);
    trine_close(lib);
    return status;
}

int main(int argc, char **argv) {
    setlocale(LC_NUMERIC, "C"); /* what is preloaded may have taken another */
    options o = { .tokens = 256, .llama = { .type = TRINE_F32 }, .sampler = { .top_k = 40 } };
    model_file file;
    problem why = { 0 };
    gpt_random_seed(&o.sampler.random, 1);
    int status = options_read(&o, argc, argv);
    if (status >= 0) return status;
    status = model_open(&file, o.model, &why) ? with_model(&o, &file) : complain(why.text, "");
    model_close(&file);
    return status;
}
