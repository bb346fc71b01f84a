/* SPDX-License-Identifier: Apache-2.0 */
/* The loader of modules: one that loads, and every reason for which one is refused. TEST_MODULES is where
 * tests/plugins/ was built. */
#include <elf.h>

#include "support.h"

TestSuite(plugins, .timeout = 60);

static char directory[128];

static void set_up(void) { make_directory(directory); }
static void tear_down(void) { remove_directory(directory); }

static void install_from(const char *built, const char *module, const char *folder, const char *name, size_t size) {
    char from[512], to[512];
    size_t whole;
    snprintf(from, sizeof from, "%s/trine-%s.so", built, module);
    snprintf(to, sizeof to, "%s/trine-%s.so", folder, name);
    char *bytes = read_whole(from, &whole);
    write_file(to, bytes, size < whole ? size : whole);
    free(bytes);
    cr_assert(chmod(to, 0755) == 0);
}

/* Copies a built module, or its first `size` bytes, to <folder>/trine-<name>.so. */
static void install(const char *module, const char *folder, const char *name, size_t size) {
    install_from(TEST_MODULES, module, folder, name, size);
}

/* A module that adds kernels. */
static void install_extender(const char *name) { install_from(TEST_EXTENDERS, name, directory, name, SIZE_MAX); }

/* The entry of a backend, by name; fails the test if there is none. */
static trine_backend_info_t entry_of(const trine *lib, const char *name) {
    trine_backend_info_t info = { 0 };
    for (int i = 0; i < trine_backend_count(lib); i++) {
        cr_assert(trine_backend_info(lib, i, &info) == TRINE_OK);
        if (strcmp(info.name, name) == 0) return info;
    }
    cr_assert_fail("no entry for %s", name);
    return info;
}

/* The entries of files under the directory; the build tree's own modules are entered as well. */
static int entries_of_directory(const trine *lib) {
    int count = 0;
    for (int i = 0; i < trine_backend_count(lib); i++) {
        trine_backend_info_t info;
        cr_assert(trine_backend_info(lib, i, &info) == TRINE_OK);
        count += info.path != NULL && strncmp(info.path, directory, strlen(directory)) == 0;
    }
    return count;
}

/* Opens the library with the directory on its path and expects the module's refusal to contain `reason`. */
static void expect_refused(const char *name, const char *reason) {
    trine *lib = open_plain(directory);
    const trine_backend_info_t info = entry_of(lib, name);
    cr_expect(info.refused != NULL, "%s was loaded", name);
    if (info.refused != NULL)
        cr_expect(strstr(info.refused, reason) != NULL, "%s: \"%s\" lacks \"%s\"", name, info.refused, reason);
    cr_expect(info.devices == 0);
    cr_expect(info.path != NULL && strncmp(info.path, directory, strlen(directory)) == 0);
    for (int i = 0; i < trine_device_count(lib); i++) {
        trine_device_info_t device;
        assert_ok(trine_device_info(lib, i, &device));
        cr_expect(strncmp(device.name, name, strlen(name)) != 0);
    }
    trine_close(lib);
}

Test(plugins, good, .init = set_up, .fini = tear_down) {
    install("good", directory, "good", SIZE_MAX);
    trine *lib = open_plain(directory);
    const trine_backend_info_t info = entry_of(lib, "good");
    cr_assert(info.refused == NULL, "%s", info.refused);
    cr_expect(strcmp(info.version, "1.2.3") == 0);
    cr_expect(info.devices == 1);
    const int device = trine_device_find(lib, "good");
    cr_assert(device == 1);
    cr_expect(trine_device_find(lib, "good:0") == 1);
    cr_expect(trine_device_find(lib, "good:1") == -1);

    trine_queue *queue;
    assert_ok(trine_queue_open(lib, device, NULL, &queue));
    cr_expect(trine_queue_device(queue) == device);
    float x[3] = { 1, 2, 3 }, y[3];
    void *dx, *dy;
    assert_ok(trine_memory_alloc(queue, sizeof x, &dx));
    assert_ok(trine_memory_alloc(queue, sizeof y, &dy));
    assert_ok(trine_memory_write(queue, dx, x, sizeof x));
    const trine_tensor tx = trine_tensor_1d(dx, TRINE_F32, 3), ty = trine_tensor_1d(dy, TRINE_F32, 3);
    assert_ok(trine_scale(queue, &(trine_scale_args){ TRINE_ARGS(scale), .x = &tx, .y = &ty, .alpha = 2, .shift = 1 }));
    assert_ok(trine_queue_wait(queue));
    assert_ok(trine_memory_read(queue, y, dy, sizeof y));
    cr_expect(y[0] == 3 && y[1] == 5 && y[2] == 7);
    assert_ok(trine_memory_free(queue, dx));
    assert_ok(trine_memory_free(queue, dy));
    trine_queue_close(queue);
    trine_close(lib);
}

