/* SPDX-License-Identifier: Apache-2.0 */
/* From the file that is judged to what can be loaded: the compiler's command line, by the end of the file's name. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "judge.h"

/* A kind of file: how it is compiled, "" where it is not, to a shared object and to device code, the architecture
 * standing for %s. NULL: it is not judged so. */
typedef struct kind {
    const char *end, *compiler, *object, *code;
} kind;

#define SHARED "-O3 -shared -fPIC"
static const kind kinds[] = {
    { ".c", "cc", SHARED " -march=native -fopenmp", NULL },
    { ".cc", "c++", SHARED " -march=native -fopenmp", NULL },
    { ".cpp", "c++", SHARED " -march=native -fopenmp", NULL },
    { ".cu", "nvcc", "-O3 -shared -Xcompiler -fPIC -arch=%s", "-O3 -fatbin -arch=%s" },
    { ".hip", "hipcc", SHARED " --offload-arch=%s", "-O3 --cuda-device-only --no-gpu-bundle-output --offload-arch=%s" },
    { ".so", NULL, "", NULL },
    { ".cubin", NULL, NULL, "" },
    { ".fatbin", NULL, NULL, "" },
    { ".ptx", NULL, NULL, "" },
    { ".hsaco", NULL, NULL, "" },
    { ".co", NULL, NULL, "" },
};

static const kind *kind_of(const char *file) {
    const char *const slash = strrchr(file, '/'), *const end = strrchr(slash != NULL ? slash : file, '.');
    for (size_t i = 0; end != NULL && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(end, kinds[i].end) == 0) return &kinds[i];
    return NULL;
}

/* Words of a command line, and what they point to. */
typedef struct words {
    int count;
    char *word[64], text[4096];
    size_t used;
} words;

/* Adds the words of a text, separated by blanks, or the text as one word. */
static bool add(words *w, const char *text, bool whole) {
    while (*text != 0) {
        const size_t length = whole ? strlen(text) : strcspn(text, " ");
        if (w->count + 1 >= (int)(sizeof w->word / sizeof w->word[0]) || w->used + length + 1 > sizeof w->text)
            return false;
        if (length > 0) {
            w->word[w->count++] = memcpy(w->text + w->used, text, length);
            w->used += length;
            w->text[w->used++] = 0;
        }
        text += length;
        while (!whole && *text == ' ') text++;
    }
    return true;
}

/* Where trine's headers are, from the folder of this program on: as installed, and as built in a checkout; the compiler
 * looks into its own folders besides. */
static bool add_headers(words *w) {
    static const char *const places[] = { "../include", "../../include", "../include/trine/kernel" };
    char self[PATH_MAX], path[PATH_MAX + 40];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) return true;
    self[length] = 0;
    char *const slash = strrchr(self, '/');
    bool ok = true;
    for (size_t i = 0; slash != NULL && i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "-I%.*s/%s", (int)(slash - self), self, places[i]);
        if (access(path + 2, R_OK) == 0) ok = ok && add(w, path, true);
    }
    return ok;
}

static bool compile(const judge_options *options, const kind *k, const char *flags, const char *out, words *w) {
    return add(w, options->compiler != NULL ? options->compiler : k->compiler, false) && add(w, flags, false) &&
           add_headers(w) && add(w, options->flags != NULL ? options->flags : "", false) &&
           add(w, options->file, true) && add(w, "-o", true) && add(w, out, true) &&
           (options->entry != NULL || add(w, "-lm", true));
}

/* Runs the compiler, its words into the file `log`; its wait status. */
static int run(char *const *argv, const char *log) {
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (file >= 0) dup2(file, 1), dup2(file, 2);
        execvp(argv[0], argv);
        dprintf(2, "%s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return status;
}

/* The first lines of what the compiler said. */
static void read_log(const char *log, char *text, size_t size) {
    FILE *const file = fopen(log, "r");
    const size_t had = strlen(text), read = file != NULL ? fread(text + had, 1, size - had - 1, file) : 0;
    text[had + read] = 0;
    if (file != NULL) fclose(file);
}

bool judge_build(const judge_options *options, const char *work, const char *arch, char path_out[4096],
                 judge_verdict *verdict) {
    const kind *const k = kind_of(options->file);
    const char *const form = k == NULL ? NULL : options->entry != NULL ? k->code : k->object;
    char log[PATH_MAX], flags[256];
    words w = { .count = 0 };
    if (form == NULL) {
        snprintf(verdict->reason, sizeof verdict->reason,
                 k == NULL ? "%s: its name ends neither as source (.c, .cc, .cpp, .cu, .hip) nor as code (.so, .cubin, "
                             ".fatbin, .ptx, .hsaco, .co)"
                 : options->entry != NULL ? "%s has no device code whose kernel --entry could name"
                                          : "%s is device code: name its kernel by --entry, and --grid",
                 options->file);
        return false;
    }
    if (*form == 0) {
        if (realpath(options->file, path_out) != NULL) return verdict->built = true;
        snprintf(verdict->reason, sizeof verdict->reason, "%s: %s", options->file, strerror(errno));
        return false;
    }
    char *const percent = strstr(form, "%s");
    snprintf(flags, sizeof flags, "%.*s%s%s", percent != NULL ? (int)(percent - form) : (int)strlen(form), form,
             percent != NULL ? arch : "", percent != NULL ? percent + 2 : "");
    snprintf(path_out, 4096, "%s/judged.%s", work, options->entry != NULL ? "code" : "so");
    snprintf(log, sizeof log, "%s/log", work);
    if (!compile(options, k, flags, path_out, &w)) {
        snprintf(verdict->reason, sizeof verdict->reason, "the compiler's command line is too long");
        return false;
    }
    for (int i = 0; i < w.count; i++) {
        const size_t used = strlen(verdict->command);
        snprintf(verdict->command + used, sizeof verdict->command - used, "%s%s", i > 0 ? " " : "", w.word[i]);
    }
    const double start = bench_now();
    const int status = run(w.word, log);
    verdict->build_seconds = bench_now() - start;
    if (status == 0) return verdict->built = true;
    snprintf(verdict->reason, sizeof verdict->reason, "it does not compile: %s\n", verdict->command);
    read_log(log, verdict->reason, sizeof verdict->reason);
    return false;
}
