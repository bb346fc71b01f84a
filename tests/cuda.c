/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA module over a stub of the driver library: what it refuses and why, and what becomes of every failing call of the driver. TEST_STUB is the stub,
 * TEST_MODULE the module. Each scenario has a process of its own, since a module is initialised once. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <trine/trine.h>

#include "backends/cuda/driver.h"
#include "stubs/stub.h"
#include "tap.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)

static const char words[] = "stub error";

/* Opens the stub, so that the module finds it under its name. */
static stub_settings *load_stub(void) {
    void *library = dlopen(TEST_STUB, RTLD_NOW | RTLD_GLOBAL);
    stub_settings *stub = library != NULL ? dlsym(library, STUB_SETTINGS) : NULL;
    if (stub == NULL) fprintf(stderr, "%s\n", dlerror());
    return stub;
}

static trine *open_library(void) {
    trine *lib = NULL;
    if (trine_open(&(trine_options){ .struct_size = sizeof(trine_options), .backends = "cuda", .tune_file = "/dev/null" }, &lib) != TRINE_OK)
        fprintf(stderr, "%s\n", trine_error_message());
    return lib;
}

/* Was the module refused with a reason that begins so? */
static bool refused(const trine *lib, const char *reason) {
    for (int i = 0; i < trine_backend_count(lib); i++) {
        trine_backend_info_t info;
        if (trine_backend_info(lib, i, &info) != TRINE_OK || strcmp(info.name, "cuda") != 0) continue;
        if (info.refused != NULL && strncmp(info.refused, reason, strlen(reason)) == 0) return true;
        fprintf(stderr, "refused: %s\n", info.refused ? info.refused : "no");
    }
    return false;
}

/* Opens a queue, doubles three numbers on it, by hand and as a measurement, and closes it. The first error ends it. */
static trine_status double_numbers(trine *lib, int device, void *stream, bool *right_out) {
    const float x[3] = { 1, 2, 3 };
    float y[3] = { 0 };
    void *memory = NULL;
    trine_queue *queue = NULL;
    trine_status status = trine_queue_open(lib, device, &(trine_queue_options){ .struct_size = sizeof(trine_queue_options), .stream = stream }, &queue);
    if (status == TRINE_OK) status = trine_memory_alloc(queue, sizeof x, &memory);
    if (status == TRINE_OK) status = trine_memory_write(queue, memory, x, sizeof x);
    const trine_tensor t = trine_tensor_1d(memory, TRINE_F32, 3);
    const trine_scale_args args = { TRINE_ARGS(scale), .x = &t, .y = &t, .alpha = 2 };
    if (status == TRINE_OK) status = trine_scale(queue, &args);
    if (status == TRINE_OK) status = trine_queue_wait(queue);
    if (status == TRINE_OK) status = trine_memory_read(queue, y, memory, sizeof y);
    if (status == TRINE_OK) status = trine_tune_call(queue, TRINE_OP_SCALE, &args);
    if (status == TRINE_ERR_IO) status = TRINE_OK; /* there is no cache to write the measurement to */
    const trine_status freed = memory != NULL ? trine_memory_free(queue, memory) : TRINE_OK;
    trine_queue_close(queue);
    *right_out = y[0] == 2 && y[1] == 4 && y[2] == 6;
    return status == TRINE_OK ? freed : status;
}

static bool works(trine *lib, int device) {
    bool right;
    if (double_numbers(lib, device, NULL, &right) == TRINE_OK && right) return true;
    fprintf(stderr, "device %d: %s\n", device, trine_error_message());
    return false;
}

/* Runs a scenario in a process of its own. */
static bool alone(bool (*scenario)(const void *context), const void *context) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) _exit(scenario(context) ? 0 : 1);
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---------------------------------------------------------------------------------------------------------------- scenarios */

static bool without_driver(const void *context) {
    (void)context;
    trine *lib = open_library();
    return lib && refused(lib, "no driver: libcuda.so.1: cannot open shared object file") && trine_device_count(lib) == 1;
}

/* A stub that is like this, and how the refusal begins. */
typedef struct unusable {
    stub_settings settings;
    const char *reason;
} unusable;

static bool refuses(const void *context) {
    const unusable *u = context;
    stub_settings *stub = load_stub();
    if (stub == NULL) return false;
    *stub = u->settings;
    trine *lib = open_library();
    return lib && refused(lib, u->reason);
}

static bool two_devices(const void *context) {
    (void)context;
    stub_settings *stub = load_stub();
    if (stub == NULL) return false;
    stub->devices = 2;
    trine *lib = open_library();
    trine_device_info_t info;
    const int second = trine_device_find(lib, "cuda:1");
    return second == 2 && trine_device_info(lib, second, &info) == TRINE_OK && strcmp(info.arch, "sm_90") == 0 && strcmp(info.pci, "0000:a1:00.0") == 0 &&
           works(lib, 1) && works(lib, 2);
}

