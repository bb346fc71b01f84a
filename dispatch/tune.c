/* SPDX-License-Identifier: Apache-2.0 */
/* The tuning cache: a text file of choices, read once into an immutable table.
 *
 * A line has the columns, separated by tabs: hash of the specification, hash of the op's kernel list, device, driver, op, call, kernel, seconds. The first four say
 * whose line it is; a line of somebody else is kept when the file is rewritten, but never found. In the call's text, sizes are the largest powers of two not above
 * them, so that a line serves its whole bucket. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dispatch.h"

enum { COLUMNS = 8, KEY_COLUMNS = 6, OWNER_COLUMNS = 4, LINE_SIZE = 2048, FILE_LIMIT = 64 << 20 };

static const char header[] = "# trine tuning cache 1: specification, kernels, device, driver, op, call, kernel, seconds\n";

typedef struct entry {
    uint64_t key; /* 0: a free place */
    const char *kernel;
} entry;

struct trine_tune {
    char path[PATH_MAX];
    char *text;    /* the file; columns are cut out of it */
    size_t places; /* a power of two, more than twice the entries; 0: nothing is cached */
    entry *table;
    _Atomic uint64_t owner[TRINE_MAX_DEVICES][TRINE_OP_COUNT]; /* hash of the first four columns; 0: not computed yet */
};

/* ---------------------------------------------------------------------------------------------------------------------- keys */

