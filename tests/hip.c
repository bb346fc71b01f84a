/* SPDX-License-Identifier: Apache-2.0 */
/* The HIP module over the emulated libamdhip64: what it refuses and why, streams and graphs, and what becomes of every
 * failing call. TEST_HIP is the emulated library, TEST_MODULE the module. */
#include <dlfcn.h>

#include "backends/hip/driver/driver.h"
#include "lists.h"
#include "module.h"
#include "told.h"

#define STRING(x) #x

static const char words[] = "unknown error";
enum { UNKNOWN = 999, LAUNCH_FAILURE = 719 };

/* What the emulated library exports for tests. */
static struct {
    void (*fail)(const char *failures); /* emulators/cdna/hip.h */
    int (*failed)(void);
    hip_result (*create)(hip_stream *), (*begin)(hip_stream, int), (*end)(hip_stream, void **);
    hip_result (*instantiate)(void **, void *, void *, char *, size_t), (*replay)(void *, hip_stream);
    int (*units)(void), (*shared)(void);
} emulated;

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) fprintf(stderr, "%s\n", dlerror());
    return found;
}

/* Opens the emulated library on a chip, so that the module finds it in the process. */
static bool load_emulated(const char *chip) {
    if (chip != NULL) setenv("CDNA_CHIP", chip, 1);
    void *library = dlopen(TEST_HIP, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) return false;
    *(void **)&emulated.fail = symbol(library, "cdna_hip_fail");
    *(void **)&emulated.failed = symbol(library, "cdna_hip_failed");
    *(void **)&emulated.create = symbol(library, "hipStreamCreate");
    *(void **)&emulated.begin = symbol(library, "hipStreamBeginCapture");
    *(void **)&emulated.end = symbol(library, "hipStreamEndCapture");
    *(void **)&emulated.instantiate = symbol(library, "hipGraphInstantiate");
    *(void **)&emulated.replay = symbol(library, "hipGraphLaunch");
    *(void **)&emulated.units = symbol(library, "cdna_hip_units");
    *(void **)&emulated.shared = symbol(library, "cdna_hip_shared");
    return emulated.fail && emulated.failed && emulated.create && emulated.begin && emulated.end &&
           emulated.instantiate && emulated.replay && emulated.units && emulated.shared;
}

/* The entry point fails at its call number `at`, and at all later ones if `stays`. */
static void fail_at(const char *entry, int at, bool stays, int result) {
    char text[96];
    snprintf(text, sizeof text, "%s:%d%s:%d", entry, at, stays ? "+" : "", result);
    emulated.fail(text);
}

/* -------------------------------------------------------------------------------------------------------- scenarios */

static bool without_driver(const void *context) {
    (void)context;
    trine *lib = open_backend("hip");
    return lib && refused_for(lib, "hip", "no device: there is no /sys/class/kfd") && trine_device_count(lib) == 1 &&
           works(lib, 0);
}

static bool without_device(const void *context) {
    (void)context;
    trine *lib = load_emulated(NULL) ? open_backend("hip") : NULL;
    return lib && refused_for(lib, "hip", "no device: no ROCm-capable device is detected") && works(lib, 0);
}

/* AMD's own library, where there is no device for it. */
static bool real_library(const void *name) {
    trine *lib = dlopen(name, RTLD_NOW | RTLD_GLOBAL) ? open_backend("hip") : NULL;
    return lib && refused_for(lib, "hip", "no device") && works(lib, 0);
}

static bool foreign(const void *chip) {
    setenv("CDNA_ARCH", "gfx908", 1);
    trine *lib = load_emulated(chip) ? open_backend("hip") : NULL;
    return lib && refused_for(lib, "hip", "no code for this architecture: gfx908") && works(lib, 0);
}

static bool chip_works(const void *chip) {
    setenv("CDNA_PCI", "0000:C1:00.0", 1);
    setenv("CDNA_ORDERS", "2", 1);
    trine *lib = load_emulated(chip) ? open_backend("hip") : NULL;
    trine_device_info_t info;
    return lib && trine_device_find(lib, "hip:0") == 1 && trine_device_info(lib, 1, &info) == TRINE_OK &&
           strcmp(info.arch, chip) == 0 && strcmp(info.pci, "0000:c1:00.0") == 0 && strstr(info.model, "(emulated)") &&
           info.units >= 104 && works(lib, 1) && works(lib, 1);
}

