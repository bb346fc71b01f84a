/* SPDX-License-Identifier: Apache-2.0 */
/* Runs llvm-objdump over a code object, once, and decodes what it prints. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"

static bool write_all(int file, const unsigned char *bytes, size_t size) {
    while (size > 0) {
        const ssize_t written = write(file, bytes, size);
        if (written <= 0) return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

/* All that the command prints, to be freed; NULL if it fails. */
static char *output_of(const char *command) {
    FILE *pipe = popen(command, "r");
    size_t length = 0, room = 1 << 16;
    char *text = malloc(room);
    while (pipe != NULL && text != NULL) {
        const size_t got = fread(text + length, 1, room - length - 1, pipe);
        length += got;
        if (got == 0) break;
        if (room - length < 4096) {
            char *grown = realloc(text, room *= 2);
            if (grown == NULL) free(text);
            text = grown;
        }
    }
    const int status = pipe != NULL ? pclose(pipe) : -1;
    if (status == 0 && text != NULL) {
        text[length] = 0;
        return text;
    }
    free(text);
    return NULL;
}

static char *objdump(const void *bytes, size_t size, cdna_failure *failure) {
    const char *program = getenv("CDNA_OBJDUMP"), *directory = getenv("TMPDIR");
    char path[256], command[768];
    snprintf(path, sizeof path, "%s/trine-cdna-XXXXXX", directory ? directory : "/tmp");
    const int file = mkstemp(path);
    char *text = NULL;
    snprintf(command, sizeof command, "'%s' --disassemble --no-print-imm-hex '%s' 2>/dev/null",
             program ? program : CDNA_OBJDUMP, path);
    if (file >= 0 && write_all(file, bytes, size)) text = output_of(command);
    if (file >= 0) {
        close(file);
        unlink(path);
    }
    if (text == NULL)
        snprintf(failure->message, sizeof failure->message, "%s cannot disassemble the code object",
                 program ? program : CDNA_OBJDUMP);
    return text;
}

/* "\tTEXT   // ADDRESS: WORD WORD <symbol+0x..>": cuts TEXT off, and fills the instruction. */
static bool parse_line(char *line, instruction *in, uint32_t *word_out) {
    char *comment = strstr(line, "// ");
    if (line[0] != '\t' || comment == NULL) return false;
    char *end;
    in->pc = (uint32_t)strtoul(comment + 3, &end, 16);
    if (*end != ':') return false;
    *word_out = (uint32_t)strtoul(end + 1, &end, 16);
    in->size = 4;
    for (; strspn(end + 1, "0123456789ABCDEF") == 8; end += 9) in->size += 4;
    while (comment > line + 1 && (comment[-1] == ' ' || comment[-1] == '\t')) comment--;
    *comment = 0;
    in->text = line + 1;
    return true;
}

static int count_lines(const char *text) {
    int lines = 1;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

static void resolve_targets(cdna_object *o) {
    for (int i = 0; i < o->instructions; i++) {
        instruction *in = &o->instruction[i];
        if (in->row == NULL || !(in->row->flags & ROW_JUMPS) || in->operands != 1) continue;
        const int64_t to = (int64_t)in->pc + 4 + 4 * (int64_t)(int16_t)in->operand[0].value;
        if (to >= 0 && to < (int64_t)o->image_size && to % 4 == 0) in->target = o->at[to / 4];
    }
}

bool disassemble(cdna_object *o, const void *bytes, size_t size, cdna_failure *failure) {
    o->listing = objdump(bytes, size, failure);
    if (o->listing == NULL) return false;
    o->instruction = calloc((size_t)count_lines(o->listing), sizeof *o->instruction);
    o->at = malloc(o->image_size / 4 * sizeof *o->at);
    if (o->instruction == NULL || o->at == NULL) return false;
    memset(o->at, -1, o->image_size / 4 * sizeof *o->at);
    char *rest = o->listing, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        instruction *in = &o->instruction[o->instructions];
        uint32_t word;
        if (!parse_line(line, in, &word) || in->pc / 4 >= o->image_size / 4) continue;
        in->index = o->instructions;
        decode(in->text, word, in);
        o->at[in->pc / 4] = o->instructions++;
    }
    resolve_targets(o);
    return true;
}

int cdna_object_instructions(const cdna_object *object) { return object->instructions; }

const char *cdna_object_instruction(const cdna_object *object, int index, uint32_t *offset_out) {
    *offset_out = object->instruction[index].pc;
    return object->instruction[index].text;
}

bool cdna_object_known(const cdna_object *object, int index) { return object->instruction[index].row != NULL; }
