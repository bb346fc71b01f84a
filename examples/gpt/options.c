/* SPDX-License-Identifier: Apache-2.0 */
/* What the command is told. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: trine-gpt [OPTION]...\n"
    "Trains a decoder-only transformer on the bytes of a text, through trine.\n"
    "\n"
    "  --text PATH       a file, or a directory whose sources and documents are read (default: trine's own)\n"
    "  --steps N         optimizer steps (1000)\n"
    "  --batch N         sequences per step (8)\n"
    "  --context N       bytes per sequence (128)\n"
    "  --layers N        (5)\n"
    "  --width N         of the residual stream (128)\n"
    "  --heads N         of attention (4)\n"
    "  --kv-heads N      heads of keys and values, shared by the former (2)\n"
    "  --hidden N        width of the feed-forward layer (384)\n"
    "  --vocabulary N    rows of the embedding, of which the text uses 256 (256)\n"
    "  --mixed           activations, gradients and the weights in use in bf16, the optimizer's in f32\n"
    "  --rate X          learning rate (0.003)\n"
    "  --seed N          of weights and batches (1)\n"
    "  --memory WAY      of activations: shared (those that are not needed at once share), separate, or recomputed\n"
    "                    (shared, and some are made anew for the gradient); all give the same bits (shared)\n"
    "  --offload [FILE]  the optimizer's state, 12 bytes a parameter or 8 in f32, is in the host's memory, or in a "
    "file\n"
    "                    that is made for it and gone afterwards; the CPU takes the steps, while parts of the "
    "gradient\n"
    "                    come from the device and parts of the parameters go back. The bits are those of the device\n"
    "                    without it, if that is the CPU, or a GPU and the CPU one with fused multiply-add; otherwise\n"
    "                    they differ by what the bounds of adamw allow\n"
    "  --offload-share X of the parameters whose state the device keeps, and steps at the same time: 0 to 1 (on a GPU "
    "as\n"
    "                    the measured times of a step there and here say and its memory allows; on the CPU 0)\n"
    "  --device NAME     as trine info lists them (TRINE_DEVICE, else the best)\n"
    "  --threads N       on the CPU (the cores; of ranks, each its part of them)\n"
    "  --ranks N         processes that train the model together, each with a part of every batch (1); on GPUs each "
    "has\n"
    "                    its own, beginning with the first\n"
    "  --zero            each rank keeps a part of the optimizer's state\n"
    "  --tensors         each rank has some of each layer's heads and hidden columns, instead of some sequences\n"
    "  --save FILE       write a checkpoint at the end\n"
    "  --save-every N    and every N steps\n"
    "  --export FOLDER   write the model as others read it: model.safetensors as transformers has it, model.gguf\n"
    "  --resume FILE     continue a checkpoint: model and schedule are the checkpoint's\n"
    "  --stop N          stop after step N of the schedule\n"
    "  --svg FILE        where the loss curve goes (gpt-loss.svg)\n"
    "  --losses FILE     write the loss of each step, one on a line\n"
    "  --sample N        bytes of text to write at the end (300)\n"
    "  --prompt TEXT     how that text begins\n"
    "  --help\n";

int complain(const char *what, const char *why) {
    fprintf(stderr, "trine-gpt: %s%s%s\n", what, *why ? ": " : "", why);
    return 1;
}

enum {
    TEXT = 256,
    STEPS,
    BATCH,
    CONTEXT,
    LAYERS,
    WIDTH,
    HEADS,
    KV_HEADS,
    HIDDEN,
    VOCABULARY,
    MIXED,
    RATE,
    SEED,
    MEMORY,
    OFFLOAD,
    OFFLOAD_SHARE,
    DEVICE,
    THREADS,
    RANKS,
    ZERO,
    TENSORS,
    SAVE,
    SAVE_EVERY,
    EXPORT,
    RESUME,
    STOP,
    SVG,
    LOSSES,
    SAMPLE,
    PROMPT,
    HELP
};

static const struct option known[] = {
    { "text", 1, 0, TEXT },
    { "steps", 1, 0, STEPS },
    { "batch", 1, 0, BATCH },
    { "context", 1, 0, CONTEXT },
    { "layers", 1, 0, LAYERS },
    { "width", 1, 0, WIDTH },
    { "heads", 1, 0, HEADS },
    { "kv-heads", 1, 0, KV_HEADS },
    { "hidden", 1, 0, HIDDEN },
    { "vocabulary", 1, 0, VOCABULARY },
    { "mixed", 0, 0, MIXED },
    { "rate", 1, 0, RATE },
    { "seed", 1, 0, SEED },
    { "memory", 1, 0, MEMORY },
    { "offload", 2, 0, OFFLOAD },
    { "offload-share", 1, 0, OFFLOAD_SHARE },
    { "device", 1, 0, DEVICE },
    { "threads", 1, 0, THREADS },
    { "ranks", 1, 0, RANKS },
    { "zero", 0, 0, ZERO },
    { "tensors", 0, 0, TENSORS },
    { "save", 1, 0, SAVE },
    { "save-every", 1, 0, SAVE_EVERY },
    { "export", 1, 0, EXPORT },
    { "resume", 1, 0, RESUME },
    { "stop", 1, 0, STOP },
    { "svg", 1, 0, SVG },
    { "losses", 1, 0, LOSSES },
    { "sample", 1, 0, SAMPLE },
    { "prompt", 1, 0, PROMPT },
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

static bool memory_read(const char *text, int32_t *memory_out) {
    static const char *const ways[] = {
        [GPT_SHARED] = "shared", [GPT_SEPARATE] = "separate", [GPT_RECOMPUTED] = "recomputed"
    };
    for (int32_t way = GPT_SHARED; way <= GPT_RECOMPUTED; way++)
        if (strcmp(text, ways[way]) == 0) return *memory_out = way, true;
    return false;
}

/* A number in [0, 1], or false. */
static bool part(const char *text, float *value_out) {
    char *end;
    *value_out = strtof(text, &end);
    return end != text && !*end && *value_out >= 0 && *value_out <= 1;
}