/* The library may be opened and closed many times over modules that stay. */
Test(plugins, reopened, .init = set_up, .fini = tear_down) {
    install("good", directory, "good", SIZE_MAX);
    for (int i = 0; i < 20; i++) {
        trine *lib = open_plain(directory);
        cr_expect(entry_of(lib, "good").refused == NULL);
        cr_expect(trine_device_count(lib) == 2);
        trine_close(lib);
    }
}

Test(plugins, handshake, .init = set_up, .fini = tear_down) {
    static const struct {
        const char *name, *reason;
    } cases[] = {
        { "wrong_magic", "symbol trine_module is not a handshake: magic 0x2a" },
        { "wrong_abi", "built for ABI 99, this library has ABI 0" },
        { "small", "its handshake has 16 bytes, this library's" },
        { "wrong_spec", "wrong_spec 1.2.3 is built from specification 0000000000001234, this library, 0.1.0, from " },
        { "misnamed", "calls itself \"somebody\", not \"misnamed\"" },
        { "says_why", "no driver: libnothing.so.1 not found" },
        { "says_nothing", "its init failed and gave no reason" },
        { "no_init", "its handshake has no init" },
        { "incomplete", "its backend lacks a function" },
        { "nothing", "no symbol trine_module" },
        { "function", "symbol trine_module is not a handshake" },
        { "unresolved", "undefined symbol: nobody_defines_this" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        install(cases[i].name, directory, cases[i].name, SIZE_MAX);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) expect_refused(cases[i].name, cases[i].reason);
}

/* Found by dlsym, since it searches dependencies too; the module itself has none.
 * Loaded where it was built, beside its dependency. */
Test(plugins, handshake_of_a_dependency) {
    trine *lib = open_plain(TEST_MODULES);
    const trine_backend_info_t info = entry_of(lib, "dependency");
    cr_assert(info.refused != NULL);
    cr_expect(strcmp(info.refused, "no symbol trine_module of its own, only of a dependency") == 0, "%s", info.refused);
    trine_close(lib);
}

/* At every length a file is refused, never touched beyond its end. */
Test(plugins, truncated, .init = set_up, .fini = tear_down) {
    char path[512];
    size_t whole;
    snprintf(path, sizeof path, "%s/trine-good.so", TEST_MODULES);
    free(read_whole(path, &whole));
    const size_t lengths[] = { 0, 1, 16, 63, 64, 100, 64 + 56, 1000, 4096, whole / 2, whole - 1 };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        install("good", directory, "good", lengths[i]);
        expect_refused("good", "truncated: ");
        snprintf(path, sizeof path, "%s/trine-good.so", directory);
        cr_assert(unlink(path) == 0);
    }
}

Test(plugins, not_a_module, .init = set_up, .fini = tear_down) {
    char path[512];
    snprintf(path, sizeof path, "%s/trine-text.so", directory);
    static const char text[] =
        "This is not a shared object, but it is longer than an ELF header, so that its first bytes are what tells.";
    write_file(path, text, sizeof text);
    snprintf(path, sizeof path, "%s/trine-folder.so", directory);
    cr_assert(mkdir(path, 0755) == 0);
    snprintf(path, sizeof path, "%s/trine-pipe.so", directory);
    cr_assert(mkfifo(path, 0644) == 0);
    snprintf(path, sizeof path, "%s/trine-dangling.so", directory);
    cr_assert(symlink("/nonexistent/file", path) == 0);
    snprintf(path, sizeof path, "%s/libtrine-good.so", directory);
    write_file(path, text, sizeof text);
    snprintf(path, sizeof path, "%s/trine-.so", directory);
    write_file(path, text, sizeof text);
    expect_refused("text", "not an ELF shared object");
    expect_refused("folder", "not a regular file");
    expect_refused("pipe", "not a regular file");
    expect_refused("dangling", "cannot be opened: No such file or directory");
    trine *lib = open_plain(directory);
    cr_expect(entries_of_directory(lib) == 4, "only files called trine-<name>.so are looked at");
    trine_close(lib);
}

