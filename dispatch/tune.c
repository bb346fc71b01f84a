/* SPDX-License-Identifier: Apache-2.0 */
/* The tuning cache: a text file of choices, read once into an immutable table; and the text of choices that a backend
 * ships.
 *
 * A line has the columns, separated by tabs: hash of the op's specification, hash of the op's kernel list, device,
 * driver, op, call, kernel, seconds. The first four say whose line it is; a line of somebody else is kept when the file
 * is rewritten, but never found. In the call's text, sizes are the least of their buckets, so that a line serves a
 * whole bucket. Of lines that are shipped, only the device says whose they are: that a kernel exists and takes the call
 * is asked anyway. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "choice.h"
#include "spec/number.h"

enum { COLUMNS = 8, KEY_COLUMNS = 6, OWNER_COLUMNS = 4, DEVICE_COLUMN = 2, LINE_SIZE = 2048, FILE_LIMIT = 64 << 20 };

static const char header[] =
    "# trine tuning cache 1: specification, kernels, device, driver, op, call, kernel, seconds\n";

typedef struct entry {
    uint64_t key; /* 0: a free place */
    const char *kernel;
} entry;

struct trine_tune {
    char path[PATH_MAX];
    char *text;    /* the file; columns are cut out of it */
    size_t places; /* a power of two, more than twice the entries; 0: nothing is cached */
    entry *table;
    const trine *shipped; /* the library whose backends ship it; NULL: a file */
    /* Hash of the columns that say whose; 0: not computed yet, or, of what is shipped, that there is no line. */
    _Atomic uint64_t owner[TRINE_MAX_DEVICES][TRINE_OP_COUNT];
};

/* ------------------------------------------------------------------------------------------------------------- keys */

static uint64_t hash_text(uint64_t hash, const char *text) { /* FNV-1a, end included */
    do hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    while (*text++);
    return hash;
}

/* A column has no control characters. */
static void clean(char *text) {
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ') *at = ' ';
}

static void device_text(const trine_device *device, char *out, size_t size) {
    snprintf(out, size, "%s, %s, %d units", device->info.model, device->info.arch, device->info.units);
    clean(out);
}

/* ------------------------------------------------------------------------------------------------------------ lines */

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

/* Of a line that is ours: the key, which depends on the columns alone. */
typedef struct choice_line {
    trine_op op;
    uint64_t owner, key;
    const char *kernel;
} choice_line;

/* Cuts and judges a line. */
static line_kind parse_line(char *line, bool shipped, choice_line *line_out) {
    char *column[COLUMNS], *end;
    if (line[0] == 0 || line[0] == '#') return BLANK;
    for (const char *at = line; *at; at++)
        if ((unsigned char)*at < ' ' && *at != '\t') return CORRUPT;
    if (!cut(line, column) || !is_hash(column[0]) || !is_hash(column[1])) return CORRUPT;
    const double seconds = trine_strtod(column[7], &end);
    if (*end != 0 || !(seconds >= 0 && seconds < 1e9)) return CORRUPT;
    const trine_op op = trine_op_find(column[4]);
    const trine_plan *plan = trine_plan_get(op);
    if (plan == NULL) return shipped ? CORRUPT : FOREIGN; /* of another version, perhaps */
    if (!shipped && strtoull(column[0], NULL, 16) != trine_op_hash(op)) return FOREIGN;
    uint64_t owner = 0;
    for (int i = 0; i < OWNER_COLUMNS; i++)
        if (!shipped || i == DEVICE_COLUMN) owner = hash_text(owner, column[i]);
    trine_choice c = { .flags = 0 };
    for (char *rest = column[5]; rest != NULL;)
        if (!trine_choice_parse(plan, strsep(&rest, " "), &c)) return CORRUPT;
    *line_out = (choice_line){ op, owner, trine_choice_key(owner, plan, &c), column[6] };
    return OURS;
}

/* The file's text with a 0 at its end, at most FILE_LIMIT bytes; NULL with errno set.
 * A file that does not exist is empty. */
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

/* The next line of a text that has `size` bytes, cut out of it; NULL at its end.
 * A 0 among its bytes leaves a line that is corrupt. */
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

/* ---------------------------------------------------------------------------------------------------------- opening */

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

