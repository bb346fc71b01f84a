/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the vendor's compiler, or finds what it made before. Compiled once into each module. */
#include "compile.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The entry points, without the prefix; those of the code have a name of their vendor's. */
#define ENTRY_POINTS(ENTRY) \
    ENTRY(int, Version, (int *, int *)) \
    ENTRY(const char *, GetErrorString, (int)) \
    ENTRY(int, CreateProgram, (void **, const char *, const char *, int, const char *const *, const char *const *)) \
    ENTRY(int, DestroyProgram, (void **)) \
    ENTRY(int, CompileProgram, (void *, int, const char *const *)) \
    ENTRY(int, GetProgramLogSize, (void *, size_t *)) \
    ENTRY(int, GetProgramLog, (void *, char *))

static struct compiler {
#define ENTRY(type, name, parameters) type(*name) parameters;
    ENTRY_POINTS(ENTRY)
#undef ENTRY
    int (*GetCodeSize)(void *, size_t *);
    int (*GetCode)(void *, char *);
    char version[64];
    char missing[320]; /* why it is not there; "": it is */
} compiler;

/* --------------------------------------------------------------------------------------------------------- opening */

static void *entry_point(void *library, const char *name, const char *more) {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s%s", simt_compiler_of_vendor.prefix, name, more);
    return dlsym(library, symbol);
}