Test(plugins, another_machine, .init = set_up, .fini = tear_down) {
    char path[512];
    size_t size;
    snprintf(path, sizeof path, "%s/trine-good.so", TEST_MODULES);
    char *bytes = read_whole(path, &size);
    bytes[18] ^= 1; /* e_machine */
    snprintf(path, sizeof path, "%s/trine-good.so", directory);
    write_file(path, bytes, size);
    expect_refused("good", "built for another machine (ELF machine ");
    bytes[18] ^= 1;
    bytes[5] ^= ELFDATA2LSB ^ ELFDATA2MSB; /* and what is looked at, in the other order of bytes */
    for (int at = 16; at < 20; at += 2) {
        const char byte = bytes[at];
        bytes[at] = bytes[at + 1];
        bytes[at + 1] = byte;
    }
    write_file(path, bytes, size);
    free(bytes);
    expect_refused("good", "built for another machine (ELF machine ");
}

Test(plugins, world_writable, .init = set_up, .fini = tear_down) {
    char path[512];
    install("good", directory, "good", SIZE_MAX);
    snprintf(path, sizeof path, "%s/trine-good.so", directory);
    cr_assert(chmod(path, 0757) == 0);
    expect_refused("good", "anybody may write it");
    cr_assert(chmod(path, 0755) == 0);
    cr_assert(chmod(directory, 01777) == 0);
    expect_refused("good", "anybody may write its directory");
    cr_assert(chmod(directory, 0755) == 0);
    trine *lib = open_plain(directory);
    cr_expect(entry_of(lib, "good").refused == NULL);
    trine_close(lib);
}

/* The first of a name wins, in the order of the path; the other is entered and says who came first. */
Test(plugins, duplicate, .init = set_up, .fini = tear_down) {
    char first[160], second[160], path[700], reason[200];
    snprintf(first, sizeof first, "%s/first", directory);
    snprintf(second, sizeof second, "%s/second", directory);
    cr_assert(mkdir(first, 0755) == 0 && mkdir(second, 0755) == 0);
    install("good", first, "good", SIZE_MAX);
    install("good", second, "good", SIZE_MAX);
    install("good", second, "cpu", SIZE_MAX);
    snprintf(path, sizeof path, ":%s:/nonexistent:%s:%s/../first", first, second, first);
    trine *lib = open_plain(path);
    trine_backend_info_t info;
    cr_assert(entries_of_directory(lib) == 3, "%d entries", entries_of_directory(lib));
    assert_ok(trine_backend_info(lib, 1, &info));
    cr_expect(info.refused == NULL && strncmp(info.path, first, strlen(first)) == 0);
    assert_ok(trine_backend_info(lib, 2, &info));
    cr_expect(strcmp(info.name, "cpu") == 0);
    cr_expect(info.refused != NULL && strcmp(info.refused, "the built-in backend came first") == 0, "%s", info.refused);
    assert_ok(trine_backend_info(lib, 3, &info));
    snprintf(reason, sizeof reason, "%s/trine-good.so came first", first);
    cr_expect(info.refused != NULL && strcmp(info.refused, reason) == 0, "%s", info.refused);
    cr_expect(trine_device_count(lib) == 2);
    trine_close(lib);
}