/* Says in `owner` that a device has a line that is shipped. */
static void own_shipped(trine_tune *tune, const choice_line *line) {
    for (int d = 0; d < tune->shipped->devices; d++) {
        char text[256];
        device_text(tune->shipped->device[d].device, text, sizeof text);
        if (hash_text(0, text) == line->owner) tune->owner[d][line->op] = line->owner;
    }
}

static void read_table(trine_tune *tune, size_t size) {
    size_t lines = 0, corrupt = 0, first = 0;
    for (size_t i = 0; i < size; i++) lines += tune->text[i] == '\n';
    if (size == 0) return;
    for (tune->places = 16; tune->places < 2 * (lines + 2);) tune->places *= 2;
    tune->table = calloc(tune->places, sizeof *tune->table);
    if (tune->table == NULL) {
        tune->places = 0;
        return;
    }
    char *rest = tune->text, *line;
    for (size_t number = 1; (line = next_line(&rest, tune->text + size)) != NULL; number++) {
        choice_line choice;
        const line_kind kind = parse_line(line, tune->shipped != NULL, &choice);
        if (kind == OURS) insert(tune, choice.key, choice.kernel);
        if (kind == OURS && tune->shipped != NULL) own_shipped(tune, &choice);
        if (kind == CORRUPT && corrupt++ == 0) first = number;
    }
    if (corrupt && tune->shipped == NULL) /* those may be of an older specification */
        fprintf(stderr, "trine: tuning cache %s: %zu corrupt lines ignored, the first is line %zu\n", tune->path,
                corrupt, first);
}

trine_tune *trine_tune_open(const char *path) {
    if (path != NULL && (path[0] == 0 || strcmp(path, "/dev/null") == 0)) return NULL;
    trine_tune *tune = calloc(1, sizeof *tune);
    if (tune == NULL) return NULL;
    if (path != NULL ? snprintf(tune->path, sizeof tune->path, "%s", path) >= (int)sizeof tune->path
                     : !default_path(tune->path, sizeof tune->path)) {
        free(tune);
        return NULL;
    }
    size_t bytes;
    tune->text = read_file(tune->path, &bytes);
    if (tune->text != NULL)
        read_table(tune, bytes);
    else
        fprintf(stderr, "trine: tuning cache %s ignored: %s\n", tune->path,
                errno == EINVAL ? "not a regular file" : strerror(errno));
    return tune;
}

trine_tune *trine_tune_shipped(const trine *lib) {
    trine_tune *tune = NULL;
    size_t size = 0;
    for (int m = 0; m < lib->modules; m++)
        if (lib->module[m].backend != NULL && lib->module[m].backend->tuned != NULL)
            size += strlen(lib->module[m].backend->tuned);
    if (size == 0 || (tune = calloc(1, sizeof *tune)) == NULL || (tune->text = calloc(1, size + 1)) == NULL) {
        free(tune);
        return NULL;
    }
    char *at = tune->text;
    for (int m = 0; m < lib->modules; m++)
        if (lib->module[m].backend != NULL && lib->module[m].backend->tuned != NULL)
            at = stpcpy(at, lib->module[m].backend->tuned);
    tune->shipped = lib;
    read_table(tune, size);
    return tune;
}

void trine_tune_close(trine_tune *tune) {
    if (tune == NULL) return;
    free(tune->table);
    free(tune->text);
    free(tune);
}

/* ---------------------------------------------------------------------------------------------------------- finding */

/* The columns that say whose line it is. */
static void owner_columns(const trine_queue *queue, trine_op op, char out[OWNER_COLUMNS][256]) {
    const trine_device *device = queue->device;
    uint64_t kernels = hash_text(0, TRINE_VERSION);
    for (const trine_kernel *k = trine_kernels(queue->lib, queue->device_index, op); k != NULL && k->name != NULL; k++)
        kernels = hash_text(kernels, k->name);
    snprintf(out[0], 256, "%016" PRIx64, trine_op_hash(op));
    snprintf(out[1], 256, "%016" PRIx64, kernels);
    device_text(device, out[2], 256);
    snprintf(out[3], 256, "%s", device->driver != NULL && device->driver[0] ? device->driver : "-");
    clean(out[3]);
}