static uint64_t hash_text(uint64_t hash, const char *text) { /* FNV-1a, end included */
    do hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    while (*text++);
    return hash;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* The bucket of a size: 0 for 0, else 1 + floor(log2). */
static uint64_t bucket_of(int64_t size) { return size > 0 ? 64 - (uint64_t)__builtin_clzll((unsigned long long)size) : 0; }

/* What tells calls apart: the same from a call and from the text of a line. Two keys that collide cost speed, never correctness. */
typedef struct choice {
    trine_dtype type[TRINE_MAX_SYMBOLS];
    int64_t dim[TRINE_MAX_SYMBOLS];
    uint64_t param[TRINE_MAX_PARAMS]; /* BOOL and ENUM */
    uint32_t present;                 /* of the optional tensors */
    uint32_t flags;                   /* TRINE_QUEUE_ATOMICS, which decides what kernels may do */
} choice;

static uint64_t key_of(uint64_t owner, const trine_plan *plan, const choice *c) {
    uint64_t hash = mix(owner, (uint64_t)plan->op << 40 ^ (uint64_t)c->flags << 32 ^ c->present);
    for (int i = 0; i < plan->types; i++) hash = mix(hash, c->type[i]);
    for (int i = 0; i < plan->symbols; i++) hash = mix(hash, bucket_of(c->dim[i]));
    for (int i = 0; i < plan->params; i++) hash = mix(hash, c->param[i]);
    return hash ? hash : 1;
}

static bool is_choice(const trine_spec_param *param) { return param->kind == BOOL || param->kind == ENUM; }

static void choice_of_call(const trine_queue *queue, const trine_call *call, choice *c) {
    const trine_plan *plan = call->plan;
    memcpy(c->type, call->type, sizeof c->type);
    memcpy(c->dim, call->dim, sizeof c->dim);
    c->present = 0;
    c->flags = queue->flags & TRINE_QUEUE_ATOMICS;
    for (int i = 0; i < plan->tensors; i++)
        if (plan->tensor[i].spec->flags & OPTIONAL) c->present |= call->present & 1u << i;
    for (int i = 0; i < plan->params; i++) c->param[i] = is_choice(&plan->spec->params[i]) ? (uint64_t)trine_param_get(plan, i, call->args) : 0;
}

__attribute__((format(printf, 3, 4))) static void add(char *out, size_t size, const char *format, ...) {
    const size_t used = strlen(out);
    snprintf(out + used, size - used, "%s", used ? " " : "");
    va_list list;
    va_start(list, format);
    vsnprintf(out + strlen(out), size - strlen(out), format, list);
    va_end(list);
}

static void text_of_choice(const trine_plan *plan, const choice *c, char *out, size_t size) {
    out[0] = 0;
    for (int i = 0; i < plan->types; i++) add(out, size, "%s=%s", plan->type_name[i], trine_dtype_name(c->type[i]));
    for (int i = 0; i < plan->symbols; i++) {
        const uint64_t bucket = bucket_of(c->dim[i]);
        add(out, size, "%s=%lld", plan->symbol_name[i], bucket ? (long long)(UINT64_C(1) << (bucket - 1)) : 0);
    }
    for (int i = 0; i < plan->tensors; i++)
        if (c->present >> i & 1) add(out, size, "+%s", plan->tensor[i].spec->name);
    for (int i = 0; i < plan->params; i++)
        if (c->param[i]) add(out, size, "%s=%lld", plan->spec->params[i].name, (long long)c->param[i]);
    if (c->flags) add(out, size, "flags=%" PRIu32, c->flags);
}

static bool parse_word(const trine_plan *plan, char *word, choice *c) {
    if (word[0] == '+') {
        const int tensor = trine_plan_find_tensor(plan, word + 1);
        if (tensor >= 0) c->present |= 1u << tensor;
        return tensor >= 0;
    }
    char *value = strchr(word, '=');
    if (value == NULL || value[1] == 0) return false;
    *value++ = 0;
    const int type = trine_plan_find_type(plan, word);
    if (type >= 0) return (c->type[type] = trine_dtype_parse(value)) != TRINE_NONE;
    char *end;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (errno != 0 || *end != 0 || number < 0) return false;
    const int symbol = trine_plan_find_symbol(plan, word), param = trine_plan_find_param(plan, word);
    if (symbol >= 0)
        c->dim[symbol] = number;
    else if (param >= 0)
        c->param[param] = (uint64_t)number;
    else if (strcmp(word, "flags") == 0)
        c->flags = (uint32_t)number;
    else
        return false;
    return true;
}

/* ---------------------------------------------------------------------------------------------------------------------- lines */

/* What a line is; a corrupt one cannot be of any version of the format. */
typedef enum line_kind { BLANK, CORRUPT, FOREIGN, OURS } line_kind;

/* Cuts a line into columns, which must be as many. */
static bool cut(char *line, char *column[COLUMNS]) {
    int count = 0;
    for (char *rest = line; rest != NULL; count++) {
        char *word = strsep(&rest, "\t");
        if (count == COLUMNS || word[0] == 0) return false;
        column[count] = word;
    }
    return count == COLUMNS;
}

static bool is_hash(const char *text) { return strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16; }

/* Cuts and judges a line; on OURS the key, which depends on the columns alone, and the kernel. */
static line_kind parse_line(char *line, uint64_t spec_hash, uint64_t *key_out, const char **kernel_out) {
    char *column[COLUMNS], *end;
    if (line[0] == 0 || line[0] == '#') return BLANK;
    for (const char *at = line; *at; at++)
        if ((unsigned char)*at < ' ' && *at != '\t') return CORRUPT;
    if (!cut(line, column) || !is_hash(column[0]) || !is_hash(column[1])) return CORRUPT;
    const double seconds = strtod(column[7], &end);
    if (*end != 0 || !(seconds >= 0 && seconds < 1e9)) return CORRUPT;
    if (strtoull(column[0], NULL, 16) != spec_hash) return FOREIGN;
    const trine_plan *plan = trine_plan_get(trine_op_find(column[4]));
    if (plan == NULL) return CORRUPT;
    uint64_t owner = 0;
    for (int i = 0; i < OWNER_COLUMNS; i++) owner = hash_text(owner, column[i]);
    choice c = { .flags = 0 };
    for (char *rest = column[5]; rest != NULL;)
        if (!parse_word(plan, strsep(&rest, " "), &c)) return CORRUPT;
    *key_out = key_of(owner, plan, &c);
    *kernel_out = column[6];
    return OURS;
}

/* The file's text with a 0 at its end, at most FILE_LIMIT bytes; NULL with errno set. A file that does not exist is empty. */
static char *read_file(const char *path, size_t *size_out) {
    struct stat status;
    char *text = NULL;
    *size_out = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return errno == ENOENT || errno == ENOTDIR ? calloc(1, 1) : NULL;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= FILE_LIMIT) {
        text = malloc((size_t)status.st_size + 1);
        while (text != NULL && *size_out < (size_t)status.st_size) {
            const ssize_t got = read(file, text + *size_out, (size_t)status.st_size - *size_out);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) {
                free(text);
                text = NULL;
            }
            if (got <= 0) break;
            *size_out += (size_t)got;
        }
        if (text != NULL) text[*size_out] = 0;
    } else {
        errno = S_ISREG(status.st_mode) ? EFBIG : EINVAL;
    }
    const int error = errno;
    close(file);
    errno = error;
    return text;
}