Test(plugins, filter, .init = set_up, .fini = tear_down) {
    install("good", directory, "good", SIZE_MAX);
    trine *lib;
    trine_options options = {
        .struct_size = sizeof options, .plugin_path = directory, .tune_file = "", .backends = "cpu,cuda"
    };
    assert_ok(trine_open(&options, &lib));
    cr_expect(strcmp(entry_of(lib, "good").refused, "not in trine_options.backends") == 0);
    trine_close(lib);
    options.backends = "good";
    assert_ok(trine_open(&options, &lib));
    cr_expect(entry_of(lib, "good").refused == NULL && entry_of(lib, "cpu").refused == NULL);
    trine_close(lib);
    setenv("TRINE_BACKENDS", "cpu", 1);
    options.backends = NULL;
    assert_ok(trine_open(&options, &lib));
    cr_expect(strcmp(entry_of(lib, "good").refused, "not in TRINE_BACKENDS") == 0, "%s", entry_of(lib, "good").refused);
    trine_close(lib);
    setenv("TRINE_BACKENDS", "goof", 1);
    expect_message(trine_open(&options, &lib), TRINE_ERR_ARGUMENT,
                   "trine_open: unknown backend \"goof\" in TRINE_BACKENDS");
    options.backends = "cpu,goo";
    expect_message(trine_open(&options, &lib), TRINE_ERR_ARGUMENT,
                   "trine_open: unknown backend \"goo\" in trine_options.backends");
}

/* Neither the current directory nor one relative to it. */
Test(plugins, current_directory, .init = set_up, .fini = tear_down) {
    install("good", directory, "good", SIZE_MAX);
    cr_assert(chdir(directory) == 0);
    trine *lib = open_plain(NULL);
    for (int i = 0; i < trine_backend_count(lib); i++) {
        trine_backend_info_t info;
        assert_ok(trine_backend_info(lib, i, &info));
        cr_expect(strcmp(info.name, "good") != 0);
    }
    trine_close(lib);
    lib = open_plain(".::");
    const trine_backend_info_t info = entry_of(lib, ".");
    cr_expect(info.refused != NULL &&
              strcmp(info.refused, "not an absolute directory: the current directory is never searched") == 0);
    cr_expect(trine_device_find(lib, "good") == -1);
    trine_close(lib);
}

/* TRINE_PATH, and what `trine info` prints of it, if the command is built. */
Test(plugins, environment, .init = set_up, .fini = tear_down) {
    static char command[1024], output[1 << 16];
    install("good", directory, "good", SIZE_MAX);
    install("wrong_abi", directory, "wrong_abi", SIZE_MAX);
    snprintf(command, sizeof command, "TRINE_TUNE=/dev/null TRINE_PATH=%s TRINE_DEVICE=good %s 2>&1", directory,
             TEST_PROBE);
    cr_expect(run_command(command, output, sizeof output) == 0, "%s", output);
    cr_expect(strstr(output, "device=good:0") != NULL &&
                  strstr(output, "kernel=good_slow why=first that accepts y=2 4 6 8") != NULL,
              "%s", output);
    if (TEST_TOOL[0] == 0) return;
    snprintf(command, sizeof command, "TRINE_TUNE=/dev/null TRINE_PATH=%s %s info 2>&1", directory, TEST_TOOL);
    cr_expect(run_command(command, output, sizeof output) == 0, "%s", output);
    cr_expect(strstr(output, "built for ABI 99, this library has ABI 0") != NULL, "%s", output);
    cr_expect(strstr(output, "good:0") != NULL, "%s", output);
}

/* More files than there is room for entries: the first ones count, and nothing breaks. */
Test(plugins, many, .init = set_up, .fini = tear_down) {
    char path[512];
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "%s/trine-m%03d.so", directory, i);
        write_file(path, "", 0);
    }
    trine *lib = open_plain(directory);
    cr_expect(trine_backend_count(lib) == 64, "%d", trine_backend_count(lib));
    trine_close(lib);
}

/* ------------------------------------------------------------------------------------------- kernels from elsewhere */

/* A queue's answer to 2 x + 1 for one row of n elements, and what it says of its choice. */
static void scale_on(trine *lib, int device, int64_t n, float *y_out, trine_explanation *why_out) {
    trine_queue *queue;
    float x[32] = { 3, 4 }, y[32];
    void *dx, *dy;
    assert_ok(trine_queue_open(lib, device, NULL, &queue));
    assert_ok(trine_memory_alloc(queue, sizeof x, &dx));
    assert_ok(trine_memory_alloc(queue, sizeof y, &dy));
    assert_ok(trine_memory_write(queue, dx, x, sizeof x));
    const trine_tensor tx = trine_tensor_1d(dx, TRINE_F32, n), ty = trine_tensor_1d(dy, TRINE_F32, n);
    const trine_scale_args args = { TRINE_ARGS(scale), .x = &tx, .y = &ty, .alpha = 2, .shift = 1 };
    assert_ok(trine_explain(queue, TRINE_OP_SCALE, &args, why_out));
    assert_ok(trine_scale(queue, &args));
    assert_ok(trine_memory_read(queue, y, dy, sizeof y));
    *y_out = y[0];
    assert_ok(trine_memory_free(queue, dx));
    assert_ok(trine_memory_free(queue, dy));
    trine_queue_close(queue);
}