/* An op on the caller's stream, captured before its code was ever loaded, then replayed. */
static bool captured(const void *chip) {
    hip_stream stream;
    void *graph, *executable, *memory;
    float x[3] = { 1, 2, 3 };
    trine_queue *queue;
    trine *lib = load_emulated(chip) ? open_backend("hip") : NULL;
    if (!lib || emulated.create(&stream) != HIP_SUCCESS) return false;
    const trine_queue_options options = { .struct_size = sizeof options, .stream = stream };
    if (trine_queue_open(lib, 1, &options, &queue) != TRINE_OK ||
        trine_memory_alloc(queue, sizeof x, &memory) != TRINE_OK)
        return false;
    if (trine_memory_write(queue, memory, x, sizeof x) != TRINE_OK) return false;
    const trine_tensor t = trine_tensor_1d(memory, TRINE_F32, 3);
    if (emulated.begin(stream, 0) != HIP_SUCCESS) return false;
    const trine_status status =
        trine_scale(queue, &(trine_scale_args){ TRINE_ARGS(scale), .x = &t, .y = &t, .alpha = 2 });
    if (emulated.end(stream, &graph) != HIP_SUCCESS || status != TRINE_OK) {
        fprintf(stderr, "%s\n", trine_error_message());
        return false;
    }
    if (emulated.instantiate(&executable, graph, NULL, NULL, 0) != HIP_SUCCESS) return false;
    for (int i = 0; i < 3; i++)
        if (emulated.replay(executable, stream) != HIP_SUCCESS) return false;
    return trine_memory_read(queue, x, memory, sizeof x) == TRINE_OK && x[0] == 8 && x[1] == 16 && x[2] == 24;
}

/* A queue on the null stream neither makes a stream nor destroys one. Its launches go there: the emulated driver, as
 * AMD's, refuses that stream's work while another is captured. */
static bool default_stream(const void *chip) {
    hip_stream other;
    void *graph, *memory[2];
    trine_queue *queue[2];
    trine *lib = load_emulated(chip) ? open_backend("hip") : NULL;
    if (!lib) return false;
    fail_at("hipStreamCreateWithFlags", 1, true, UNKNOWN);
    const trine_queue_options options = { .struct_size = sizeof options, .flags = TRINE_QUEUE_DEFAULT_STREAM };
    if (trine_queue_open(lib, 1, &options, &queue[0]) != TRINE_OK || emulated.failed() != 0) return false;
    emulated.fail(NULL);
    if (trine_queue_open(lib, 1, NULL, &queue[1]) != TRINE_OK) return false;
    trine_status status[2][2];
    for (int i = 0; i < 2; i++)
        if (trine_memory_alloc(queue[i], sizeof(float), &memory[i]) != TRINE_OK) return false;
    for (int during = 0; during < 2; during++) {
        if (during && (emulated.create(&other) != HIP_SUCCESS || emulated.begin(other, 0) != HIP_SUCCESS)) return false;
        for (int i = 0; i < 2; i++) {
            const trine_tensor t = trine_tensor_1d(memory[i], TRINE_F32, 1);
            status[during][i] = trine_scale(queue[i], &(trine_scale_args){ TRINE_ARGS(scale), .x = &t, .y = &t });
        }
    }
    if (emulated.end(other, &graph) != HIP_SUCCESS) return false;
    if (trine_graph_begin(queue[0]) != TRINE_ERR_UNSUPPORTED || trine_memory_free(queue[0], memory[0]) != TRINE_OK)
        return false;
    fail_at("hipStreamDestroy", 1, true, UNKNOWN);
    trine_queue_close(queue[0]);
    if (emulated.failed() != 0) return false;
    trine_queue_close(queue[1]);
    return emulated.failed() == 1 && status[0][0] == TRINE_OK && status[0][1] == TRINE_OK &&
           status[1][0] == TRINE_ERR_DEVICE && status[1][1] == TRINE_OK;
}