/* The next line of a text that has `size` bytes, cut out of it; NULL at its end. A 0 among its bytes leaves a line that is corrupt. */
static char *next_line(char **rest, char *end) {
    char *line = *rest;
    if (line >= end) return NULL;
    char *stop = memchr(line, '\n', (size_t)(end - line));
    if (stop == NULL) stop = end;
    for (char *at = line; at < stop; at++)
        if (*at == 0) *at = 1;
    *stop = 0;
    *rest = stop + 1;
    return line;
}

/* --------------------------------------------------------------------------------------------------------------------- opening */

static bool default_path(char *path_out, size_t size) {
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int length = (int)size;
    if (cache != NULL && cache[0] == '/')
        length = snprintf(path_out, size, "%s/trine/tune", cache);
    else if (home != NULL && home[0] == '/')
        length = snprintf(path_out, size, "%s/.cache/trine/tune", home);
    return length < (int)size;
}

static void insert(trine_tune *tune, uint64_t key, const char *kernel) {
    size_t place = key & (tune->places - 1);
    while (tune->table[place].key != 0 && tune->table[place].key != key) place = (place + 1) & (tune->places - 1);
    tune->table[place] = (entry){ key, kernel }; /* a later line wins */
}

static void read_table(trine_tune *tune) {
    size_t size, lines = 0, corrupt = 0, first = 0;
    tune->text = read_file(tune->path, &size);
    if (tune->text == NULL) {
        fprintf(stderr, "trine: tuning cache %s ignored: %s\n", tune->path, errno == EINVAL ? "not a regular file" : strerror(errno));
        return;
    }
    for (size_t i = 0; i < size; i++) lines += tune->text[i] == '\n';
    if (size == 0) return;
    for (tune->places = 16; tune->places < 2 * (lines + 2);) tune->places *= 2;
    tune->table = calloc(tune->places, sizeof *tune->table);
    if (tune->table == NULL) {
        tune->places = 0;
        return;
    }
    const uint64_t spec_hash = trine_spec_hash();
    char *rest = tune->text, *line;
    for (size_t number = 1; (line = next_line(&rest, tune->text + size)) != NULL; number++) {
        uint64_t key;
        const char *kernel;
        const line_kind kind = parse_line(line, spec_hash, &key, &kernel);
        if (kind == OURS) insert(tune, key, kernel);
        if (kind == CORRUPT && corrupt++ == 0) first = number;
    }
    if (corrupt) fprintf(stderr, "trine: tuning cache %s: %zu corrupt lines ignored, the first is line %zu\n", tune->path, corrupt, first);
}

trine_tune *trine_tune_open(const char *path) {
    if (path != NULL && (path[0] == 0 || strcmp(path, "/dev/null") == 0)) return NULL;
    trine_tune *tune = calloc(1, sizeof *tune);
    if (tune == NULL) return NULL;
    if (path != NULL ? snprintf(tune->path, sizeof tune->path, "%s", path) >= (int)sizeof tune->path : !default_path(tune->path, sizeof tune->path)) {
        free(tune);
        return NULL;
    }
    read_table(tune);
    return tune;
}

void trine_tune_close(trine_tune *tune) {
    if (tune == NULL) return;
    free(tune->table);
    free(tune->text);
    free(tune);
}

/* --------------------------------------------------------------------------------------------------------------------- finding */

/* The columns that say whose line it is. */
static void owner_columns(const trine_queue *queue, trine_op op, char out[OWNER_COLUMNS][256]) {
    const trine_device *device = queue->device;
    uint64_t kernels = hash_text(0, TRINE_VERSION);
    for (const trine_kernel *k = queue->backend->kernels(device, op); k != NULL && k->name != NULL; k++) kernels = hash_text(kernels, k->name);
    snprintf(out[0], 256, "%016" PRIx64, trine_spec_hash());
    snprintf(out[1], 256, "%016" PRIx64, kernels);
    snprintf(out[2], 256, "%s, %s, %d units", device->info.model, device->info.arch, device->info.units);
    snprintf(out[3], 256, "%s", device->driver != NULL && device->driver[0] ? device->driver : "-");
    for (int i = 0; i < OWNER_COLUMNS; i++)
        for (char *at = out[i]; *at; at++)
            if ((unsigned char)*at < ' ') *at = ' ';
}

static uint64_t owner_of(trine_tune *tune, const trine_queue *queue, trine_op op) {
    _Atomic uint64_t *known = &tune->owner[queue->device_index][op];
    uint64_t owner = atomic_load_explicit(known, memory_order_relaxed);
    if (owner != 0) return owner;
    char column[OWNER_COLUMNS][256];
    owner_columns(queue, op, column);
    for (int i = 0; i < OWNER_COLUMNS; i++) owner = hash_text(owner, column[i]);
    atomic_store_explicit(known, owner, memory_order_relaxed);
    return owner;
}

