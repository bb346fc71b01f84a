/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of device code that is compiled at run time: what is read is what was written, whatever has become of the
 * file, and however many processes write it. Speaks TAP. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/simt/core/compile.h"
#include "tests/tap.h"

enum { SIZE = 1000, PROCESSES = 16, KEYS = 4, ROUNDS = 200 };

static char directory[] = "/tmp/trine-code-XXXXXX", path[128];
static const char *chosen = directory; /* TRINE_CODE */

static const char *environment(const char *name) { return strcmp(name, "TRINE_CODE") == 0 ? chosen : NULL; }
static const trine_host host = { .struct_size = sizeof host, .environment = environment };

static simt_code_key key_of(int number) {
    simt_code_key key = { { 0, 0 } };
    simt_code_key_add(&key, &number, sizeof number);
    return key;
}

static void fill(unsigned char image[static SIZE], int number) {
    for (int i = 0; i < SIZE; i++) image[i] = (unsigned char)(i * 7 + number * 31);
}

/* Is it as it was written? -1: it is not there. */
static int read_back(int number) {
    unsigned char expected[SIZE];
    const simt_code_key key = key_of(number);
    size_t size = 0;
    void *image = simt_code_cache_read(&host, &key, &size);
    fill(expected, number);
    const int good = image == NULL ? -1 : size == SIZE && memcmp(image, expected, SIZE) == 0;
    free(image);
    return good;
}

static void write_one(int number) {
    unsigned char image[SIZE];
    const simt_code_key key = key_of(number);
    fill(image, number);
    simt_code_cache_write(&host, &key, image, SIZE);
}

/* Files in the directory; the name of the last in `path`. */
static int files(void) {
    DIR *all = opendir(directory);
    int count = 0;
    for (const struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%.64s", directory, entry->d_name);
        count++;
    }
    if (all != NULL) closedir(all);
    return count;
}

static size_t load(unsigned char *bytes, size_t size) {
    FILE *file = fopen(path, "rb");
    const size_t length = file != NULL ? fread(bytes, 1, size, file) : 0;
    if (file != NULL) fclose(file);
    return length;
}

static void put(const unsigned char *bytes, size_t size) {
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, bytes, size) != (ssize_t)size) abort();
    close(file);
}

/* Every length that is cut short, every byte that has another bit, and a byte more. */
static void spoil(void) {
    unsigned char bytes[2 * SIZE];
    const size_t length = load(bytes, sizeof bytes);
    int taken = 0;
    for (size_t i = 0; i < length; i++) {
        put(bytes, i);
        taken += read_back(1) != -1;
    }
    tap(length > SIZE && taken == 0, "no file that was cut short is taken, of %zu", length);
    taken = 0;
    for (size_t i = 0; i < length; i++) {
        bytes[i] ^= (unsigned char)(1 << i % 8);
        put(bytes, length);
        taken += read_back(1) != -1;
        bytes[i] ^= (unsigned char)(1 << i % 8);
    }
    tap(taken == 0, "no file with another bit is taken");
    put(bytes, length + 1);
    tap(read_back(1) == -1, "nor one with a byte more");
    put(bytes, length);
    tap(read_back(1) == 1, "the file as it was is");
    chmod(path, 0620);
    tap(read_back(1) == -1, "one that others can write is not");
    chmod(path, 0600);
    const simt_code_key other = key_of(2);
    char elsewhere[192];
    snprintf(elsewhere, sizeof elsewhere, "%s/%016llx%016llx", directory, (unsigned long long)other.word[0],
             (unsigned long long)other.word[1]);
    rename(path, elsewhere);
    tap(read_back(2) == -1, "that of another key is not");
    write_one(2);
    tap(read_back(2) == 1, "and what is compiled then takes its place");
    unlink(elsewhere);
    mkdir(elsewhere, 0700);
    write_one(2);
    tap(read_back(2) == -1, "a directory in its place is no error");
    rmdir(elsewhere);
}

/* What a process does among others; false: it read what nobody wrote. */
static bool work(unsigned seed) {
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1664525u + 1013904223u;
        const int number = (int)(seed >> 16) % KEYS;
        if (seed >> 30) write_one(number);
        if (read_back(number) == 0) return false;
    }
    return true;
}

static bool all_at_once(void) {
    pid_t child[PROCESSES];
    bool good = true;
    for (int i = 0; i < PROCESSES; i++)
        if ((child[i] = fork()) == 0) _exit(work((unsigned)i) ? 0 : 1);
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        good &=
            child[i] > 0 && waitpid(child[i], &status, 0) == child[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return good;
}

/* Places that there are not. */
static void without(void) {
    char below[192];
    chosen = "/dev/null";
    write_one(1);
    tap(read_back(1) == -1, "/dev/null: there is no cache");
    chosen = NULL;
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    write_one(1);
    tap(read_back(1) == -1, "nor without HOME");
    snprintf(below, sizeof below, "%s/file/below", directory);
    snprintf(path, sizeof path, "%s/file", directory);
    put((const unsigned char *)"x", 1);
    chosen = below;
    write_one(1);
    tap(read_back(1) == -1, "nor where no directory can be made");
    unlink(path);
    chosen = NULL;
    setenv("XDG_CACHE_HOME", directory, 1);
    write_one(1);
    snprintf(below, sizeof below, "%s/trine/code", directory);
    tap(read_back(1) == 1 && access(below, F_OK) == 0, "XDG_CACHE_HOME has it in trine/code");
    chosen = directory;
}

int main(void) {
    char command[64];
    if (mkdtemp(directory) == NULL) return tap_skip_all("there is no directory for files");
    tap(read_back(1) == -1, "an empty directory has nothing");
    write_one(1);
    tap(files() == 1 && read_back(1) == 1, "what was written is read");
    tap(read_back(2) == -1, "of its key alone");
    spoil();
    tap(all_at_once(), "%d processes at once read what was written", PROCESSES);
    tap(files() == KEYS, "and leave nothing but that");
    without();
    snprintf(command, sizeof command, "rm -r %s", directory);
    if (system(command) != 0) printf("# cannot remove %s\n", directory);
    return tap_end();
}
