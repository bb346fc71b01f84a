/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of NVRTC and of hipRTC over a compiler that is a program, for emulated drivers. Who includes this
 * defines RTC_PREFIX (nvrtc), RTC_CODE (CUBIN), RTC_SWITCH, the variable of the environment without which there is no
 * compiler, and rtc_command(). With RTC_FAIL=1 in the environment nothing compiles. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RTC_PASTE_(a, b) a##b
#define RTC_PASTE(a, b) RTC_PASTE_(a, b)
#define RTC(name) RTC_PASTE(RTC_PREFIX, name)
/* An entry point, declared before it is defined. */
#define RTC_ENTRY(type, name, parameters) \
    __attribute__((visibility("default"))) type name parameters; \
    type name parameters

enum { RTC_SUCCESS, RTC_OUT_OF_MEMORY, RTC_INVALID_INPUT = 3, RTC_COMPILATION = 6, RTC_INTERNAL = 11 };

typedef struct rtc_program {
    char directory[64];
    unsigned char *code;
    size_t size;
    char log[4096];
} rtc_program;

/* The command that makes k.out of k.src, in the directory, where headers are too. */
static void rtc_command(char *command_out, size_t size, const char *directory, int count, const char *const *options);

static bool rtc_write(const char *directory, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    if (file == NULL) return false;
    const bool written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

/* A file's bytes; NULL: it cannot be read. */
static unsigned char *rtc_read(const char *directory, const char *name, size_t *size_out) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    unsigned char *bytes = NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (bytes = calloc(1, (size_t)ftell(file) + 1)) != NULL) {
        *size_out = (size_t)ftell(file);
        rewind(file);
        *size_out = fread(bytes, 1, *size_out, file);
    }
    fclose(file);
    return bytes;
}

RTC_ENTRY(int, RTC(Version), (int *major, int *minor)) {
    *major = 0;
    *minor = 1;
    return getenv(RTC_SWITCH) != NULL ? RTC_SUCCESS : RTC_INTERNAL;
}

RTC_ENTRY(const char *, RTC(GetErrorString), (int result)) {
    return result == RTC_COMPILATION ? "compilation failed"
           : result == RTC_INTERNAL  ? "the stand-in is turned on by " RTC_SWITCH
                                     : "an error of the stand-in";
}

RTC_ENTRY(int, RTC(CreateProgram),
          (void **out, const char *source, const char *name, int headers, const char *const *text,
           const char *const *header_name)) {
    rtc_program *p = calloc(1, sizeof *p);
    (void)name;
    if (p == NULL) return RTC_OUT_OF_MEMORY;
    strcpy(p->directory, "/tmp/trine-rtc-XXXXXX");
    bool written = mkdtemp(p->directory) != NULL && rtc_write(p->directory, "k.src", source);
    for (int i = 0; written && i < headers; i++) written = rtc_write(p->directory, header_name[i], text[i]);
    *out = p;
    return written ? RTC_SUCCESS : RTC_INVALID_INPUT;
}

RTC_ENTRY(int, RTC(CompileProgram), (void *program, int count, const char *const *options)) {
    rtc_program *p = program;
    char command[4096], all[4200];
    rtc_command(command, sizeof command, p->directory, count, options);
    snprintf(all, sizeof all, "%s 2>%s/log", getenv("RTC_FAIL") != NULL ? "false" : command, p->directory);
    const bool built = system(all) == 0;
    size_t size = 0;
    unsigned char *log = rtc_read(p->directory, "log", &size);
    if (log != NULL) snprintf(p->log, sizeof p->log, "%s", (const char *)log);
    free(log);
    if (built) p->code = rtc_read(p->directory, "k.out", &p->size);
    return p->code != NULL ? RTC_SUCCESS : RTC_COMPILATION;
}

RTC_ENTRY(int, RTC_PASTE(RTC(Get), RTC_PASTE(RTC_CODE, Size)), (void *program, size_t *size)) {
    *size = ((rtc_program *)program)->size;
    return RTC_SUCCESS;
}

RTC_ENTRY(int, RTC_PASTE(RTC(Get), RTC_CODE), (void *program, char *code)) {
    const rtc_program *p = program;
    memcpy(code, p->code, p->size);
    return RTC_SUCCESS;
}

RTC_ENTRY(int, RTC(GetProgramLogSize), (void *program, size_t *size)) {
    *size = strlen(((rtc_program *)program)->log) + 1;
    return RTC_SUCCESS;
}

RTC_ENTRY(int, RTC(GetProgramLog), (void *program, char *log)) {
    strcpy(log, ((rtc_program *)program)->log);
    return RTC_SUCCESS;
}

RTC_ENTRY(int, RTC(DestroyProgram), (void **program)) {
    rtc_program *p = *program;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", p->directory);
    if (system(command) != 0) fprintf(stderr, "cannot remove %s\n", p->directory);
    free(p->code);
    free(p);
    *program = NULL;
    return RTC_SUCCESS;
}