/* The caller's context and stream stay the caller's. */
static bool guest(const void *context) {
    (void)context;
    if (load_stub() == NULL) return false;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    __typeof__(&cuCtxPushCurrent) push;
    __typeof__(&cuCtxGetCurrent) get;
    *(void **)&push = dlsym(library, STRING(cuCtxPushCurrent));
    *(void **)&get = dlsym(library, STRING(cuCtxGetCurrent));
    trine *lib = open_library();
    char own[2];
    CUcontext current = NULL;
    bool right;
    push((CUcontext)(void *)own);
    const trine_status status = double_numbers(lib, 1, own + 1, &right);
    return status == TRINE_OK && right && get(&current) == CUDA_SUCCESS && current == (CUcontext)(void *)own;
}

/* The entry point fails at its first call, or at a later one: the driver's words come back, nothing else does, and the next try succeeds. */
static bool survives(const void *context) {
    for (int after = 0; after < 1 << 20; after += after < 16 ? 1 : after) {
        stub_settings *stub = load_stub();
        if (stub == NULL) return false;
        *stub = (stub_settings){ .version = 13000, .devices = 1, .major = 9, .fail = context, .after = after, .result = CUDA_ERROR_UNKNOWN };
        trine *lib = open_library();
        bool right = true, said = true;
        if (trine_device_count(lib) == 2) {
            const trine_status status = double_numbers(lib, 1, NULL, &right);
            if (stub->failed > 0) said = status == TRINE_ERR_DEVICE && strstr(trine_error_message(), words) && strstr(trine_error_message(), "cu") != NULL;
        } else {
            trine_backend_info_t info;
            said = trine_backend_info(lib, 1, &info) == TRINE_OK && info.refused != NULL && strstr(info.refused, words) != NULL;
        }
        const bool failed = stub->failed > 0;
        stub->fail = NULL;
        trine_close(lib);
        lib = open_library();
        const bool again = works(lib, 1);
        trine_close(lib);
        if (!said || !again) {
            fprintf(stderr, "%s after %d calls: %s: %s\n", (const char *)context, after, said ? "not usable afterwards" : "no words", trine_error_message());
            return false;
        }
        if (!failed) return right;
    }
    return false;
}

static bool out_of_memory(const void *context) {
    (void)context;
    stub_settings *stub = load_stub();
    if (stub == NULL) return false;
    trine *lib = open_library();
    bool right;
    stub->fail = STRING(cuMemAlloc);
    stub->result = CUDA_ERROR_OUT_OF_MEMORY;
    if (double_numbers(lib, 1, NULL, &right) != TRINE_ERR_MEMORY) return false;
    stub->fail = NULL;
    return works(lib, 1);
}

/* After a fault on the device all its calls fail; the CPU goes on. */
static bool sticky(const void *context) {
    (void)context;
    stub_settings *stub = load_stub();
    if (stub == NULL) return false;
    trine *lib = open_library();
    bool right;
    stub->fail = STRING(cuLaunchKernel);
    stub->result = CUDA_ERROR_ILLEGAL_ADDRESS;
    for (int i = 0; i < 2; i++)
        if (double_numbers(lib, 1, NULL, &right) != TRINE_ERR_DEVICE || !strstr(trine_error_message(), "an illegal memory access was encountered"))
            return false;
    return works(lib, 0);
}

/* The dynamic section names no library of CUDA. */
static bool needs_nothing(const void *context) {
    (void)context;
    char line[512];
    bool read = false, clean = true;
    FILE *sections = popen("readelf -d " TEST_MODULE, "r");
    while (sections != NULL && fgets(line, sizeof line, sections) != NULL) {
        if (strstr(line, "(NEEDED)") == NULL) continue;
        read = true;
        if (strstr(line, "libc.so") || strstr(line, "libm.so") || strstr(line, "ld-linux")) continue;
        clean = false;
        fprintf(stderr, "%s", line);
    }
    return sections != NULL && pclose(sections) == 0 && read && clean;
}

int main(void) {
    static const stub_settings usual = { .version = 13000, .devices = 1, .major = 9 };
    unusable old = { usual, "driver too old: have 12.4, need 13.0" }, none = { usual, "no device" },
             foreign = { usual, "no code for this architecture: sm_75" };
    old.settings.version = 12040;
    none.settings.devices = 0;
    foreign.settings.major = 7;
    foreign.settings.minor = 5;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver != NULL) return tap_skip_all("this machine has a driver");
    tap(alone(without_driver, NULL), "without a driver the module is refused and the CPU works");
    tap(alone(refuses, &old), "%s", old.reason);
    tap(alone(refuses, &none), "%s", none.reason);
    tap(alone(refuses, &foreign), "%s", foreign.reason);
    tap(alone(two_devices, NULL), "two devices");
    tap(alone(guest, NULL), "the caller's context and stream");
#define ENTRY(name) tap(alone(survives, STRING(cu##name)), "%s fails", STRING(cu##name));
    CUDA_ENTRY_POINTS(ENTRY)
#undef ENTRY
    tap(alone(out_of_memory, NULL), "out of memory");
    tap(alone(sticky, NULL), "a sticky error");
    tap(alone(needs_nothing, NULL), "the module needs no library of CUDA");
    return tap_end();
}