/* False if one is not there. */
static bool find_entry_points(void *library) {
    const char *code = simt_compiler_of_vendor.code;
    struct compiler *c = &compiler;
    char get[32];
#define ENTRY(type, name, parameters) \
    if ((*(void **)&c->name = entry_point(library, #name, "")) == NULL) return false;
    ENTRY_POINTS(ENTRY)
#undef ENTRY
    snprintf(get, sizeof get, "Get%s", code);
    *(void **)&c->GetCode = entry_point(library, get, "");
    *(void **)&c->GetCodeSize = entry_point(library, get, "Size");
    return c->GetCode != NULL && c->GetCodeSize != NULL;
}

/* What the program has linked or was given, else a library of the list. It is never closed. */
static bool open_library(void) {
    if (find_entry_points(RTLD_DEFAULT)) return true;
    for (const char *const *name = simt_compiler_of_vendor.libraries; *name != NULL; name++) {
        void *library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        if (library != NULL && find_entry_points(library)) return true;
    }
    return false;
}

static void open_compiler(void) {
    int major = 0, minor = 0;
    if (!open_library()) {
        size_t used = (size_t)snprintf(compiler.missing, sizeof compiler.missing, "no run-time compiler: there is no");
        for (const char *const *name = simt_compiler_of_vendor.libraries; *name != NULL; name++)
            if (used < sizeof compiler.missing)
                used += (size_t)snprintf(compiler.missing + used, sizeof compiler.missing - used, "%s %s",
                                         name == simt_compiler_of_vendor.libraries ? "" : ",", *name);
        return;
    }
    const int result = compiler.Version(&major, &minor);
    if (result != 0)
        snprintf(compiler.missing, sizeof compiler.missing, "no run-time compiler: %sVersion: %.200s",
                 simt_compiler_of_vendor.prefix, compiler.GetErrorString(result));
    snprintf(compiler.version, sizeof compiler.version, "%s %d.%d", simt_compiler_of_vendor.prefix, major, minor);
}

/* Opens the compiler once; why it is not there, or NULL. */
static const char *missing(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_compiler);
    return compiler.missing[0] ? compiler.missing : NULL;
}

const char *simt_compiler_version(void) { return compiler.version; }

/* -------------------------------------------------------------------------------------------------------- compiling */

enum { MOST_OPTIONS = 16 };

/* The options for an architecture; how many they are. */
static int options_of(const char *arch, char arch_option[static 64], const char *options_out[static MOST_OPTIONS]) {
    int count = 0;
    snprintf(arch_option, 64, "%s%s", simt_compiler_of_vendor.arch_option, arch);
    options_out[count++] = arch_option;
    for (const char *const *o = simt_compiler_of_vendor.options; *o != NULL && count < MOST_OPTIONS; o++)
        options_out[count++] = *o;
    return count;
}

static simt_code_key key_of(const char *source, int count, const char *const *options) {
    simt_code_key key = { { 0, 0 } };
    simt_code_key_add(&key, TRINE_VERSION, sizeof TRINE_VERSION);
    simt_code_key_add(&key, compiler.version, strlen(compiler.version));
    for (int i = 0; i < count; i++) simt_code_key_add(&key, options[i], strlen(options[i]));
    simt_code_key_add(&key, simt_compiler_of_vendor.vocabulary, strlen(simt_compiler_of_vendor.vocabulary));
    simt_code_key_add(&key, source, strlen(source));
    return key;
}

/* The first error that the compiler has told, or the beginning of what it said. */
static void keep_log(void *program, int result, simt_compiled *out) {
    size_t size = 0;
    char *log = NULL;
    if (compiler.GetProgramLogSize(program, &size) == 0 && size > 0 && (log = calloc(1, size + 1)) != NULL &&
        compiler.GetProgramLog(program, log) != 0)
        log[0] = 0;
    const char *error = log != NULL ? strstr(log, "error") : NULL;
    const char *words = error != NULL ? error : log != NULL ? log : "";
    snprintf(out->why, sizeof out->why, "%s: %s: %.*s", compiler.version, compiler.GetErrorString(result),
             (int)strcspn(words, "\n"), words);
    free(log);
}

static bool run_compiler(const char *source, int count, const char *const *options, simt_compiled *out) {
    static const char *const header_name[] = { "fetch.h" };
    void *program = NULL;
    int result = compiler.CreateProgram(&program, source, "trine", 1, &simt_compiler_of_vendor.vocabulary, header_name);
    if (result != 0) {
        snprintf(out->why, sizeof out->why, "%s: %s", compiler.version, compiler.GetErrorString(result));
        return false;
    }
    result = compiler.CompileProgram(program, count, options);
    if (result == 0) result = compiler.GetCodeSize(program, &out->size);
    if (result == 0 && (out->image = malloc(out->size)) == NULL)
        snprintf(out->why, sizeof out->why, "out of memory for %zu bytes of code", out->size);
    else if (result == 0)
        result = compiler.GetCode(program, out->image);
    if (result != 0) keep_log(program, result, out);
    compiler.DestroyProgram(&program);
    return out->why[0] == 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool simt_compile(const trine_call *call, const char *source, const char *function, simt_compiled *out) {
    char arch[SIMT_ARCH_SIZE], arch_option[64];
    const char *options[MOST_OPTIONS];
    *out = (simt_compiled){ .size = 0 };
    if (missing() != NULL) {
        snprintf(out->why, sizeof out->why, "%s", missing());
        return false;
    }
    simt_arch_of(call->device, arch);
    const int count = options_of(arch, arch_option, options);
    const simt_code_key key = key_of(source, count, options);
    out->image = simt_code_cache_read(call->host, &key, &out->size);
    if (out->image == NULL) {
        const double start = now();
        const bool made = run_compiler(source, count, options, out);
        out->seconds = now() - start;
        if (made) simt_code_cache_write(call->host, &key, out->image, out->size);
    }
    const bool loaded = out->why[0] == 0 && simt_load_compiled(call, function, out);
    if (!loaded) {
        free(out->image);
        out->image = NULL;
    }
    return loaded;
}

/* ----------------------------------------------------------------------------------------------------------- trying */

/* Of each device what came of the trial. */
enum { MOST_DEVICES = 16 };
static struct trial {
    _Atomic(const void *) device; /* NULL: nobody's yet; set when the rest is */
    simt_compiled code;
} trials[MOST_DEVICES];

/* The device's, or the first free one; NULL: there is neither. */
static struct trial *find_trial(const void *device) {
    struct trial *t = trials;
    while (t < trials + MOST_DEVICES && t->device != NULL && t->device != device) t++;
    return t < trials + MOST_DEVICES ? t : NULL;
}

const char *simt_compiler_missing(const trine_call *call) {
    static const char source[] = "#include <fetch.h>\nnamespace trine_device {\nstruct trial { int32_t nothing; };\n"
                                 "ENTRY(trial_of_compiler, 64, trial) {}\n}\n";
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (missing() != NULL) return missing();
    struct trial *t = find_trial(call->device);
    if (t != NULL && t->device == NULL) {
        pthread_mutex_lock(&lock);
        t = find_trial(call->device);
        if (t != NULL && t->device == NULL) {
            simt_compile(call, source, "trial_of_compiler", &t->code);
            t->device = call->device;
        }
        pthread_mutex_unlock(&lock);
    }
    if (t == NULL) return "more devices than run-time compilation keeps account of";
    return t->code.why[0] ? t->code.why : NULL;
}