static uint64_t owner_of(trine_tune *tune, const trine_queue *queue, trine_op op) {
    _Atomic uint64_t *known = &tune->owner[queue->device_index][op];
    uint64_t owner = atomic_load_explicit(known, memory_order_relaxed);
    if (owner != 0 || tune->shipped != NULL) return owner;
    char column[OWNER_COLUMNS][256];
    owner_columns(queue, op, column);
    for (int i = 0; i < OWNER_COLUMNS; i++) owner = hash_text(owner, column[i]);
    atomic_store_explicit(known, owner, memory_order_relaxed);
    return owner;
}

static const char *look_up(const trine_tune *tune, uint64_t key) {
    for (size_t place = key & (tune->places - 1); tune->table[place].key != 0; place = (place + 1) & (tune->places - 1))
        if (tune->table[place].key == key) return tune->table[place].kernel;
    return NULL;
}

const char *trine_tune_find(trine_tune *tune, const trine_queue *queue, const trine_call *call) {
    if (tune == NULL || tune->places == 0 || queue->part) return NULL; /* they are of the whole device */
    trine_choice c;
    const uint64_t owner = owner_of(tune, queue, call->plan->op);
    if (owner == 0) return NULL;
    trine_choice_of(queue, call, &c);
    const char *kernel = look_up(tune, trine_choice_key(owner, call->plan, &c));
    if (kernel != NULL || tune->shipped == NULL || c.present == 0) return kernel;
    c.present = 0; /* what is shipped is few, and optional tensors seldom decide */
    return look_up(tune, trine_choice_key(owner, call->plan, &c));
}

/* -------------------------------------------------------------------------------------------------------- recording */

static trine_status io_error(const char *what, const char *path) {
    return trine_fail(TRINE_ERR_IO, "tuning cache: %s %s: %s", what, path, strerror(errno));
}

/* Makes the directories above `path`. */
static trine_status make_directories(const char *path) {
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%s", path);
    for (char *at = strchr(directory + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = 0;
        /* One that is there is found there first: in a directory that may not be written, making it anew would be
         * refused before that is seen. */
        if (access(directory, F_OK) != 0 && mkdir(directory, 0700) != 0 && errno != EEXIST)
            return io_error("cannot make", directory);
        *at = '/';
    }
    return TRINE_OK;
}

/* Does the line begin with these columns? */
static bool same_key(const char *line, const char *key) { return strncmp(line, key, strlen(key)) == 0; }

/* Writes everything of `text` that is worth keeping, without the line that `key` replaces. */
static void write_kept(FILE *out, char *text, size_t size, const char *key) {
    char *rest = text, *line;
    fputs(header, out);
    while ((line = next_line(&rest, text + size)) != NULL) {
        char copy[LINE_SIZE];
        choice_line ignored;
        if (line[0] == '#' || strlen(line) >= sizeof copy || same_key(line, key)) continue;
        memcpy(copy, line, strlen(line) + 1);
        const line_kind kind = parse_line(copy, false, &ignored);
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
    if (call->plan->comm >= 0)
        return trine_fail(TRINE_ERR_UNSUPPORTED,
                          "tuning cache: the ranks of a group choose kernels of %s by what they share",
                          call->plan->spec->name);
    if (queue->part)
        return trine_fail(TRINE_ERR_UNSUPPORTED,
                          "tuning cache: it is for whole devices, but the queue has a part of %s",
                          queue->device->info.name);
    trine_tune *tune = queue->lib->tune;
    if (tune == NULL)
        return trine_fail(TRINE_ERR_IO,
                          "tuning cache: there is none: the library was opened without one, or HOME is not set");
    char column[OWNER_COLUMNS][256], text[LINE_SIZE / 4], key[LINE_SIZE], line[256], path[PATH_MAX], lock[PATH_MAX + 8];
    trine_choice c;
    owner_columns(queue, call->plan->op, column);
    trine_choice_of(queue, call, &c);
    trine_choice_text(call->plan, &c, text, sizeof text);
    snprintf(key, sizeof key, "%s\t%s\t%s\t%s\t%s\t%s\t", column[0], column[1], column[2], column[3],
             call->plan->spec->name, text);
    trine_snprintf(line, sizeof line, "%s\t%.4e", kernel, seconds);
    const trine_status made = make_directories(tune->path);
    if (made != TRINE_OK) return made;
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