const char *trine_tune_find(const trine_queue *queue, const trine_call *call) {
    trine_tune *tune = queue->lib->tune;
    if (tune == NULL || tune->places == 0) return NULL;
    choice c;
    choice_of_call(queue, call, &c);
    const uint64_t key = key_of(owner_of(tune, queue, call->plan->op), call->plan, &c);
    for (size_t place = key & (tune->places - 1); tune->table[place].key != 0; place = (place + 1) & (tune->places - 1))
        if (tune->table[place].key == key) return tune->table[place].kernel;
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------------------- recording */

static trine_status io_error(const char *what, const char *path) { return trine_fail(TRINE_ERR_IO, "tuning cache: %s %s: %s", what, path, strerror(errno)); }

/* Makes the directories above `path`. */
static void make_directories(const char *path) {
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%s", path);
    for (char *at = strchr(directory + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(directory, 0700); /* if it could not be made, opening the lock says why */
        *at = '/';
    }
}

/* Does the line begin with these columns? */
static bool same_key(const char *line, const char *key) { return strncmp(line, key, strlen(key)) == 0; }

/* Writes everything of `text` that is worth keeping, without the line that `key` replaces. */
static void write_kept(FILE *out, char *text, size_t size, const char *key) {
    char *rest = text, *line;
    fputs(header, out);
    while ((line = next_line(&rest, text + size)) != NULL) {
        char copy[LINE_SIZE];
        uint64_t ignored;
        const char *kernel;
        if (line[0] == '#' || strlen(line) >= sizeof copy || same_key(line, key)) continue;
        memcpy(copy, line, strlen(line) + 1);
        const line_kind kind = parse_line(copy, trine_spec_hash(), &ignored, &kernel);
        if (kind == FOREIGN || kind == OURS) fprintf(out, "%s\n", line);
    }
}

/* The file with `line` added, under the lock. */
static trine_status replace_file(const char *path, const char *key, const char *line) {
    char temporary[PATH_MAX + 32];
    size_t size;
    char *text = read_file(path, &size);
    if (text == NULL) return io_error("cannot read", path);
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    const int file = mkostemp(temporary, O_CLOEXEC);
    FILE *out = file >= 0 ? fdopen(file, "w") : NULL;
    if (out == NULL) {
        const trine_status status = io_error("cannot write", temporary);
        if (file >= 0) {
            close(file);
            unlink(temporary);
        }
        free(text);
        return status;
    }
    write_kept(out, text, size, key);
    free(text);
    fprintf(out, "%s%s\n", key, line);
    const bool written = fflush(out) == 0 && !ferror(out) && fsync(file) == 0;
    trine_status status = TRINE_OK;
    if (!written) status = io_error("cannot write", temporary);
    fclose(out);
    if (written && rename(temporary, path) != 0) status = io_error("cannot replace", path);
    if (status != TRINE_OK) unlink(temporary);
    return status;
}

trine_status trine_tune_record(trine_queue *queue, const trine_call *call, const char *kernel, double seconds) {
    trine_tune *tune = queue->lib->tune;
    if (tune == NULL) return trine_fail(TRINE_ERR_IO, "tuning cache: there is none: the library was opened without one, or HOME is not set");
    char column[OWNER_COLUMNS][256], text[LINE_SIZE / 4], key[LINE_SIZE], line[256], path[PATH_MAX], lock[PATH_MAX + 8];
    choice c;
    owner_columns(queue, call->plan->op, column);
    choice_of_call(queue, call, &c);
    text_of_choice(call->plan, &c, text, sizeof text);
    snprintf(key, sizeof key, "%s\t%s\t%s\t%s\t%s\t%s\t", column[0], column[1], column[2], column[3], call->plan->spec->name, text);
    snprintf(line, sizeof line, "%s\t%.4e", kernel, seconds);
    make_directories(tune->path);
    if (realpath(tune->path, path) == NULL) memcpy(path, tune->path, sizeof path); /* a link stays one */
    snprintf(lock, sizeof lock, "%s.lock", path);
    const int file = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return io_error("cannot open", lock);
    while (flock(file, LOCK_EX) != 0)
        if (errno != EINTR) {
            const trine_status status = io_error("cannot lock", lock);
            close(file);
            return status;
        }
    const trine_status status = replace_file(path, key, line);
    close(file);
    return status;
}