/* Parts of a device, in groups of 8 CUs: their sizes, what is refused, and that each launches on its own. */
static bool parts(const void *chip) {
    trine_queue *queue[2];
    trine_device_info_t info;
    char words[2][96];
    bool right, good = true;
    trine *lib = load_emulated(chip) ? open_backend("hip") : NULL;
    if (!lib || trine_device_info(lib, 1, &info) != TRINE_OK || info.units % 8 != 0) return false;
    const int rest = info.units - 24;
    snprintf(words[0], sizeof words[0], "sm_count is %d, but %d of hip:0's %d are left", rest + 1, rest, info.units);
    snprintf(words[1], sizeof words[1], "sm_count is 1, but 0 of hip:0's %d are left", info.units);
    fail_at("hipExtStreamCreateWithCUMask", 1, false, UNKNOWN);
    good &= part_refused(lib, 1, info.units, TRINE_ERR_DEVICE, "hipExtStreamCreateWithCUMask: unknown error");
    emulated.fail(NULL);
    for (int again = 0; good && again < 2; again++) {
        good = open_part(lib, 1, 17, &queue[0]) == TRINE_OK && trine_queue_sm_count(queue[0]) == 24 &&
               part_refused(lib, 1, rest + 1, TRINE_ERR_UNSUPPORTED, words[0]) &&
               open_part(lib, 1, rest, &queue[1]) == TRINE_OK && trine_queue_sm_count(queue[1]) == rest &&
               part_refused(lib, 1, 1, TRINE_ERR_UNSUPPORTED, words[1]) && emulated.shared() == 0;
        if (good) trine_queue_close(queue[0]), trine_queue_close(queue[1]);
    }
    const trine_queue_options options = { .struct_size = sizeof options, .sm_count = 40 };
    good = good && double_numbers_on(lib, 1, &options, &right) == TRINE_OK && right && emulated.units() == 40;
    good = good && works(lib, 1) && emulated.units() == info.units;
    if (!good) fprintf(stderr, "%s\n", trine_error_message());
    return good;
}

/* Calls whose failure changes no result, or comes when there is nobody to tell. */
static bool unheard(const char *entry, int call) {
    static const char *const names[] = { "hipStreamDestroy", "hipEventDestroy", "hipDeviceGetAttribute",
                                         "hipGraphDestroy", "hipGraphExecDestroy" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(entry, names[i]) == 0) return true;
    return strcmp(entry, "hipThreadExchangeStreamCaptureMode") == 0 && call % 2 == 0;
}

/* The entry point fails at its first call, or at a later one: the driver's words come back, nothing else does, and the
 * next try succeeds. */
static bool survives(const char *entry, const char *chip) {
    for (int call = 1; call < 1 << 20; call += call < 16 ? 1 : call) {
        if (!load_emulated(chip)) return false;
        fail_at(entry, call, false, UNKNOWN);
        trine *lib = open_backend("hip");
        bool right = true, said = true;
        if (trine_device_count(lib) == 2) {
            const trine_status status = double_numbers(lib, 1, NULL, &right);
            const bool told = status == TRINE_ERR_DEVICE && strstr(trine_error_message(), words) &&
                              strstr(trine_error_message(), "hip");
            if (emulated.failed() > 0) said = told || (unheard(entry, call) && status == TRINE_OK && right);
        } else {
            const char *reason = refusal(lib, "hip");
            said = reason != NULL && strstr(reason, words) != NULL;
        }
        const bool failed = emulated.failed() > 0;
        emulated.fail(NULL);
        trine_close(lib);
        lib = open_backend("hip");
        const bool again = works(lib, 1);
        trine_close(lib);
        if (!said || !again) {
            fprintf(stderr, "%s, call %d: %s: %s\n", entry, call, said ? "not usable afterwards" : "no words",
                    trine_error_message());
            return false;
        }
        if (!failed) return right;
    }
    return false;
}

static const char *survivor; /* the chip on which calls fail */
static bool survives_alone(const void *entry) { return survives(entry, survivor); }

static bool told(const void *chip) {
    trine_queue *queue;
    trine *lib = load_emulated(chip) ? open_backend("hip") : NULL;
    return lib != NULL && trine_queue_open(lib, 1, NULL, &queue) == TRINE_OK && told_alike(queue);
}

