/* SPDX-License-Identifier: Apache-2.0 */
/* All ranks of a large job start at once on a machine, with one tuning cache whose directory is not there yet: each
 * opens the library and a queue, and computes or records a choice. None fails or complains, no choice is lost, and
 * nothing but the cache is left. Speaks TAP. */
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <trine/trine.h>

#include "tests/tap.h"

#if defined(__SANITIZE_ADDRESS__)
enum { PROCESSES = 64 }; /* each takes several times as much memory */
#else
enum { PROCESSES = 256 };
#endif
enum { SIZES = 16, TYPES = 3, RECORDS = SIZES * TYPES, MOST = 1 << (SIZES - 1) };

static const trine_dtype types[TYPES] = { TRINE_F32, TRINE_BF16, TRINE_F16 };
static char folder[] = "/tmp/trine-starts-XXXXXX", cache[64], complaints[64];

static float input[MOST], output[MOST];

static bool opens(trine **lib_out, trine_queue **queue_out) {
    const trine_options options = { .struct_size = sizeof options, .tune_file = cache };
    const trine_queue_options one = { .struct_size = sizeof one, .threads = 1 };
    return trine_open(&options, lib_out) == TRINE_OK && trine_queue_open(*lib_out, 0, &one, queue_out) == TRINE_OK;
}

static bool computes(trine_queue *queue) {
    const trine_tensor tx = trine_tensor_1d(input, TRINE_F32, MOST), ty = trine_tensor_1d(output, TRINE_F32, MOST);
    bool right =
        trine_scale(queue, &(trine_scale_args){ TRINE_ARGS(scale), .x = &tx, .y = &ty, .alpha = 2 }) == TRINE_OK;
    for (int i = 0; i < MOST; i++) right &= output[i] == 2 * input[i];
    return right;
}

/* A line of its own for each `number`: by timing kernels, or of one that was chosen elsewhere. */
static bool records(trine_queue *queue, int number) {
    const int64_t n = INT64_C(1) << number % SIZES;
    const trine_dtype type = types[number / SIZES];
    const trine_tensor tx = trine_tensor_1d(input, type, n), ty = trine_tensor_1d(output, type, n);
    const trine_scale_args args = { TRINE_ARGS(scale), .x = &tx, .y = &ty, .alpha = 2 };
    trine_explanation why;
    if (number % 4 == 0) return trine_tune_call(queue, TRINE_OP_SCALE, &args) == TRINE_OK;
    return trine_explain(queue, TRINE_OP_SCALE, &args, &why) == TRINE_OK && why.chosen >= 0 &&
           trine_tune_choose(queue, TRINE_OP_SCALE, &args, why.candidate[why.chosen].kernel, 1e-6) == TRINE_OK;
}

/* A process; 0, or what it could not do. */
static int start(int number, int processes, _Atomic int *ready) {
    trine *lib = NULL;
    trine_queue *queue = NULL;
    const int file = open(complaints, O_WRONLY | O_APPEND | O_CLOEXEC);
    alarm(240);
    if (file < 0 || dup2(file, STDERR_FILENO) < 0) return 1;
    atomic_fetch_add(ready, 1);
    while (atomic_load(ready) < processes) usleep(1000);
    const int status = !opens(&lib, &queue)                                  ? 2
                       : !(number < RECORDS ? records(queue, number) : true) ? 3
                       : !computes(queue)                                    ? 4
                                                                             : 0;
    if (status) fprintf(stderr, "process %d: %s\n", number, trine_error_message());
    trine_queue_close(queue);
    trine_close(lib);
    return status;
}

/* The text of a file; NULL: there is none. */
static char *text_of(const char *path) {
    struct stat about;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    char *text = file >= 0 && fstat(file, &about) == 0 ? calloc(1, (size_t)about.st_size + 1) : NULL;
    if (text && read(file, text, (size_t)about.st_size) != about.st_size) text[0] = 0;
    if (file >= 0) close(file);
    return text;
}

static bool is_silent(void) {
    char *text = text_of(complaints);
    const bool silent = text && *text == 0;
    for (char *rest = text, *line; !silent && (line = strsep(&rest, "\n")) != NULL && *line;) printf("# %s\n", line);
    free(text);
    return silent;
}

/* How many of the choices are there, each once. */
static int choices(void) {
    char *text = text_of(cache);
    int lines = 0;
    for (char *rest = text, *line; rest && (line = strsep(&rest, "\n")) != NULL;) lines += *line && *line != '#';
    free(text);
    return lines;
}

/* Files in the cache's directory. */
static int files(const char *path) {
    DIR *all = opendir(path);
    int count = 0;
    for (const struct dirent *entry; all && (entry = readdir(all)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        if (strcmp(entry->d_name, "tune") != 0 && strcmp(entry->d_name, "tune.lock") != 0)
            printf("# %s is left\n", entry->d_name);
        count++;
    }
    if (all) closedir(all);
    return count;
}

static int run_all(int processes) {
    _Atomic int *ready = mmap(NULL, sizeof *ready, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = 0, started = 0;
    if (ready == MAP_FAILED) return processes;
    fflush(NULL);
    for (int i = 0; i < processes; i++) {
        const pid_t pid = fork();
        if (pid == 0) _exit(start(i, processes, ready));
        started += pid > 0;
    }
    atomic_fetch_add(ready, processes - started); /* nobody waits for one that could not be made */
    for (int status; started > 0 && wait(&status) > 0; started--) failed += status != 0;
    munmap(ready, sizeof *ready);
    return failed;
}

int main(void) {
    char directory[96];
    if (!mkdtemp(folder)) return tap_skip_all("there is no directory for it");
    snprintf(directory, sizeof directory, "%s/of/caches", folder);
    snprintf(cache, sizeof cache, "%s/of/caches/tune", folder);
    snprintf(complaints, sizeof complaints, "%s/complaints", folder);
    close(open(complaints, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    for (int i = 0; i < MOST; i++) input[i] = (float)(i % 100);
    for (int round = 0; round < 2; round++) {
        const int processes = round ? PROCESSES / 4 : PROCESSES;
        tap(run_all(processes) == 0, "%d processes at once, %s", processes,
            round ? "with the cache" : "without one yet");
        tap(is_silent(), "none complains");
        const int found = choices();
        tap(found == RECORDS, "%d of %d choices are there", found, RECORDS);
        tap(files(directory) == 2, "and no other file but the lock");
    }
    const char *const made[] = { "of/caches/tune", "of/caches/tune.lock", "complaints" };
    for (int i = 0; i < 3; i++) {
        snprintf(directory, sizeof directory, "%s/%s", folder, made[i]);
        unlink(directory);
    }
    for (const char *const *name = (const char *const[]){ "of/caches", "of", ".", NULL }; *name; name++) {
        snprintf(directory, sizeof directory, "%s/%s", folder, *name);
        rmdir(**name == '.' ? folder : directory);
    }
    return tap_end();
}
