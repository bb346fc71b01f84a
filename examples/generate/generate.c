/* SPDX-License-Identifier: Apache-2.0 */
/* Answers with a language model of Llama's family through trine's public API: the command. */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "chat.h"
#include "examples/gpt/data.h"
#include "llama.h"
#include "output.h"
#include "sampler.h"

typedef struct options {
    const char *model, *prompt, *device, *system, *perplexity;
    int64_t tokens, context;
    trine_dtype type;
    int threads;
    bool chat, decoded;
    sampler sampler;
} options;

static const char usage[] =
    "Usage: trine-generate MODEL [OPTION]...\n"
    "Continues a text, or answers, with a language model of Llama's family, through trine.\n"
    "\n"
    "MODEL is a GGUF file, or a folder as transformers saves it: config.json, model.safetensors, tokenizer.json.\n"
    "\n"
    "  --prompt TEXT      what is to be continued, or answered (default: standard input)\n"
    "  --chat             answer, in the form of ChatML; of standard input each line is a turn\n"
    "  --system TEXT      what a conversation begins with (what the model's template has)\n"
    "  --tokens N         the most to write (256)\n"
    "  --temperature T    of the draw of a token; 0 takes the likeliest (0)\n"
    "  --top-k K          draw among the K likeliest (40)\n"
    "  --seed S           of the draws (1)\n"
    "  --perplexity FILE  instead of all that, print the perplexity of a text\n"
    "  --context N        tokens that are remembered (2048, or what the model has)\n"
    "  --type TYPE        of activations, and of weights that are numbers: f32 or bf16 (f32)\n"
    "  --decoded          weights of few bits become numbers when they are read\n"
    "  --device NAME      as trine info lists them (TRINE_DEVICE, else the best)\n"
    "  --threads N        on the CPU (the cores)\n"
    "  --help\n";

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int complain(const char *what, const char *why) {
    fprintf(stderr, "trine-generate: %s%s%s\n", what, *why ? ": " : "", why);
    return 1;
}

/* ---------------------------------------------------------------------------------------------------------- options */

enum {
    PROMPT = 256,
    CHAT,
    SYSTEM,
    TOKENS,
    TEMPERATURE,
    TOP_K,
    SEED,
    PERPLEXITY,
    CONTEXT,
    TYPE,
    DECODED,
    DEVICE,
    THREADS,
    HELP
};

static const struct option known[] = {
    { "prompt", 1, 0, PROMPT },
    { "chat", 0, 0, CHAT },
    { "system", 1, 0, SYSTEM },
    { "tokens", 1, 0, TOKENS },
    { "temperature", 1, 0, TEMPERATURE },
    { "top-k", 1, 0, TOP_K },
    { "seed", 1, 0, SEED },
    { "perplexity", 1, 0, PERPLEXITY },
    { "context", 1, 0, CONTEXT },
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
    case CHAT: o->chat = true; return true;
    case DECODED: o->decoded = true; return true;
    case SYSTEM: o->system = text; return true;
    case PERPLEXITY: o->perplexity = text; return true;
    case DEVICE: o->device = text; return true;
    case TOKENS: return whole(text, 1, 1 << 24, &o->tokens);
    case CONTEXT: return whole(text, 1, 1 << 24, &o->context);
    case TYPE: o->type = trine_dtype_parse(text); return o->type == TRINE_F32 || o->type == TRINE_BF16;
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
    if (o->perplexity && (o->chat || o->prompt)) return complain("--perplexity", "no prompt goes with it"), 2;
    return -1;
}

/* ------------------------------------------------------------------------------------------------------- generating */

typedef struct session {
    const options *o;
    const model_file *file;
    llama llama;
    sampler sampler;
    float *logits;
    output out;
    int32_t pending; /* a token that was written and not read again; -1: none */
    problem why;
    int64_t prefilled, decoded; /* tokens */
    double prefill, decode;     /* seconds */
} session;

/* Reads the tokens of a prompt and writes what follows, up to a token that stops or the end of the context. */
static bool answer(session *s, const token_list *prompt) {
    const tokenizer *t = &s->file->tokenizer;
    const double start = now();
    if (!llama_read(&s->llama, prompt->id, prompt->count, s->logits, &s->why)) return false;
    s->prefilled += prompt->count;
    s->prefill += now() - start;
    for (int64_t i = 0; i < s->o->tokens; i++) {
        const int32_t id = sampler_pick(&s->sampler, s->logits, t->tokens);
        if (id < 0) return refuse(&s->why, "the model's logits are not numbers");
        if (tokenizer_stops(t, id)) break;
        output_add(&s->out, tokenizer_text(t, id));
        s->pending = id;
        if (i == s->o->tokens - 1 || s->llama.length == s->llama.room) break;
        const double began = now();
        if (!llama_read(&s->llama, &id, 1, s->logits, &s->why)) return false;
        s->pending = -1;
        s->decoded++;
        s->decode += now() - began;
    }
    output_end(&s->out);
    putchar('\n');
    return true;
}

