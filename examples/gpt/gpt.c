/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a small language model on real text through trine's public API: the command. */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "export.h"
#include "trainer.h"

typedef struct options {
    const char *text, *device, *save, *export, *resume, *svg, *prompt, *losses;
    gpt_config config;
    gpt_schedule schedule;
    int64_t save_every, stop;
    int threads, sample;
    uint64_t seed;
} options;

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
    "  --device NAME     as trine info lists them (TRINE_DEVICE, else the best)\n"
    "  --threads N       on the CPU (the cores)\n"
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

static volatile sig_atomic_t interrupted;
static void interrupt(int signal_number) { interrupted = signal_number; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int complain(const char *what, const char *why) {
    fprintf(stderr, "trine-gpt: %s%s%s\n", what, *why ? ": " : "", why);
    return 1;
}

/* ---------------------------------------------------------------------------------------------------------- options */

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
    DEVICE,
    THREADS,
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
    { "device", 1, 0, DEVICE },
    { "threads", 1, 0, THREADS },
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

static bool option_set(options *o, int option, const char *text) {
    int64_t n = 0;
    if (option == RATE) {
        char *end;
        o->schedule.rate = strtof(text, &end);
        return end != text && !*end && o->schedule.rate >= 0 && o->schedule.rate <= 1;
    }
    const bool sized = option >= BATCH && option <= VOCABULARY;
    const int64_t most = sized ? INT32_MAX : option == THREADS || option == SAMPLE ? 1 << 20 : (int64_t)1 << 32;
    switch (option) {
    case TEXT: o->text = text; return true;
    case DEVICE: o->device = text; return true;
    case SAVE: o->save = text; return true;
    case EXPORT: o->export = text; return true;
    case RESUME: o->resume = text; return true;
    case SVG: o->svg = text; return true;
    case LOSSES: o->losses = text; return true;
    case MIXED: o->config.mixed = 1; return true;
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
    case SAVE_EVERY: o->save_every = n; return true;
    case STOP: o->stop = n; return true;
    case SAMPLE: o->sample = (int)n; return true;
    default: return false;
    }
}

/* -1 to go on, else the exit status. */
static int options_read(options *o, int argc, char **argv) {
    const char *fixed = NULL; /* an option that a checkpoint decides */
    for (int option, index = 0; (option = getopt_long(argc, argv, "", known, &index)) != -1;) {
        if (option == HELP) return fputs(usage, stdout), 0;
        if (option == '?') return fputs("Try trine-gpt --help.\n", stderr), 2;
        if (!option_set(o, option, optarg)) {
            fprintf(stderr, "trine-gpt: --%s: '%s' is not a value it takes\n", known[index].name, optarg);
            return 2;
        }
        if (option >= STEPS && option <= SEED) fixed = known[index].name;
    }
    if (optind < argc) return complain(argv[optind], "an option is needed before it"), 2;
    if (o->resume && fixed) {
        fprintf(stderr, "trine-gpt: --%s is decided by the checkpoint of --resume\n", fixed);
        return 2;
    }
    if (o->save_every && !o->save) return complain("--save-every", "--save says where"), 2;
    const char *wrong = gpt_config_check(&o->config);
    return wrong ? complain(wrong, ""), 2 : -1;
}

/* --------------------------------------------------------------------------------------------------------- progress */

typedef struct progress {
    bool terminal;
    double begun, shown, training; /* seconds spent in steps but the first, which loads code */
    double mean, weight;           /* of the loss */
    int64_t first, last, entered;
} progress;

static bool progress_due(const progress *p, const gpt_trainer *t) {
    const int64_t done = t->step - p->first, every = (p->last - p->first + 19) / 20;
    return p->terminal ? now() - p->shown >= 0.1 : done % every == 0;
}

static double tokens_of(const gpt_trainer *t, int64_t steps) {
    return (double)(steps * t->model.config.batch * t->model.config.context);
}

static double tokens_per_second(const progress *p, const gpt_trainer *t) {
    return p->training > 0 ? tokens_of(t, t->step - p->first - 1) / p->training : 0;
}

static void progress_show(progress *p, const gpt_trainer *t, bool finish) {
    const int64_t done = t->step - p->first;
    const double held = t->history.held_out_count ? t->history.held_out[t->history.held_out_count - 1].loss : 0;
    for (; p->entered < t->history.count; p->entered++) {
        p->mean = 0.95 * p->mean + 0.05 * (double)t->history.train[p->entered];
        p->weight = 0.95 * p->weight + 0.05;
    }
    p->shown = now();
    const double left = done > 0 ? (p->shown - p->begun) / (double)done * (double)(p->last - t->step) : 0;
    if (p->terminal) {
        char bar[31];
        const int filled = p->last > p->first ? (int)(30 * done / (p->last - p->first)) : 30;
        for (int i = 0; i < 30; i++) bar[i] = i < filled ? '#' : '.';
        bar[30] = 0;
        printf("\r[%s] ", bar);
    }
    printf("step %lld/%lld  loss %.3f  held-out %.3f  %.0f tokens/s  ETA %d:%02d%s", (long long)t->step,
           (long long)t->schedule.steps, p->mean / p->weight, held, tokens_per_second(p, t), (int)left / 60,
           (int)left % 60, p->terminal ? "\033[K" : "\n");
    if (p->terminal && finish) putchar('\n');
    fflush(stdout);
}

static bool train(gpt_trainer *t, const options *o, progress *p) {
    const int64_t often = t->schedule.steps / 14 + 1;
    double loss;
    bool shown = false;
    if (t->step == 0 && !gpt_trainer_evaluate(t, 64, true, &loss)) return false;
    while (t->step < p->last && !interrupted) {
        const double start = now();
        if (!gpt_trainer_step(t)) return false;
        const bool first = t->step == p->first + 1, evaluates = t->step % often == 0,
                   saves = o->save_every && t->step % o->save_every == 0 && t->step < p->last;
        shown = progress_due(p, t);
        if ((first || evaluates || saves || shown || t->step == p->last) && !gpt_trainer_wait(t)) return false;
        if (!first) p->training += now() - start;
        if (evaluates && !gpt_trainer_evaluate(t, 64, true, &loss)) return false;
        if (saves && !gpt_trainer_save(t, o->save)) return false;
        if (shown) progress_show(p, t, false);
    }
    if (!gpt_trainer_wait(t)) return false;
    if (t->step > p->first && (p->terminal || !shown)) progress_show(p, t, true);
    return true;
}

static bool write_losses(const gpt_trainer *t, const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    for (int64_t i = 0; i < t->history.count; i++) fprintf(file, "%.9g\n", (double)t->history.train[i]);
    return fclose(file) == 0;
}

/* ------------------------------------------------------------------------------------------------------------- main */

static int run(gpt_trainer *t, const options *o) {
    progress p = { .terminal = isatty(STDOUT_FILENO),
                   .begun = now(),
                   .first = t->step,
                   .last = t->schedule.steps,
                   .entered = t->step };
    double held_out;
    if (o->stop && o->stop < p.last) p.last = o->stop > t->step ? o->stop : t->step;
    if (!train(t, o, &p)) return complain(t->error, "");
    const double seconds = now() - p.begun;
    if (o->save && !gpt_trainer_save(t, o->save)) return complain(t->error, "");
    if (o->export && !gpt_export(&t->model, o->export, t->error, sizeof t->error)) return complain(t->error, "");
    if (interrupted) return complain("interrupted", o->save ? "the checkpoint is written" : ""), 130;
    if (!gpt_trainer_evaluate(t, 512, false, &held_out)) return complain(t->error, "");
    if (!gpt_curve_write(&t->history, o->svg, t->error, sizeof t->error)) return complain(t->error, "");
    printf("loss curve: %s\n", o->svg);
    if (o->losses && !write_losses(t, o->losses)) return complain(o->losses, strerror(errno));
    if (o->sample) {
        printf("---- a sample of %d bytes ----\n", o->sample);
        if (!gpt_trainer_sample(t, o->prompt, o->sample, o->seed, stdout)) return complain(t->error, "");
        printf("----\n");
    }
    printf("trained: held-out %.4f nats, %.1f s, %.0f tokens/s\n", held_out, seconds, tokens_per_second(&p, t));
    return 0;
}

static int with_queue(const options *o, const gpt_checkpoint *from, const gpt_data *data, trine_queue *queue,
                      const trine *lib) {
    gpt_trainer t = { 0 };
    trine_device_info_t device;
    int status = 1;
    if (!gpt_trainer_open(&t, queue, &o->config, &o->schedule, data, o->seed, from)) {
        complain(t.error, "");
    } else if (trine_device_info(lib, trine_queue_device(queue), &device) == TRINE_OK) {
        printf("%lld parameters in %d layers on %s (%s, %s); %lld bytes of text in %lld files, %lld held out\n",
               (long long)t.model.parameters, (int)o->config.layers, device.name, device.model, device.arch,
               (long long)(data->train_size + data->held_out_size), (long long)data->files,
               (long long)data->held_out_size);
        if (from) printf("continuing %s at step %lld\n", o->resume, (long long)t.step);
        if (from && from->text_hash != data->hash) printf("the text is not the one the checkpoint was trained on\n");
        status = run(&t, o);
    }
    gpt_trainer_close(&t);
    return status;
}

static int with_data(const options *o, const gpt_checkpoint *from, const gpt_data *data) {
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
            status = with_queue(o, from, data, queue, lib);
    }
    trine_queue_close(queue);
    trine_close(lib);
    return status;
}