Test(plugins, extended, .init = set_up, .fini = tear_down) {
    static trine_explanation why;
    float y;
    trine *lib = open_plain(directory);
    scale_on(lib, 0, 2, &y, &why);
    const int own = why.count;
    cr_expect(y == 7);
    trine_close(lib);
    install_extender("second");
    install_extender("first");
    install_extender("rows");
    lib = open_plain(directory);
    const trine_backend_info_t info = entry_of(lib, "first");
    cr_assert(info.refused == NULL, "%s", info.refused);
    cr_expect(strcmp(info.extends, "cpu") == 0 && info.kernels == 1 && info.devices == 0 &&
              strcmp(info.version, "3.2.1") == 0);
    cr_expect(entry_of(lib, "rows").kernels == 2);
    cr_expect(trine_device_count(lib) == 1);
    scale_on(lib, 0, 2, &y, &why);
    cr_expect(y == 60, "%g", y);
    cr_assert(why.count == own + 4 && why.chosen == 0 && strcmp(why.why, "first that accepts") == 0);
    /* as files are found, and as rows stand */
    static const char *const order[] = { "first", "before", "rows", "second" };
    for (int i = 0; i < 4; i++)
        cr_expect(strcmp(why.candidate[i].kernel, order[i]) == 0, "%s", why.candidate[i].kernel);

    /* What they refuse goes to the device's own; and one can be forced. */
    trine_queue *queue;
    float a[2] = { 1, 2 }, b[2];
    const trine_tensor ta = trine_tensor_2d(a, TRINE_F32, 2, 1), tb = trine_tensor_2d(b, TRINE_F32, 2, 1);
    const trine_scale_args args = { TRINE_ARGS(scale), .x = &ta, .y = &tb, .alpha = 2, .shift = 1 };
    assert_ok(trine_queue_open(lib, 0, NULL, &queue));
    assert_ok(trine_scale(queue, &args));
    cr_expect(b[0] == 3 && b[1] == 5);
    trine_queue_close(queue);
    assert_ok(trine_queue_open(
        lib, 0, &(trine_queue_options){ .struct_size = sizeof(trine_queue_options), .kernel = "second" }, &queue));
    cr_expect(trine_scale(queue, &args) == TRINE_ERR_UNSUPPORTED &&
                  strstr(trine_error_message(), "second: only one row") != NULL,
              "%s", trine_error_message());
    trine_queue_close(queue);
    trine_close(lib);
}

/* A backend that is found later than the module that adds to it, and ships a choice, which was made without it. */
Test(plugins, extended_device, .init = set_up, .fini = tear_down) {
    static trine_explanation why;
    float y;
    install("good", directory, "good", SIZE_MAX);
    trine *lib = open_plain(directory);
    scale_on(lib, 1, 12, &y, &why);
    cr_expect(y == 7 && strcmp(why.why, "tuned for this device") == 0, "%s", why.why);
    trine_close(lib);
    install_from(TEST_EXTENDERS, "to_good", directory, "to_good", SIZE_MAX);
    install_extender("first");
    lib = open_plain(directory);
    cr_expect(entry_of(lib, "to_good").refused == NULL);
    scale_on(lib, 1, 12, &y, &why);
    cr_expect(y == 60 && why.count == 4 && strcmp(why.candidate[0].kernel, "to_good") == 0 &&
              strcmp(why.why, "first that accepts") == 0);
    trine_close(lib);
}

