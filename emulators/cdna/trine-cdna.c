/* SPDX-License-Identifier: Apache-2.0 */
/* trine-cdna: lists and runs the kernels of a code object. */
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "cdna.h"
#include "spec/number.h"

static const char usage[] = "trine-cdna list OBJECT\n"
                            "trine-cdna run OBJECT KERNEL [OPTION...] [ARGUMENT...]\n"
                            "\n"
                            "Options:\n"
                            "  --grid X[,Y[,Z]]   workgroups (1)\n"
                            "  --group X[,Y[,Z]]  work-items of a workgroup (64)\n"
                            "  --lds BYTES        dynamic LDS\n"
                            "  --orders           run in both wave orders, which must agree\n"
                            "  --quantum N        instructions of a wave's turn (to the next barrier)\n"
                            "  --trace[=WAVE]     print each instruction executed\n"
                            "  --profile          print what was counted\n"
                            "  --listing          print how often each instruction ran\n"
                            "\n"
                            "Arguments, in the order of the kernel's:\n"
                            "  i32:N i64:N f32:X f64:X\n"
                            "  in:FILE            a buffer with the bytes of FILE\n"
                            "  out:FILE:BYTES     a buffer, to be written to FILE\n"
                            "  inout:FILE         both\n"
                            "  random:N           N floats in [-1, 1)\n";

typedef struct buffer {
    void *memory;
    size_t bytes;
    const char *write_to;
} buffer;

typedef struct command {
    cdna_machine *machine;
    cdna_object *object;
    const cdna_kernel *kernel;
    cdna_grid grid;
    cdna_options options;
    bool orders, profile, listing;
    unsigned char arguments[4096];
    size_t bytes;
    int given;
    buffer buffer[64];
    int buffers;
    cdna_failure failure;
} command;

static _Noreturn void quit(const char *message, const char *detail) {
    fprintf(stderr, "trine-cdna: %s%s%s\n", message, detail ? ": " : "", detail ? detail : "");
    exit(1);
}

static unsigned char *read_file(const char *path, size_t *bytes_out) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) quit("cannot read", path);
    size_t room = 1 << 16, length = 0, got;
    unsigned char *bytes = malloc(room);
    while (bytes && (got = fread(bytes + length, 1, room - length, file)) > 0) {
        length += got;
        if (length < room) continue;
        unsigned char *const grown = realloc(bytes, room *= 2);
        if (grown == NULL) free(bytes);
        bytes = grown;
    }
    fclose(file);
    if (bytes == NULL) quit("no memory for", path);
    *bytes_out = length;
    return bytes;
}

/* The object says which chip it is for: the machines that refuse it are not. */
static void open_object(command *c, const char *path) {
    size_t size;
    unsigned char *bytes = read_file(path, &size);
    for (int chip = 0; chip < CDNA_CHIPS; chip++) {
        c->machine = cdna_open((cdna_chip)chip);
        if (c->machine == NULL) quit("no memory", NULL);
        c->object = cdna_object_load(c->machine, bytes, size, &c->failure);
        if (c->object) break;
        cdna_close(c->machine);
    }
    free(bytes);
    if (c->object == NULL) quit(path, c->failure.message);
}

/* ------------------------------------------------------------------------------------------------------------- list */

static int list(command *c) {
    int kernels, unknown = 0;
    const cdna_kernel *kernel = cdna_object_kernels(c->object, &kernels);
    printf("%s\n", cdna_chip_name(cdna_machine_chip(c->machine)));
    for (int i = 0; i < kernels; i++)
        printf("%s: %u vgprs, %u agprs, %u sgprs, %u+%u spilled; LDS %u, scratch %u, arguments %u bytes\n",
               kernel[i].name, kernel[i].vgprs, kernel[i].agprs, kernel[i].sgprs, kernel[i].vgpr_spills,
               kernel[i].sgpr_spills, kernel[i].lds_size, kernel[i].private_size, kernel[i].kernarg_size);
    for (int i = 0; i < cdna_object_instructions(c->object); i++) {
        uint32_t offset;
        const char *text = cdna_object_instruction(c->object, i, &offset);
        if (cdna_object_known(c->object, i)) continue;
        printf("unknown: %6x  %s\n", offset, text);
        unknown++;
    }
    return unknown > 0;
}

/* -------------------------------------------------------------------------------------------------------------- run */

static void parse_sizes(const char *text, uint32_t sizes[3]) {
    for (int i = 0; i < 3; i++) {
        char *end;
        sizes[i] = (uint32_t)strtoul(text, &end, 10);
        if (end == text || (*end != 0 && *end != ',')) quit("bad size", text);
        if (*end == 0) return;
        text = end + 1;
    }
}

static void append(command *c, const void *value, size_t size) {
    int at = 0;
    for (int i = 0; i < c->kernel->arguments; i++) {
        const struct cdna_argument *a = &c->kernel->argument[i];
        if (strncmp(a->kind, "hidden_", 7) == 0 || at++ != c->given) continue;
        if (a->size != size || a->offset + size > sizeof c->arguments)
            quit("the argument is of another size than the kernel's", c->kernel->name);
        memcpy(c->arguments + a->offset, value, size);
        if (a->offset + size > c->bytes) c->bytes = a->offset + size;
        c->given++;
        return;
    }
    quit("more arguments than the kernel has", c->kernel->name);
}

static void append_buffer(command *c, const void *contents, size_t bytes, const char *write_to) {
    if (c->buffers == (int)(sizeof c->buffer / sizeof c->buffer[0])) quit("too many buffers", NULL);
    void *memory = cdna_memory_alloc(c->machine, bytes);
    if (memory == NULL) quit("no memory", NULL);
    if (contents)
        memcpy(memory, contents, bytes);
    else
        memset(memory, 0xa5, bytes);
    c->buffer[c->buffers++] = (buffer){ memory, bytes, write_to };
    append(c, &memory, sizeof memory);
}