int main(int argc, char **argv) {
    setlocale(LC_NUMERIC, "C"); /* what is preloaded may have taken another */
    options o = {
        .text = GPT_TEXT,
        .svg = "gpt-loss.svg",
        .prompt = "/* ",
        .sample = 300,
        .seed = 1,
        .config = { .context = 128,
                    .batch = 8,
                    .layers = 5,
                    .width = 128,
                    .heads = 4,
                    .kv_heads = 2,
                    .hidden = 384,
                    .vocabulary = GPT_BYTES },
        .schedule = { .steps = 1000, .rate = 3e-3f, .beta1 = 0.9f, .beta2 = 0.95f, .weight_decay = 0.1f, .max_norm = 1 }
    };
    char error[512];
    gpt_checkpoint from = { 0 };
    gpt_data data = { 0 };
    int status = options_read(&o, argc, argv);
    if (status >= 0) return status;
    o.schedule.warmup = o.schedule.steps / 14;
    if (o.resume) {
        if (!gpt_checkpoint_load(&from, o.resume, error, sizeof error)) return complain(error, "");
        o.config = from.config;
        o.schedule = from.schedule;
    }
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    if (gpt_data_load(&data, o.text, o.config.context + 1, error, sizeof error))
        status = with_data(&o, o.resume ? &from : NULL, &data);
    else
        status = complain(error, "");
    gpt_checkpoint_free(&from);
    gpt_data_free(&data);
    return status;
}