static bool continue_text(session *s, slice text) {
    const tokenizer *t = &s->file->tokenizer;
    token_list prompt = { 0 };
    bool good = t->first < 0 || token_list_add(&prompt, t->first, &s->why);
    good = good && tokenizer_encode(t, text, true, &prompt, &s->why);
    if (good && prompt.count == 0) good = refuse(&s->why, "the prompt is empty");
    if (good) {
        output_add(&s->out, text);
        good = answer(s, &prompt);
    }
    token_list_free(&prompt);
    return good;
}

static bool turn(session *s, chat *c, slice said) {
    token_list prompt = { 0 };
    bool good = s->pending < 0 || token_list_add(&prompt, s->pending, &s->why);
    s->pending = -1;
    good = good && chat_turn(c, said, &prompt, &s->why) && answer(s, &prompt);
    token_list_free(&prompt);
    return good;
}

/* A turn for each line of standard input. */
static bool converse(session *s, chat *c) {
    char *line = NULL;
    size_t room = 0;
    bool good = true;
    while (good) {
        if (isatty(STDIN_FILENO)) fputs("> ", stderr);
        ssize_t size = getline(&line, &room, stdin);
        if (size < 0) break;
        if (size > 0 && line[size - 1] == '\n') size--;
        if (size > 0) good = turn(s, c, (slice){ line, (size_t)size });
    }
    free(line);
    return good;
}

static bool chat_all(session *s) {
    chat c;
    if (!chat_open(&c, s->file, s->o->system, &s->why)) return false;
    return s->o->prompt ? turn(s, &c, slice_of(s->o->prompt)) : converse(s, &c);
}

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
    fprintf(stderr, "prefill: %lld tokens, %.1f tokens/s; decode: %lld tokens, %.1f tokens/s\n",
            (long long)s->prefilled, (double)s->prefilled / fmax(s->prefill, 1e-9), (long long)s->decoded,
            (double)s->decoded / fmax(s->decode, 1e-9));
}

/* ------------------------------------------------------------------------------------------------------- perplexity */

/* The text is cut into windows as long as the context. Within each, every token but the first is predicted from those
 * before it; where texts begin with a token of their own, a window does, and all of its text is predicted. */
static bool measure(session *s, slice text) {
    const tokenizer *t = &s->file->tokenizer;
    token_list all = { 0 };
    double sum = 0;
    int64_t predicted = 0;
    const int64_t lead = t->first >= 0, step = s->llama.room + 1 - lead;
    int32_t *window = malloc((size_t)(s->llama.room + 1) * sizeof *window);
    float *loss = malloc((size_t)s->llama.room * sizeof *loss);
    bool good = (window && loss) || refuse(&s->why, "out of memory");
    good = good && tokenizer_encode(t, text, false, &all, &s->why);
    const double start = now();
    for (int64_t i = 0; good && i + 1 - lead < all.count; i += step) {
        const int64_t n = all.count - i < step ? all.count - i : step, labels = n + lead - 1;
        window[0] = t->first;
        memcpy(window + lead, all.id + i, (size_t)n * sizeof *window);
        llama_forget(&s->llama, 0);
        good = llama_losses(&s->llama, window, window + 1, labels, loss, &s->why);
        for (int64_t k = 0; good && k < labels; k++) sum += (double)loss[k];
        predicted += labels;
    }
    if (good && predicted == 0) good = refuse(&s->why, "the text is too short");
    if (good)
        printf("perplexity %.5f of %lld predicted tokens, %.1f tokens/s\n", exp(sum / (double)predicted),
               (long long)predicted, (double)predicted / (now() - start));
    free(window);
    free(loss);
    token_list_free(&all);
    return good;
}

/* ------------------------------------------------------------------------------------------------------------- main */

static bool run(session *s) {
    const options *o = s->o;
    if (o->perplexity) return with_text(s, o->perplexity, measure);
    const bool good = o->chat     ? chat_all(s)
                      : o->prompt ? continue_text(s, slice_of(o->prompt))
                                  : with_text(s, "/dev/stdin", continue_text);
    if (good) report_speed(s);
    return good;
}

static int with_queue(const options *o, const model_file *file, trine_queue *queue) {
    session s = { .o = o, .file = file, .sampler = o->sampler, .out = { .file = stdout }, .pending = -1 };
    const int64_t longest = file->config.context, usual = longest < 2048 ? longest : 2048;
    if (o->context > longest) return complain("--context", "the model's is shorter");
    s.logits = malloc((size_t)file->config.vocabulary * sizeof *s.logits);
    if (!s.logits) return complain("out of memory", "");
    const bool good =
        llama_open(&s.llama, file, queue, o->type, o->decoded, o->context ? o->context : usual, &s.why) && run(&s);
    llama_close(&s.llama);
    free(s.logits);
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
    options o = { .tokens = 256, .type = TRINE_F32, .sampler = { .top_k = 40 } };
    model_file file;
    problem why = { 0 };
    gpt_random_seed(&o.sampler.random, 1);
    int status = options_read(&o, argc, argv);
    if (status >= 0) return status;
    status = model_open(&file, o.model, &why) ? with_model(&o, &file) : complain(why.text, "");
    model_close(&file);
    return status;
}
