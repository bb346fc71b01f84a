/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the backends: the CPU's, which is built in, and the modules trine-<name>.so, of which every one that is refused
 * or missing is entered with its reason.
 *
 * A module's code runs in this process, so where it may come from is narrow: directories that were named for the
 * purpose, never the current one; files and directories that not everybody can write. Its handshake is data, read
 * before any of its code runs. */
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dispatch.h"

static const char prefix[] = "trine-", suffix[] = ".so";
/* The project's own, the package that brings each, and what the kernel shows once a driver is there. */
static const struct {
    const char *name, *package, *node[2];
} modules[] = { { "cuda", "libtrine0-cuda", { "/dev/nvidiactl", "/dev/dxg" } },
                { "hip", "libtrine0-hip", { "/dev/kfd", "/dev/dxg" } } };
enum { MODULES = sizeof modules / sizeof modules[0] };

bool trine_module_refuse(trine_module_entry *entry, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(entry->reason, sizeof entry->reason, format, arguments);
    va_end(arguments);
    entry->info.refused = entry->reason;
    return false;
}

/* ---------------------------------------------------------------------------------------- before the file is opened */

/* Is the file a whole shared object for this machine? The dynamic loader maps segments without looking whether the file
 * reaches that far, and touching what is missing would kill the process. */
static bool check_elf(trine_module_entry *entry, int file, off_t size) {
    static const ElfW(Half) machine =
#if defined(__x86_64__)
        EM_X86_64;
#elif defined(__aarch64__)
        EM_AARCH64;
#elif defined(__powerpc64__)
        EM_PPC64;
#elif defined(__riscv)
        EM_RISCV;
#elif defined(__s390x__)
        EM_S390;
#else
        EM_NONE;
#endif
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    ElfW(Ehdr) header;
    if (pread(file, &header, sizeof header, 0) != (ssize_t)sizeof header)
        return trine_module_refuse(entry, "truncated: %lld bytes hold no ELF header", (long long)size);
    const bool swapped = header.e_ident[EI_DATA] == (little ? ELFDATA2MSB : ELFDATA2LSB);
    if (swapped) {
        header.e_type = __builtin_bswap16(header.e_type);
        header.e_machine = __builtin_bswap16(header.e_machine);
    }
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_DYN)
        return trine_module_refuse(entry, "not an ELF shared object");
    if (swapped || header.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        (machine != EM_NONE && header.e_machine != machine))
        return trine_module_refuse(entry, "built for another machine (ELF machine %u)", header.e_machine);
    if (header.e_phentsize != sizeof(ElfW(Phdr))) return trine_module_refuse(entry, "malformed ELF program headers");
    for (unsigned i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;
        const uint64_t at = header.e_phoff + (uint64_t)i * sizeof segment;
        if (at < header.e_phoff || at > (uint64_t)size ||
            pread(file, &segment, sizeof segment, (off_t)at) != (ssize_t)sizeof segment)
            return trine_module_refuse(entry, "truncated: %lld bytes do not reach the program headers",
                                       (long long)size);
        const uint64_t end = segment.p_offset + segment.p_filesz;
        if (segment.p_type == PT_LOAD && (end < segment.p_offset || end > (uint64_t)size))
            return trine_module_refuse(entry, "truncated: %lld bytes of at least %llu", (long long)size,
                                       (unsigned long long)end);
    }
    /* Linkers put the table of sections last: a file that ends between the segments and the table was whole once. */
    const uint64_t end = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
    if (end < header.e_shoff || end > (uint64_t)size)
        return trine_module_refuse(entry, "truncated: %lld bytes of at least %llu", (long long)size,
                                   (unsigned long long)end);
    return true;
}