Test(plugins, not_extended, .init = set_up, .fini = tear_down) {
    static const struct {
        const char *name, *reason;
    } cases[] = {
        { "wrong_op_hash", ", its kernels are for 0000000000001234" },
        { "later_row", "scale has the specification " },
        { "no_backend", "extends \"nobody\", but there is no such backend" },
        { "of_refused", "extends \"wrong_abi\", which was refused: built for ABI 99" },
        { "of_extender", "extends \"first\", which brings no devices" },
        { "taken", "kernel \"good_slow\" of scale: the name is already taken" },
        { "twice", "kernel \"same\" of scale stands twice" },
        { "no_launch", "kernel \"lazy\" of scale has no launch" },
        { "no_name", "kernel 0 of scale has no name of 1 to 63 printable characters" },
        { "no_kernels", "a row of scale has no kernels" },
        { "many", "more than 64 kernels of scale" },
        { "full", "with its 64 kernels scale would have more than 64" },
        { "no_op", "there is no op 9999" },
        { "no_device", "none of its kernels is for a device of \"cpu\"" },
        { "no_extend", "its handshake has no extend" },
        { "why", "made for another machine (1 cores)" },
    };
    static trine_explanation why;
    float y;
    install("good", directory, "good", SIZE_MAX);
    install("wrong_abi", directory, "wrong_abi", SIZE_MAX);
    install_extender("first");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) install_extender(cases[i].name);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) expect_refused(cases[i].name, cases[i].reason);
    trine *lib = open_plain(directory);
    for (int i = 0; i < 2; i++) {
        scale_on(lib, i, 2, &y, &why);
        for (int k = 0; k < why.count; k++)
            cr_expect(strcmp(why.candidate[k].kernel, "before") != 0, "a refused module's first row stayed");
        cr_expect(y == (i == 0 ? 60 : 7));
    }
    trine_close(lib);
}

/* The sizes at which a kernel goes another way, as it declares them. */
Test(plugins, edges, .init = set_up, .fini = tear_down) {
    install_extender("edges");
    trine *lib = open_plain(directory);
    trine_queue *queue;
    trine_edge edges[TRINE_MAX_EDGES] = { { 0 } };
    int32_t count = 7;
    trine_tensor t = trine_tensor_1d(NULL, TRINE_F32, 5);
    const trine_scale_args args = { TRINE_ARGS(scale), .x = &t, .y = &t };
    assert_ok(trine_queue_open(lib, 0, NULL, &queue));
    assert_ok(trine_explain_edges(queue, TRINE_OP_SCALE, &args, "some", edges, &count));
    cr_expect(count == 2 && strcmp(edges[0].symbol, "r") == 0 && edges[0].size == 3 &&
              strcmp(edges[1].symbol, "n") == 0 && edges[1].size == 16);
    t.dtype = TRINE_BF16;
    assert_ok(trine_explain_edges(queue, TRINE_OP_SCALE, &args, "some", edges, &count));
    cr_expect(count == 2 && edges[1].size == 32);
    expect_message(trine_explain_edges(queue, TRINE_OP_SCALE, &args, "too_many", edges, &count), TRINE_ERR_INTERNAL,
                   "scale: kernel \"too_many\" has 65 edges, more than 64");
    expect_message(trine_explain_edges(queue, TRINE_OP_SCALE, &args, "strange", edges, &count), TRINE_ERR_INTERNAL,
                   "scale: kernel \"strange\" has an edge of dimension 4, of 4");
    expect_message(trine_explain_edges(queue, TRINE_OP_SCALE, &args, "nobody", edges, &count), TRINE_ERR_NOT_FOUND,
                   "scale: cpu has no kernel \"nobody\"");
    cr_expect(count == 2 && edges[1].size == 32, "outputs are untouched on error");
    assert_ok(trine_explain_edges(queue, TRINE_OP_SCALE, &args, "none", edges, &count));
    cr_expect(count == 0);
    trine_queue_close(queue);
    trine_close(lib);
}

/* A device that runs no code from elsewhere says so. */
Test(plugins, code_from_elsewhere, .init = set_up, .fini = tear_down) {
    install_extender("code");
    trine *lib = open_plain(directory);
    trine_queue *queue;
    float x[1] = { 1 };
    const trine_tensor t = trine_tensor_1d(x, TRINE_F32, 1);
    assert_ok(trine_queue_open(lib, 0, NULL, &queue));
    expect_message(trine_scale(queue, &(trine_scale_args){ TRINE_ARGS(scale), .x = &t, .y = &t }),
                   TRINE_ERR_UNSUPPORTED, "scale: devices of cpu take no code from elsewhere");
    trine_queue_close(queue);
    trine_close(lib);
}
