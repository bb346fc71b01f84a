/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA module over a stub of the driver library: what it refuses and why, and what becomes of every failing call of
 * the driver. TEST_STUB is the stub, TEST_MODULE the module. */
#include <dlfcn.h>

#include "backends/cuda/driver/driver.h"
#include "lists.h"
#include "stub.h"
#include "told.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)

static const char words[] = "stub error";

static trine *open_library(void) { return open_backend("cuda"); }
static bool refused(const trine *lib, const char *reason) { return refused_for(lib, "cuda", reason); }

/* -------------------------------------------------------------------------------------------------------- scenarios */

static bool without_driver(const void *context) {
    (void)context;
    trine *lib = open_library();
    return lib && refused(lib, "no driver: libcuda.so.1: cannot open shared object file") &&
           trine_device_count(lib) == 1;
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
    return second == 2 && trine_device_info(lib, second, &info) == TRINE_OK && strcmp(info.arch, "sm_90") == 0 &&
           strcmp(info.pci, "0000:a1:00.0") == 0 && works(lib, 1) && works(lib, 2);
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

/* A queue on the default stream launches there, does not record, and leaves the stream when it is closed; one without
 * does neither. */
static bool default_stream(const void *context) {
    (void)context;
    stub_settings *stub = load_stub();
    trine *lib = stub != NULL ? open_library() : NULL;
    if (lib == NULL) return false;
    for (int own = 0; own < 2; own++) {
        trine_queue *queue;
        void *memory;
        const trine_queue_options options = { .struct_size = sizeof options,
                                              .flags = own ? 0 : TRINE_QUEUE_DEFAULT_STREAM };
        if (trine_queue_open(lib, 1, &options, &queue) != TRINE_OK ||
            trine_memory_alloc(queue, sizeof(float), &memory) != TRINE_OK)
            return false;
        const trine_tensor t = trine_tensor_1d(memory, TRINE_F32, 1);
        stub->stream = NULL;
        stub->destroyed = 0;
        if (trine_scale(queue, &(trine_scale_args){ TRINE_ARGS(scale), .x = &t, .y = &t }) != TRINE_OK) return false;
        if (stub->stream == NULL || (stub->stream == (void *)CU_STREAM_LEGACY) == own) return false;
        if (!own && (trine_graph_begin(queue) != TRINE_ERR_UNSUPPORTED ||
                     strstr(trine_error_message(), "uses the default stream of cuda:0") == NULL))
            return false;
        if (trine_memory_free(queue, memory) != TRINE_OK) return false;
        trine_queue_close(queue);
        if (stub->destroyed != own) return false;
    }
    return true;
}

/* The entry point fails at its first call, or at a later one: the driver's words come back, nothing else does, and the
 * next try succeeds. */
static bool survives(const void *context) {
    for (int after = 0; after < 1 << 20; after += after < 16 ? 1 : after) {
        stub_settings *stub = load_stub();
        if (stub == NULL) return false;
        *stub = (stub_settings){
            .version = 13000, .devices = 1, .major = 9, .fail = context, .after = after, .result = CUDA_ERROR_UNKNOWN
        };
        trine *lib = open_library();
        bool right = true, said = true;
        if (trine_device_count(lib) == 2) {
            const trine_status status = double_numbers(lib, 1, NULL, &right);
            if (stub->failed > 0)
                said = status == TRINE_ERR_DEVICE && strstr(trine_error_message(), words) &&
                       strstr(trine_error_message(), "cu") != NULL;
        } else {
            trine_backend_info_t info;
            said = trine_backend_info(lib, 1, &info) == TRINE_OK && info.refused != NULL &&
                   strstr(info.refused, words) != NULL;
        }
        const bool failed = stub->failed > 0;
        stub->fail = NULL;
        trine_close(lib);
        lib = open_library();
        const bool again = works(lib, 1);
        trine_close(lib);
        if (!said || !again) {
            fprintf(stderr, "%s after %d calls: %s: %s\n", (const char *)context, after,
                    said ? "not usable afterwards" : "no words", trine_error_message());
            return false;
        }
        if (!failed) return right;
    }
    return false;
}

static bool told(const void *context) {
    (void)context;
    trine_queue *queue;
    trine *lib = load_stub() != NULL ? open_library() : NULL;
    return lib != NULL && trine_queue_open(lib, 1, NULL, &queue) == TRINE_OK && told_alike(queue);
}

static bool listed(const void *context) {
    (void)context;
    trine_queue *queue;
    trine *lib = load_stub() != NULL ? open_library() : NULL;
    return lib != NULL && trine_queue_open(lib, 1, NULL, &queue) == TRINE_OK && lists_agree(queue, 4, 100003);
}

static bool recorded(const void *context) {
    (void)context;
    trine *lib = load_stub() != NULL ? open_library() : NULL;
    return lib && refuses_while_recorded(lib, 1) && works(lib, 1);
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
    if (!strstr(trine_error_message(), "no 12 bytes are left on cuda:0: cuMemAlloc: out of memory")) return false;
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
    stub->fail = STRING(cuLaunchKernelEx);
    stub->result = CUDA_ERROR_ILLEGAL_ADDRESS;
    for (int i = 0; i < 2; i++)
        if (double_numbers(lib, 1, NULL, &right) != TRINE_ERR_DEVICE ||
            !strstr(trine_error_message(), "an illegal memory access was encountered"))
            return false;
    return works(lib, 0);
}

/* Calls the gradients of row ops, of matrices that begin so many elements behind what is allocated. */
static bool run_gradients(trine_queue *queue, trine_dtype type, int64_t columns, int64_t behind) {
    enum { ROWS = 40, MATRICES = 4, ALL };
    const size_t size = trine_dtype_size(type), bytes = (size_t)(ROWS * columns + behind) * size;
    void *memory[ALL];
    bool good = true;
    for (int i = 0; i < ALL; i++)
        if (trine_memory_alloc(queue, i < MATRICES ? bytes : ROWS * sizeof(float), &memory[i]) != TRINE_OK)
            return false;
    trine_tensor x[MATRICES];
    for (int i = 0; i < MATRICES; i++)
        x[i] = trine_tensor_2d((char *)memory[i] + (size_t)behind * size, type, ROWS, columns);
    const trine_tensor saved = trine_tensor_1d(memory[MATRICES], TRINE_F32, ROWS),
                       sums = trine_tensor_1d(memory[MATRICES - 1], type, columns);
    trine_rms_norm_backward_args rms = {
        TRINE_ARGS(rms_norm_backward), .dy = &x[0], .h = &x[1], .rstd = &saved, .dx = &x[2], .dweight = &sums
    };
    trine_layer_norm_backward_args layer = { TRINE_ARGS(layer_norm_backward),
                                             .dy = &x[0],
                                             .h = &x[1],
                                             .mean = &saved,
                                             .rstd = &saved,
                                             .dx = &x[2],
                                             .dweight = &sums };
    const trine_softmax_backward_args softmax = { TRINE_ARGS(softmax_backward), .y = &x[0], .dy = &x[1], .dx = &x[2] };
    good &= trine_rms_norm_backward(queue, &rms) == TRINE_OK && trine_layer_norm_backward(queue, &layer) == TRINE_OK;
    good = good && trine_softmax_backward(queue, &softmax) == TRINE_OK;
    rms.dresidual = layer.dresidual = &x[1];
    good = good && trine_rms_norm_backward(queue, &rms) == TRINE_OK &&
           trine_layer_norm_backward(queue, &layer) == TRINE_OK;
    for (int i = 0; i < ALL; i++) good &= trine_memory_free(queue, memory[i]) == TRINE_OK;
    return good;
}

/* Sums of a row are the same wherever it begins: so are the blocks, threads and clusters that make them. On a chip for
 * which the module has code. */
static bool same_shapes(const void *chip) {
    enum { STEP = 1 << 10, MOST = 80 << 10 };
    static const trine_dtype types[] = { TRINE_F32, TRINE_BF16 };
    trine_queue *queue;
    setenv("STUB_CHIP", chip, 1);
    stub_settings *stub = load_stub();
    trine *lib = stub != NULL ? open_library() : NULL;
    if (lib == NULL) return false;
    if (trine_device_count(lib) == 1) return refused(lib, "no code for this architecture");
    if (trine_queue_open(lib, 1, NULL, &queue) != TRINE_OK) return false;
    for (int t = 0; t < 2; t++)
        for (int64_t columns = STEP; columns <= MOST; columns += columns < MOST / 4 ? STEP : 4 * STEP) {
            unsigned shapes[2];
            bool same = true;
            for (int behind = 0; behind < 2; behind++) {
                stub->shapes = 0;
                same &= run_gradients(queue, types[t], columns, behind);
                shapes[behind] = stub->shapes;
            }
            if (same && shapes[0] != 0 && shapes[0] == shapes[1]) continue;
            fprintf(stderr, "%s, %lld columns: %s\n", trine_dtype_name(types[t]), (long long)columns,
                    same ? "other launches" : trine_error_message());
            return false;
        }
    return true;
}

/* How many clusters a device holds is asked once, also where it holds none, as four SMs none of eight blocks. */
static bool asks_once(const void *context) {
    enum { ENOUGH = 1 << 20, COLUMNS = 33 << 10 };
    (void)context;
    trine_queue *queue;
    setenv("STUB_CHIP", "sm_90a", 1);
    setenv("STUB_UNITS", "4", 1);
    stub_settings *stub = load_stub();
    trine *lib = stub != NULL ? open_library() : NULL;
    if (lib == NULL || trine_queue_open(lib, 1, NULL, &queue) != TRINE_OK) return false;
    int asked[2];
    stub->fail = STRING(cuOccupancyMaxActiveClusters);
    for (int i = 0; i < 2; i++) {
        stub->after = ENOUGH;
        if (!run_gradients(queue, TRINE_F32, COLUMNS, 0)) return false;
        asked[i] = ENOUGH - stub->after;
    }
    if (asked[0] == 0 || asked[1] > 0) fprintf(stderr, "asked %d times and %d times\n", asked[0], asked[1]);
    return asked[0] > 0 && asked[1] == 0;
}

enum { NORM_ROWS = 7, NORM_MOST = 2568, NORM_BYTES = NORM_ROWS * NORM_MOST * 4 };

/* What the norms and their gradients make of a matrix that begins so many elements behind what is allocated: y, and dx
 * of both, and what rows save. */
typedef struct norm_results {
    char matrix[4][NORM_BYTES];
    float saved[3][NORM_ROWS];
} norm_results;

static bool run_norms(trine_queue *queue, trine_dtype type, int64_t columns, int64_t behind, norm_results *results) {
    enum { MATRICES = 5, SAVED = 3 };
    static float numbers[NORM_ROWS * NORM_MOST];
    static uint16_t halves[NORM_ROWS * NORM_MOST];
    const size_t size = trine_dtype_size(type), bytes = (size_t)(NORM_ROWS * columns) * size,
                 first = (size_t)behind * size;
    void *memory[MATRICES + SAVED];
    trine_tensor x[MATRICES], saved[SAVED];
    uint32_t state = 1;
    for (int64_t i = 0; i < NORM_ROWS * columns; i++) {
        state = state * 1664525 + 1013904223;
        numbers[i] = (float)(int32_t)state * 0x1p-31f;
        uint32_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        halves[i] = (uint16_t)(bits >> 16);
    }
    for (int i = 0; i < MATRICES + SAVED; i++)
        if (trine_memory_alloc(queue, i < MATRICES ? first + bytes : sizeof results->saved[0], &memory[i]) != TRINE_OK)
            return false;
    for (int i = 0; i < MATRICES; i++) x[i] = trine_tensor_2d((char *)memory[i] + first, type, NORM_ROWS, columns);
    for (int i = 0; i < SAVED; i++) saved[i] = trine_tensor_1d(memory[MATRICES + i], TRINE_F32, NORM_ROWS);
    const trine_layer_norm_args layer = { TRINE_ARGS(layer_norm), .x = &x[0], .y = &x[1], .mean = &saved[0],
                                          .rstd = &saved[1] };
    const trine_rms_norm_args rms = { TRINE_ARGS(rms_norm), .x = &x[0], .y = &x[2], .rstd = &saved[2] };
    const trine_layer_norm_backward_args layer_backward = { TRINE_ARGS(layer_norm_backward),
                                                            .dy = &x[0],
                                                            .h = &x[0],
                                                            .mean = &saved[0],
                                                            .rstd = &saved[1],
                                                            .dresidual = &x[1],
                                                            .dx = &x[3] };
    const trine_rms_norm_backward_args rms_backward = {
        TRINE_ARGS(rms_norm_backward), .dy = &x[0], .h = &x[0], .rstd = &saved[2], .dresidual = &x[2], .dx = &x[4]
    };
    bool good =
        trine_memory_write(queue, x[0].data, size == sizeof(float) ? (const void *)numbers : halves, bytes) == TRINE_OK;
    good = good && trine_layer_norm(queue, &layer) == TRINE_OK && trine_rms_norm(queue, &rms) == TRINE_OK;
    good = good && trine_layer_norm_backward(queue, &layer_backward) == TRINE_OK &&
           trine_rms_norm_backward(queue, &rms_backward) == TRINE_OK;
    good = good && trine_queue_wait(queue) == TRINE_OK;
    for (int i = 1; i < MATRICES; i++)
        good = good && trine_memory_read(queue, results->matrix[i - 1], x[i].data, bytes) == TRINE_OK;
    for (int i = 0; i < SAVED; i++)
        good = good && trine_memory_read(queue, results->saved[i], saved[i].data, sizeof results->saved[i]) == TRINE_OK;
    for (int i = 0; i < MATRICES + SAVED; i++) good &= trine_memory_free(queue, memory[i]) == TRINE_OK;
    return good;
}

/* And so are the bits of what comes out, of lengths just beyond what groups of threads hold. */
static bool same_bits(const void *context) {
    static const int64_t lengths[] = { 8, 264, 520, 776, 1032, 1288, 1544, 1800, 2056, NORM_MOST };
    static const trine_dtype types[] = { TRINE_F32, TRINE_BF16 };
    static norm_results results[2];
    (void)context;
    trine_queue *queue;
    trine *lib = load_stub() != NULL ? open_library() : NULL;
    if (lib == NULL || trine_queue_open(lib, 1, NULL, &queue) != TRINE_OK) return false;
    bool good = true;
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            bool same = true;
            for (int behind = 0; behind < 2; behind++)
                same &= run_norms(queue, types[t], lengths[i], behind, &results[behind]);
            if (same && memcmp(&results[0], &results[1], sizeof results[0]) == 0) continue;
            fprintf(stderr, "%s, %lld columns: %s\n", trine_dtype_name(types[t]), (long long)lengths[i],
                    same ? "other bits" : trine_error_message());
            good = false;
        }
    return good;
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
    tap(alone(default_stream, NULL), "the default stream");
#define ENTRY(name) tap(alone(survives, STRING(cu##name)), "%s fails", STRING(cu##name));
    CUDA_ENTRY_POINTS(ENTRY)
#undef ENTRY
    tap(alone(told, NULL), "dropout by a tensor's key");
    tap(alone(listed, NULL), "lists of calls");
    tap(alone(recorded, NULL), "what a recording refuses");
    tap(alone(out_of_memory, NULL), "out of memory");
    tap(alone(sticky, NULL), "a sticky error");
    tap(alone(same_shapes, "sm_80"), "where rows begin does not change what launches are like on an A100");
    tap(alone(same_shapes, "sm_90a"), "where rows begin does not change what launches are like on an H200");
    tap(alone(asks_once, NULL), "how many clusters a device holds is asked once");
    tap(alone(same_bits, NULL), "where rows begin does not change the bits of norms and their gradients");
    tap(alone(needs_nothing, TEST_MODULE), "the module needs no library of CUDA");
    return tap_end();
}