static bool listed(const void *chip) {
    trine_queue *queue;
    trine *lib = load_emulated(chip) ? open_backend("hip") : NULL;
    return lib != NULL && trine_queue_open(lib, 1, NULL, &queue) == TRINE_OK && lists_agree(queue, 2, 40003);
}

static bool recorded(const void *chip) {
    trine *lib = load_emulated(chip) ? open_backend("hip") : NULL;
    return lib && refuses_while_recorded(lib, 1) && works(lib, 1);
}

static bool out_of_memory(const void *chip) {
    bool right;
    trine *lib = load_emulated(chip) ? open_backend("hip") : NULL;
    if (!lib) return false;
    fail_at("hipMalloc", 1, true, HIP_OUT_OF_MEMORY);
    const trine_status status = double_numbers(lib, 1, NULL, &right);
    if (status != TRINE_ERR_MEMORY ||
        !strstr(trine_error_message(), "no 12 bytes are left on hip:0: hipMalloc: out of memory")) {
        fprintf(stderr, "%s: %s\n", trine_status_name(status), trine_error_message());
        return false;
    }
    emulated.fail(NULL);
    return works(lib, 1);
}

/* A launch that fails, and a device that is lost: all its calls fail from then on, the CPU goes on. */
static bool lost(const void *chip) {
    static const char *const entries[] = { "hipModuleLaunchKernel", "hipStreamSynchronize", "hipEventSynchronize" };
    bool right;
    trine *lib = load_emulated(chip) ? open_backend("hip") : NULL;
    if (!lib || !works(lib, 1)) return false;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        fail_at(entries[i], 1, true, LAUNCH_FAILURE);
        for (int again = 0; again < 2; again++)
            if (double_numbers(lib, 1, NULL, &right) != TRINE_ERR_DEVICE ||
                !strstr(trine_error_message(), "unspecified launch failure"))
                return false;
        if (!works(lib, 0)) return false;
    }
    return true;
}

static void test_chip(const char *chip) {
    tap(alone(chip_works, chip), "%s: works", chip);
    tap(alone(captured, chip), "%s: an op captured on the caller's stream", chip);
    tap(alone(default_stream, chip), "%s: the default stream", chip);
    tap(alone(parts, chip), "%s: parts of a device", chip);
    tap(alone(told, chip), "%s: dropout by a tensor's key", chip);
    tap(alone(listed, chip), "%s: lists of calls", chip);
    tap(alone(recorded, chip), "%s: what a recording refuses", chip);
    tap(alone(out_of_memory, chip), "%s: out of memory", chip);
    tap(alone(lost, chip), "%s: a lost device", chip);
}

static bool installed(const void *name) { return dlopen(name, RTLD_LAZY) != NULL; }

static void test_real(const char *name) {
    const bool there = alone(installed, name);
    if (!there || access("/sys/class/kfd", F_OK) == 0)
        tap(true, "%s # SKIP %s", name, there ? "it may have a device" : "it is not installed");
    else
        tap(alone(real_library, name), "%s without a device", name);
}

int main(void) {
    static char archs[] = TEST_ARCHS; /* "gfx90a gfx942" */
    const bool kfd = access("/sys/class/kfd", F_OK) == 0;
    if (kfd)
        tap(true, "without a driver # SKIP this machine has one");
    else
        tap(alone(without_driver, NULL), "without a driver the module is refused and the CPU works");
    tap(alone(without_device, NULL), "without a device likewise");
    survivor = strtok(archs, " ");
    tap(alone(foreign, survivor), "a device there is no code for");
    for (const char *chip = survivor; chip; chip = strtok(NULL, " ")) test_chip(chip);
#define ENTRY(type, name, parameters) \
    if (strcmp(#name, "GetErrorString") != 0) \
        tap(alone(survives_alone, STRING(hip##name)), "%s fails", STRING(hip##name));
    HIP_ENTRY_POINTS(ENTRY)
#undef ENTRY
    tap(alone(survives_alone, "hipGetDevicePropertiesR0600"), "hipGetDevicePropertiesR0600 fails");
    tap(alone(needs_nothing, TEST_MODULE), "the module needs no library of ROCm");
    test_real("libamdhip64.so.5");
    test_real("libamdhip64.so.6");
    return tap_end();
}