static bool option_set(options *o, int option, const char *text) {
    int64_t n = 0;
    if (option == RATE) return part(text, &o->schedule.rate);
    if (option == OFFLOAD_SHARE) return part(text, &o->offload.share);
    const bool sized = option >= BATCH && option <= VOCABULARY;
    const int64_t most = sized                                   ? INT32_MAX
                         : option == RANKS                       ? TRINE_MAX_RANKS
                         : option == THREADS || option == SAMPLE ? 1 << 20
                                                                 : (int64_t)1 << 32;
    switch (option) {
    case TEXT: o->text = text; return true;
    case DEVICE: o->device = text; return true;
    case SAVE: o->save = text; return true;
    case EXPORT: o->export = text; return true;
    case RESUME: o->resume = text; return true;
    case SVG: o->svg = text; return true;
    case LOSSES: o->losses = text; return true;
    case MIXED: o->config.mixed = 1; return true;
    case ZERO: o->group.parts = 1; return true;
    case TENSORS: o->group.tensors = 1; return true;
    case OFFLOAD: o->offload.file = text; return o->offloads = true;
    case MEMORY: return memory_read(text, &o->config.memory);
    case PROMPT: o->prompt = text; return true;
    default: break;
    }
    if (!whole(text, option == SEED || option == SAMPLE ? 0 : 1, most, &n)) return false;
    switch (option) {
    case STEPS: o->schedule.steps = n; return true;
    case BATCH: o->config.batch = (int32_t)n; return true;
    case CONTEXT: o->config.context = (int32_t)n; return true;
    case LAYERS: o->config.layers = (int32_t)n; return true;
    case WIDTH: o->config.width = (int32_t)n; return true;
    case HEADS: o->config.heads = (int32_t)n; return true;
    case KV_HEADS: o->config.kv_heads = (int32_t)n; return true;
    case HIDDEN: o->config.hidden = (int32_t)n; return true;
    case VOCABULARY: o->config.vocabulary = (int32_t)n; return true;
    case SEED: o->seed = (uint64_t)n; return true;
    case THREADS: o->threads = (int)n; return true;
    case RANKS: o->ranks = (int)n; return true;
    case SAVE_EVERY: o->save_every = n; return true;
    case STOP: o->stop = n; return true;
    case SAMPLE: o->sample = (int)n; return true;
    default: return false;
    }
}

int options_read(options *o, int argc, char **argv) {
    setlocale(LC_NUMERIC, "C"); /* what is preloaded may have taken another */
    const char *fixed = NULL;   /* an option that a checkpoint decides */
    for (int option, index = 0; (option = getopt_long(argc, argv, "", known, &index)) != -1;) {
        if (option == HELP) return fputs(usage, stdout), 0;
        if (option == '?') return fputs("Try trine-gpt --help.\n", stderr), 2;
        const char *value = optarg;
        if (option == OFFLOAD && !value && optind < argc && argv[optind][0] != '-') value = argv[optind++];
        if (!option_set(o, option, value)) {
            fprintf(stderr, "trine-gpt: --%s: '%s' is not a value it takes\n", known[index].name, value);
            return 2;
        }
        if (option >= STEPS && option <= SEED) fixed = known[index].name;
    }
    if (optind < argc) return complain(argv[optind], "an option is needed before it"), 2;
    if (o->resume && fixed) {
        fprintf(stderr, "trine-gpt: --%s is decided by the checkpoint of --resume\n", fixed);
        return 2;
    }
    if (o->offload.share >= 0 && !o->offloads) return complain("--offload-share", "--offload is needed beside it"), 2;
    if (o->save_every && !o->save) return complain("--save-every", "--save says where"), 2;
    if (o->ranks == 0 && (o->group.parts || o->group.tensors))
        return complain(o->group.parts ? "--zero" : "--tensors", "--ranks is needed beside it"), 2;
    if (o->ranks && o->offloads) return complain("--offload", "ranks keep the optimizer's state on the device"), 2;
    if (o->group.tensors && o->export)
        return complain("--export", "of what ranks share by --tensors: --save it, and --resume without ranks"), 2;
    const char *wrong = gpt_config_check(&o->config);
    return wrong ? complain(wrong, ""), 2 : -1;
}