static bool check_file(trine_module_entry *entry) {
    struct stat status;
    char directory[sizeof entry->path];
    snprintf(directory, sizeof directory, "%s", entry->path);
    *strrchr(directory, '/') = 0;
    if (stat(directory[0] ? directory : "/", &status) != 0)
        return trine_module_refuse(entry, "%s: %s", directory, strerror(errno));
    if (status.st_mode & S_IWOTH) return trine_module_refuse(entry, "anybody may write its directory %s", directory);
    const int file = open(entry->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return trine_module_refuse(entry, "cannot be opened: %s", strerror(errno));
    bool good = fstat(file, &status) == 0;
    if (!good)
        trine_module_refuse(entry, "cannot be read: %s", strerror(errno));
    else if (!S_ISREG(status.st_mode))
        good = trine_module_refuse(entry, "not a regular file");
    else if (status.st_mode & S_IWOTH)
        good = trine_module_refuse(entry, "anybody may write it");
    else
        good = check_elf(entry, file, status.st_size);
    close(file);
    return good;
}

/* -------------------------------------------------------------------------------------------------------- handshake */

enum { HANDSHAKE_LEAST = offsetof(trine_module, spec_hash) };

#ifdef __GLIBC__
static bool lies_in(const void *symbol, void *object) {
    struct link_map *opened, *found;
    Dl_info info;
    return dlinfo(object, RTLD_DI_LINKMAP, &opened) == 0 &&
           dladdr1(symbol, &info, (void **)&found, RTLD_DL_LINKMAP) != 0 && found == opened;
}

/* Is it data, and as large as what will be read? */
static bool holds_handshake(const void *at) {
    const ElfW(Sym) *symbol = NULL;
    Dl_info info;
    return dladdr1(at, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL &&
           ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_size >= HANDSHAKE_LEAST;
}
#else
static bool lies_in(const void *symbol, void *object) {
    struct link_map *opened;
    Dl_info info, own;
    return dlinfo(object, RTLD_DI_LINKMAP, &opened) == 0 && dladdr(symbol, &info) != 0 &&
           dladdr(opened->l_ld, &own) != 0 && info.dli_fbase == own.dli_fbase;
}

static int find_segment(struct dl_phdr_info *object, size_t size, void *context) {
    const uintptr_t *const at = context;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *const s = &object->dlpi_phdr[i];
        const uintptr_t first = object->dlpi_addr + s->p_vaddr;
        if (s->p_type == PT_LOAD && (s->p_flags & (PF_R | PF_X)) == PF_R && *at >= first &&
            *at - first + HANDSHAKE_LEAST <= s->p_memsz)
            return 1;
    }
    return 0;
}

/* Where the loader tells of no symbol's type and size: is it in what an object has of data, all that will be read? */
static bool holds_handshake(const void *at) {
    return dl_iterate_phdr(find_segment, &(uintptr_t){ (uintptr_t)at }) != 0;
}
#endif

/* The handshake's symbol, if it lies in this very object and is as large as what will be read. A search by dlsym goes
 * on into the object's dependencies. */
static const trine_module *find_symbol(trine_module_entry *entry, void *object) {
    const trine_module *module = dlsym(object, TRINE_MODULE_SYMBOL);
    if (module == NULL) {
        trine_module_refuse(entry, "no symbol %s", TRINE_MODULE_SYMBOL);
    } else if (!lies_in(module, object)) {
        trine_module_refuse(entry, "no symbol %s of its own, only of a dependency", TRINE_MODULE_SYMBOL);
    } else if (!holds_handshake(module)) {
        trine_module_refuse(entry, "symbol %s is not a handshake", TRINE_MODULE_SYMBOL);
    } else {
        return module;
    }
    return NULL;
}

static bool check_handshake(trine_module_entry *entry, const trine_module *module) {
    if (module->magic != TRINE_MODULE_MAGIC)
        return trine_module_refuse(entry, "symbol %s is not a handshake: magic %#" PRIx64, TRINE_MODULE_SYMBOL,
                                   module->magic);
    if (module->abi != TRINE_ABI)
        return trine_module_refuse(entry, "built for ABI %u, this library has ABI %u", module->abi, TRINE_ABI);
    if (module->struct_size < sizeof *module)
        return trine_module_refuse(entry, "its handshake has %u bytes, this library's %zu", module->struct_size,
                                   sizeof *module);
    entry->info.version = module->version;
    if (module->name == NULL || strcmp(module->name, entry->name) != 0)
        return trine_module_refuse(entry, "calls itself \"%s\", not \"%s\"", module->name ? module->name : "",
                                   entry->name);
    if (module->extends != NULL)
        return module->extend != NULL || trine_module_refuse(entry, "its handshake has no extend");
    if (module->spec_hash != trine_spec_hash())
        return trine_module_refuse(entry,
                                   "%s %s is built from specification %016" PRIx64 ", this library, " TRINE_VERSION
                                   ", from %016" PRIx64,
                                   module->name, module->version != NULL ? module->version : "of no version",
                                   module->spec_hash, trine_spec_hash());
    return module->init != NULL || trine_module_refuse(entry, "its handshake has no init");
}

static bool check_backend(trine_module_entry *entry, const trine_backend *b) {
    if (b->struct_size < sizeof *b)
        return trine_module_refuse(entry, "its backend has %zu bytes, this library's %zu", b->struct_size, sizeof *b);
    if (b->name == NULL || strcmp(b->name, entry->name) != 0)
        return trine_module_refuse(entry, "its backend calls itself \"%s\"", b->name ? b->name : "");
    if (b->devices < 0 || (b->devices > 0 && b->device == NULL))
        return trine_module_refuse(entry, "its backend has %d devices", b->devices);
    if (!b->kernels || !b->queue_open || !b->queue_close || !b->queue_wait || !b->memory_alloc || !b->memory_free ||
        !b->memory_write || !b->memory_read || !b->memory_copy || !b->mark != !b->elapsed ||
        !b->capturing != !b->graph_begin || !b->capturing != !b->graph_end || !b->capturing != !b->graph_launch ||
        !b->capturing != !b->graph_free)
        return trine_module_refuse(entry, "its backend lacks a function");
    for (int i = 0; i < b->devices; i++)
        for (int op = 1, count; op < TRINE_OP_COUNT; op++) {
            const trine_kernel *list = b->kernels(&b->device[i], (trine_op)op);
            for (count = 0; list != NULL && list[count].name != NULL; count++)
                if (count >= TRINE_MAX_CANDIDATES)
                    return trine_module_refuse(entry, "more than %d kernels of %s", TRINE_MAX_CANDIDATES,
                                               trine_specs[op]->name);
        }
    return true;
}

/* Opened for ever: code that started threads must never be unmapped. True if it has devices; one that extends another
 * is asked for its kernels later. */
static bool load_module(const trine_host *host, trine_module_entry *entry) {
    if (!check_file(entry)) return false;
    void *object = dlopen(entry->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (object == NULL) return trine_module_refuse(entry, "%s", dlerror());
    const trine_module *module = find_symbol(entry, object);
    if (module == NULL || !check_handshake(entry, module)) return false;
    if (module->extends != NULL) {
        entry->extends = module;
        entry->info.extends = module->extends;
        return false;
    }
    char reason[sizeof entry->reason] = "";
    const trine_backend *backend = module->init(host, reason, sizeof reason);
    reason[sizeof reason - 1] = 0;
    if (backend == NULL)
        return trine_module_refuse(entry, "%s", reason[0] ? reason : "its init failed and gave no reason");
    if (!check_backend(entry, backend)) return false;
    entry->backend = backend;
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- search */

/* Is the word of `length` letters this name? */
static bool is_name(const char *word, size_t length, const char *name) {
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

/* Is `name` in the comma-separated `list`? */
static bool listed(const char *list, const char *name) {
    for (const char *at = list; *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        if (is_name(at, length, name)) return true;
        at += length;
    }
    return false;
}

/* Where the list of backends came from. */
static const char *list_source(const trine *lib) {
    const char *variable = trine_env("TRINE_BACKENDS");
    return variable != NULL && strcmp(variable, lib->options.backends) == 0 ? "TRINE_BACKENDS"
                                                                            : "trine_options.backends";
}

static void add_devices(trine *lib, trine_module_entry *entry) {
    for (int i = 0; i < entry->backend->devices && lib->devices < TRINE_MAX_DEVICES; i++) {
        lib->device[lib->devices].backend = entry->backend;
        lib->device[lib->devices++].device = &entry->backend->device[i];
        entry->info.devices++;
    }
}

static trine_module_entry *add_entry(trine *lib) {
    if (lib->modules == TRINE_MAX_MODULES) return NULL;
    return &lib->module[lib->modules++];
}

/* One file of a directory: entered, and loaded unless something speaks against it. */
static void try_file(trine *lib, const char *directory, const char *file) {
    char path[sizeof lib->module->path];
    const int length = snprintf(path, sizeof path, "%s/%s", directory, file);
    trine_module_entry *entry = add_entry(lib);
    if (entry == NULL) return;
    memcpy(entry->path, path, sizeof path);
    snprintf(entry->name, sizeof entry->name, "%.*s", (int)(strlen(file) - strlen(prefix) - strlen(suffix)),
             file + strlen(prefix));
    entry->info.name = entry->name;
    entry->info.path = entry->path;
    const trine_module_entry *earlier = lib->module;
    while (earlier != entry && strcmp(earlier->name, entry->name) != 0) earlier++;
    if (length >= (int)sizeof path)
        trine_module_refuse(entry, "its path is too long");
    else if (earlier != entry)
        trine_module_refuse(entry, "%.400s came first", earlier->path[0] ? earlier->path : "the built-in backend");
    else if (lib->options.backends != NULL && !listed(lib->options.backends, entry->name))
        trine_module_refuse(entry, "not in %s", list_source(lib));
    else if (load_module(&lib->host, entry))
        add_devices(lib, entry);
}

static int is_module(const struct dirent *file) {
    const size_t length = strlen(file->d_name);
    return length > strlen(prefix) + strlen(suffix) && strncmp(file->d_name, prefix, strlen(prefix)) == 0 &&
           strcmp(file->d_name + length - strlen(suffix), suffix) == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

/* Directories searched so far, by what they are rather than how they are called. */
typedef struct visited {
    int count;
    struct {
        dev_t device;
        ino_t inode;
    } directory[128];
} visited;

static void try_directory(trine *lib, visited *seen, const char *directory) {
    struct stat status;
    if (stat(directory, &status) != 0 || !S_ISDIR(status.st_mode)) return;
    for (int i = 0; i < seen->count; i++)
        if (seen->directory[i].device == status.st_dev && seen->directory[i].inode == status.st_ino) return;
    if (seen->count == (int)(sizeof seen->directory / sizeof seen->directory[0])) return;
    seen->directory[seen->count].device = status.st_dev;
    seen->directory[seen->count++].inode = status.st_ino;
    struct dirent **files;
    const int count = scandir(directory, &files, is_module, by_bytes);
    for (int i = 0; i < count; i++) {
        try_file(lib, directory, files[i]->d_name);
        free(files[i]);
    }
    if (count >= 0) free(files);
}

/* The directories of TRINE_PATH or the option; one that is not absolute depends on the current directory, and is
 * entered as refused. */
static void try_path(trine *lib, visited *seen, const char *path) {
    char directory[PATH_MAX];
    for (const char *at = path; *at; at += *at == ':') {
        const size_t length = strcspn(at, ":");
        snprintf(directory, sizeof directory, "%.*s", (int)(length < sizeof directory ? length : 0), at);
        trine_module_entry *entry;
        if (directory[0] == '/') {
            try_directory(lib, seen, directory);
        } else if (directory[0] != 0 && (entry = add_entry(lib)) != NULL) {
            snprintf(entry->path, sizeof entry->path, "%.511s", directory);
            snprintf(entry->name, sizeof entry->name, "%.63s", directory);
            entry->info.name = entry->name;
            entry->info.path = entry->path;
            trine_module_refuse(entry, "not an absolute directory: the current directory is never searched");
        }
        at += length;
    }
}

/* Beside libtrine: <its directory>/trine-<abi>. In a build tree libtrine is in dispatch/ and each module in
 * backends/<name>/. */
static void try_beside(trine *lib, visited *seen) {
    Dl_info info;
    char self[PATH_MAX], directory[PATH_MAX + 300];
    if (dladdr((const void *)trine_registry_load, &info) == 0 || realpath(info.dli_fname, self) == NULL) return;
    *strrchr(self, '/') = 0;
    snprintf(directory, sizeof directory, "%s/%s", self, TRINE_PLUGIN_SUBDIR);
    try_directory(lib, seen, directory);
    char *last = strrchr(self, '/');
    if (last == NULL || strcmp(last, "/dispatch") != 0) return;
    *last = 0;
    for (int i = 0; i < MODULES; i++) {
        snprintf(directory, sizeof directory, "%s/backends/%s", self, modules[i].name);
        try_directory(lib, seen, directory);
    }
}

/* The project's modules that no directory has are entered too: where one would come from, and whether the machine has
 * what it is for. */
static void add_missing(trine *lib) {
    for (int i = 0; i < MODULES; i++) {
        int found = 0;
        while (found < lib->modules && strcmp(lib->module[found].name, modules[i].name) != 0) found++;
        trine_module_entry *entry = found == lib->modules ? add_entry(lib) : NULL;
        if (entry == NULL) continue;
        snprintf(entry->name, sizeof entry->name, "%s", modules[i].name);
        entry->info.name = entry->name;
        const char *node = access(modules[i].node[0], F_OK) != 0 ? modules[i].node[1] : modules[i].node[0];
        const bool there = access(node, F_OK) == 0;
        trine_module_refuse(entry, "not installed: the package %s, or a build with -D%s=enabled, brings %s%s%s; %s%s",
                            modules[i].package, modules[i].name, prefix, modules[i].name, suffix,
                            there ? "a driver is there: " : "no driver was seen: there is no ",
                            there ? node : modules[i].node[0]);
    }
}

/* A name in the list that no backend has is a mistake, not a wish. */
static trine_status check_list(const trine *lib) {
    for (const char *at = lib->options.backends; at != NULL && *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        bool known = length == 0;
        for (int i = 0; i < MODULES; i++) known |= is_name(at, length, modules[i].name);
        for (int i = 0; i < lib->modules; i++) known |= is_name(at, length, lib->module[i].name);
        if (!known)
            return trine_fail(TRINE_ERR_ARGUMENT, "trine_open: unknown backend \"%.*s\" in %s",
                              (int)(length < 64 ? length : 64), at, list_source(lib));
        at += length;
    }
    return TRINE_OK;
}

trine_status trine_registry_load(trine *lib) {
    lib->module = calloc(TRINE_MAX_MODULES, sizeof *lib->module);
    if (lib->module == NULL)
        return trine_fail(TRINE_ERR_MEMORY, "trine_open: out of memory for %d module entries", TRINE_MAX_MODULES);
    trine_module_entry *cpu = &lib->module[lib->modules++];
    snprintf(cpu->name, sizeof cpu->name, "cpu");
    cpu->info = (trine_backend_info_t){ .name = cpu->name, .version = TRINE_VERSION };
    cpu->backend = trine_cpu_backend(&lib->host, cpu->reason, sizeof cpu->reason);
    if (cpu->backend == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "trine_open: %s", cpu->reason);
    add_devices(lib, cpu);
    visited seen = { 0 };
    if (lib->options.plugin_path != NULL) try_path(lib, &seen, lib->options.plugin_path);
    try_beside(lib, &seen);
    try_directory(lib, &seen, TRINE_PLUGIN_DIR);
    add_missing(lib);
    const trine_status status = check_list(lib);
    return status == TRINE_OK ? trine_extend(lib) : status;
}

void trine_registry_free(trine *lib) {
    trine_extend_free(lib);
    free(lib->module);
    lib->module = NULL;
    lib->modules = 0;
}