static void append_random(command *c, size_t count) {
    float *x = malloc(count * sizeof *x + 1);
    if (x == NULL) quit("no memory", NULL);
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) x[i] = (float)((state = state * 1664525 + 1013904223) >> 8) * 0x1p-23f - 1;
    append_buffer(c, x, count * sizeof *x, NULL);
    free(x);
}

static void parse_argument(command *c, char *text) {
    char *value = strchr(text, ':');
    if (value == NULL) quit("bad argument", text);
    *value++ = 0;
    const int64_t i64 = strtoll(value, NULL, 0);
    const int32_t i32 = (int32_t)i64;
    const double f64 = trine_strtod(value, NULL);
    const float f32 = (float)f64;
    if (strcmp(text, "i32") == 0) {
        append(c, &i32, sizeof i32);
    } else if (strcmp(text, "i64") == 0) {
        append(c, &i64, sizeof i64);
    } else if (strcmp(text, "f32") == 0) {
        append(c, &f32, sizeof f32);
    } else if (strcmp(text, "f64") == 0) {
        append(c, &f64, sizeof f64);
    } else if (strcmp(text, "random") == 0) {
        append_random(c, (size_t)i64);
    } else if (strcmp(text, "in") == 0 || strcmp(text, "inout") == 0) {
        size_t bytes;
        unsigned char *contents = read_file(value, &bytes);
        append_buffer(c, contents, bytes, text[2] ? value : NULL);
        free(contents);
    } else if (strcmp(text, "out") == 0 && strchr(value, ':')) {
        char *size = strrchr(value, ':');
        *size++ = 0;
        append_buffer(c, NULL, strtoull(size, NULL, 0), value);
    } else {
        quit("bad argument", text);
    }
}

static int parse_option(command *c, char **word) {
    if (strcmp(word[0], "--orders") == 0) return c->orders = true, 1;
    if (strcmp(word[0], "--profile") == 0) return c->profile = true, 1;
    if (strcmp(word[0], "--listing") == 0) return c->listing = true, 1;
    if (strncmp(word[0], "--trace", 7) == 0) {
        c->options.trace = stdout;
        c->options.trace_wave = word[0][7] == '=' ? atoi(word[0] + 8) : -1;
        return 1;
    }
    if (word[1] == NULL) quit("an option lacks its value", word[0]);
    if (strcmp(word[0], "--grid") == 0)
        parse_sizes(word[1], c->grid.workgroups);
    else if (strcmp(word[0], "--group") == 0)
        parse_sizes(word[1], c->grid.workgroup);
    else if (strcmp(word[0], "--lds") == 0)
        c->grid.dynamic_lds = (uint32_t)strtoul(word[1], NULL, 0);
    else if (strcmp(word[0], "--quantum") == 0)
        c->options.quantum = atoi(word[1]);
    else
        quit("no such option", word[0]);
    return 2;
}

static void write_buffers(const command *c) {
    for (int i = 0; i < c->buffers; i++) {
        if (c->buffer[i].write_to == NULL) continue;
        FILE *file = fopen(c->buffer[i].write_to, "wb");
        if (file == NULL || fwrite(c->buffer[i].memory, 1, c->buffer[i].bytes, file) != c->buffer[i].bytes ||
            fclose(file) != 0)
            quit("cannot write", c->buffer[i].write_to);
    }
}

static void print_listing(const command *c, const cdna_profile *profile) {
    for (int i = 0; i < cdna_object_instructions(c->object); i++) {
        uint32_t offset;
        const char *text = cdna_object_instruction(c->object, i, &offset);
        if (profile->executed[i]) printf("%12" PRIu64 "  %6x  %s\n", profile->executed[i], offset, text);
    }
}

static int run(command *c, char **word) {
    c->grid = (cdna_grid){ { 1, 1, 1 }, { 64, 1, 1 }, 0 };
    c->options.trace_wave = -1;
    c->kernel = cdna_object_kernel(c->object, *word);
    if (c->kernel == NULL) quit("no such kernel", *word);
    for (word++; *word;) {
        if (strncmp(*word, "--", 2) == 0)
            word += parse_option(c, word);
        else
            parse_argument(c, *word++);
    }
    cdna_profile profile = { .executed = c->listing
                                             ? calloc((size_t)cdna_object_instructions(c->object), sizeof(uint64_t))
                                             : NULL };
    const bool ok = (c->orders ? cdna_launch_both : cdna_launch)(c->machine, c->kernel, &c->grid, c->arguments,
                                                                 c->bytes, &c->options, &profile, &c->failure);
    if (c->listing) print_listing(c, &profile);
    if (c->profile) cdna_profile_print(&profile, stdout);
    free(profile.executed);
    if (!ok) fprintf(stderr, "trine-cdna: %s\n", c->failure.message);
    if (ok) write_buffers(c);
    return !ok;
}

int main(int argc, char **argv) {
    setlocale(LC_NUMERIC, "C"); /* what is preloaded may have taken another */
    static command c;
    const bool lists = argc == 3 && strcmp(argv[1], "list") == 0, runs = argc > 3 && strcmp(argv[1], "run") == 0;
    if (!lists && !runs) {
        fputs(usage, argc > 1 && strcmp(argv[1], "--help") == 0 ? stdout : stderr);
        return argc > 1 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    open_object(&c, argv[2]);
    const int status = lists ? list(&c) : run(&c, argv + 3);
    cdna_close(c.machine);
    return status;
}
