/* SPDX-License-Identifier: Apache-2.0 */
/* Queues with a part of a device's SMs, over a stub of NVIDIA's driver: who gets how many, what is refused and why, and
 * that each works on its own. TEST_STUB is the stub; the arguments are the ops that the module has code of. */
#include "backends/cuda/driver/driver.h"
#include "stub.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)

static trine *open_library(void) { return open_backend("cuda"); }

/* Parts of the 132 SMs of an H200, which come in groups of 8 and one of 4: who gets how many, and what is refused. */
static bool parted(const void *context) {
    (void)context;
    trine_queue *queue[4];
    setenv("STUB_CHIP", "sm_90a", 1);
    stub_settings *stub = load_stub();
    trine *lib = stub != NULL ? open_library() : NULL;
    if (lib == NULL) return false;
    const trine_queue_options streams[] = {
        { .struct_size = sizeof streams[0], .sm_count = 8, .stream = stub },
        { .struct_size = sizeof streams[0], .sm_count = 8, .flags = TRINE_QUEUE_DEFAULT_STREAM }
    };
    for (int i = 0; i < 2; i++)
        if (trine_queue_open(lib, 1, &streams[i], &queue[0]) != TRINE_ERR_ARGUMENT) return false;
    bool good = part_refused(lib, 0, 1, TRINE_ERR_UNSUPPORTED, "sm_count is 1, but cpu is not parted by it") &&
                part_refused(lib, 1, -1, TRINE_ERR_ARGUMENT, "sm_count is -1, but 0 to 132 are possible on cuda:0") &&
                part_refused(lib, 1, 133, TRINE_ERR_ARGUMENT, "sm_count is 133, but 0 to 132 are possible on cuda:0");
    for (int again = 0; good && again < 2; again++) {
        good = open_part(lib, 1, 100, &queue[0]) == TRINE_OK && open_part(lib, 1, 9, &queue[1]) == TRINE_OK &&
               trine_queue_open(lib, 1, NULL, &queue[2]) == TRINE_OK;
        good = good && trine_queue_sm_count(queue[0]) == 100 && trine_queue_sm_count(queue[1]) == 16 &&
               trine_queue_sm_count(queue[2]) == 132;
        good = good &&
               part_refused(lib, 1, 17, TRINE_ERR_UNSUPPORTED, "sm_count is 17, but 16 of cuda:0's 132 are left") &&
               open_part(lib, 1, 16, &queue[3]) == TRINE_OK && stub->greens == 3 &&
               part_refused(lib, 1, 1, TRINE_ERR_UNSUPPORTED, "sm_count is 1, but 0 of cuda:0's 132 are left");
        for (int i = 0; good && i < 4; i++) trine_queue_close(queue[i]);
        good = good && stub->greens == 0;
    }
    good = good && open_part(lib, 1, 132, &queue[0]) == TRINE_OK && trine_queue_sm_count(queue[0]) == 132;
    if (good) trine_queue_close(queue[0]);
    trine_queue *cpu;
    good = good && trine_queue_open(lib, 0, NULL, &cpu) == TRINE_OK && trine_queue_sm_count(cpu) == 0 &&
           trine_queue_sm_count(NULL) == 0;
    if (!good) fprintf(stderr, "%s\n", trine_error_message());
    return good && stub->shared == 0 && stub->left == 0 && stub->greens == 0;
}

/* Sums and products of small integers, which no order of sums changes, and a softmax: of the ops that there are. */
enum { ROWS = 96, COLUMNS = 1024 };
typedef struct results {
    float product[ROWS * ROWS], rows[ROWS * COLUMNS], sums[COLUMNS];
} results;

static char **ops;
static bool has(const char *op) {
    for (char **at = ops; *at != NULL; at++)
        if (strcmp(*at, op) == 0) return true;
    return false;
}

static bool run_all(trine_queue *queue, results *out) {
    static float numbers[ROWS * COLUMNS];
    void *memory[4];
    void *const to[] = { NULL, out->product, out->rows, out->sums };
    const size_t bytes[] = { sizeof numbers, sizeof out->product, sizeof out->rows, sizeof out->sums };
    for (int i = 0; i < ROWS * COLUMNS; i++) numbers[i] = (float)(i * 7 % 13 - 6);
    for (int i = 0; i < 4; i++)
        if (trine_memory_alloc(queue, bytes[i], &memory[i]) != TRINE_OK) return false;
    const trine_tensor x = trine_tensor_2d(memory[0], TRINE_F32, ROWS, COLUMNS),
                       t = trine_tensor_2d(memory[0], TRINE_F32, COLUMNS, ROWS),
                       d = trine_tensor_2d(memory[1], TRINE_F32, ROWS, ROWS),
                       y = trine_tensor_2d(memory[2], TRINE_F32, ROWS, COLUMNS),
                       s = trine_tensor_1d(memory[3], TRINE_F32, COLUMNS);
    const trine_matmul_args product = { TRINE_ARGS(matmul), .a = &x, .b = &t, .d = &d };
    const trine_softmax_args rows = { TRINE_ARGS(softmax), .x = &x, .y = &y };
    const trine_reduce_sum_args sums = { TRINE_ARGS(reduce_sum), .x = &x, .column_sums = &s };
    const trine_scale_args scale = { TRINE_ARGS(scale), .x = &x, .y = &x, .alpha = 2 };
    bool good = true;
    for (int i = 0; i < 4; i++) good &= trine_memory_write(queue, memory[i], numbers, bytes[i]) == TRINE_OK;
    good = good && trine_scale(queue, &scale) == TRINE_OK;
    good = good && (!has("matmul") || trine_matmul(queue, &product) == TRINE_OK);
    good = good && (!has("softmax") || trine_softmax(queue, &rows) == TRINE_OK);
    good = good && (!has("reduce_sum") || trine_reduce_sum(queue, &sums) == TRINE_OK);
    good = good && trine_queue_wait(queue) == TRINE_OK;
    for (int i = 1; i < 4; i++) good = good && trine_memory_read(queue, to[i], memory[i], bytes[i]) == TRINE_OK;
    for (int i = 0; i < 4; i++) good &= trine_memory_free(queue, memory[i]) == TRINE_OK;
    if (!good) fprintf(stderr, "%s\n", trine_error_message());
    return good;
}

/* Two queues with 1 and 3 of the emulated device's 4 SMs do what one with all of them does, each on its own. */
static bool parts_work(const void *context) {
    static results found[3];
    static const int counts[] = { 0, 1, 3 };
    (void)context;
    trine_queue *queue[3];
    bool right;
    stub_settings *stub = load_stub();
    trine *lib = stub != NULL ? open_library() : NULL;
    if (lib == NULL) return false;
    for (int i = 0; i < 3; i++)
        if (open_part(lib, 1, counts[i], &queue[i]) != TRINE_OK) return false;
    for (int i = 0; i < 3; i++) {
        if (!run_all(queue[i], &found[i]) || stub->units != (counts[i] ? counts[i] : 4)) return false;
        if (memcmp(&found[i], &found[0], sizeof found[0]) != 0) return false;
    }
    for (int i = 0; i < 3; i++) trine_queue_close(queue[i]);
    const trine_queue_options options = { .struct_size = sizeof options, .sm_count = 2 };
    return double_numbers_on(lib, 1, &options, &right) == TRINE_OK && right && stub->units == 2 && stub->shared == 0 &&
           stub->left == 0 && stub->greens == 0;
}

/* A graph is its part's: no other queue launches it. */
static bool graph_of_part(const void *context) {
    (void)context;
    trine_queue *queue[2];
    trine_graph *graph;
    void *memory;
    stub_settings *stub = load_stub();
    trine *lib = stub != NULL ? open_library() : NULL;
    if (lib == NULL || open_part(lib, 1, 1, &queue[0]) != TRINE_OK || open_part(lib, 1, 1, &queue[1]) != TRINE_OK ||
        trine_memory_alloc(queue[0], sizeof(float), &memory) != TRINE_OK || trine_graph_begin(queue[0]) != TRINE_OK)
        return false;
    const trine_tensor t = trine_tensor_1d(memory, TRINE_F32, 1);
    bool good = trine_scale(queue[0], &(trine_scale_args){ TRINE_ARGS(scale), .x = &t, .y = &t }) == TRINE_OK;
    good = trine_graph_end(queue[0], &graph) == TRINE_OK && good;
    good = good && trine_graph_launch(queue[1], graph) == TRINE_ERR_ARGUMENT &&
           strstr(trine_error_message(), "the graph was recorded on a part of cuda:0") != NULL &&
           trine_graph_launch(queue[0], graph) == TRINE_OK;
    trine_graph_free(graph);
    trine_memory_free(queue[0], memory);
    for (int i = 0; i < 2; i++) trine_queue_close(queue[i]);
    return good;
}

/* A queue on the caller's stream has the SMs of that stream's green context: here that of another queue. */
static bool stream_of_part(const void *context) {
    (void)context;
    trine_queue *queue[2];
    stub_settings *stub = load_stub();
    trine *lib = stub != NULL ? open_library() : NULL;
    if (lib == NULL || open_part(lib, 1, 3, &queue[0]) != TRINE_OK) return false;
    void *memory;
    if (trine_memory_alloc(queue[0], sizeof(float), &memory) != TRINE_OK) return false;
    const trine_tensor t = trine_tensor_1d(memory, TRINE_F32, 1);
    if (trine_scale(queue[0], &(trine_scale_args){ TRINE_ARGS(scale), .x = &t, .y = &t }) != TRINE_OK) return false;
    const trine_queue_options options = { .struct_size = sizeof options, .stream = stub->stream };
    if (trine_queue_open(lib, 1, &options, &queue[1]) != TRINE_OK) return false;
    const bool good = trine_queue_sm_count(queue[1]) == 3;
    trine_memory_free(queue[0], memory);
    for (int i = 1; i >= 0; i--) trine_queue_close(queue[i]);
    return good && stub->greens == 0 && stub->left == 0;
}

/* A part that the driver does not give: its words come back, and nothing is kept of it. */
static bool part_survives(const void *entry) {
    trine_queue *queue;
    stub_settings *stub = load_stub();
    trine *lib = stub != NULL ? open_library() : NULL;
    if (lib == NULL) return false;
    stub->fail = entry;
    stub->result = CUDA_ERROR_UNKNOWN;
    bool good = strcmp(entry, STRING(cuGreenCtxDestroy)) == 0 || strcmp(entry, STRING(cuStreamGetGreenCtx)) == 0 ||
                strcmp(entry, STRING(cuGreenCtxGetDevResource)) == 0 ||
                part_refused(lib, 1, 4, TRINE_ERR_DEVICE, "stub error");
    stub->fail = NULL;
    good = good && open_part(lib, 1, 4, &queue) == TRINE_OK;
    if (good) trine_queue_close(queue);
    return good && stub->greens == 0 && stub->left == 0;
}

/* The stub's file, to be freed. */
static char *read_stub(size_t *size_out) {
    FILE *from = fopen(TEST_STUB, "rb");
    if (from == NULL) return NULL;
    const long size = fseek(from, 0, SEEK_END) == 0 ? ftell(from) : -1;
    char *bytes = size > 0 ? malloc((size_t)size) : NULL;
    rewind(from);
    const bool whole = bytes != NULL && fread(bytes, 1, (size_t)size, from) == (size_t)size;
    fclose(from);
    *size_out = (size_t)size;
    if (whole) return bytes;
    free(bytes);
    return NULL;
}

/* The stub, but for an entry point of another name: the module works, parts do not. */
static bool driver_without_parts(const void *context) {
    static const char name[] = "cuGreenCtxCreate";
    char path[] = "libcuda-without-XXXXXX";
    (void)context;
    const int file = mkstemp(path);
    size_t size = 0;
    char *bytes = file < 0 ? NULL : read_stub(&size);
    if (bytes == NULL) return false;
    for (char *at = bytes; (at = memmem(at, size - (size_t)(at - bytes), name, sizeof name)) != NULL; at++)
        at[sizeof name - 2] = 'X';
    const bool written = write(file, bytes, size) == (ssize_t)size;
    close(file);
    free(bytes);
    if (!written) return false;
    char full[4096];
    const bool loaded = realpath(path, full) != NULL && dlopen(full, RTLD_NOW | RTLD_GLOBAL) != NULL;
    unlink(path);
    trine *lib = loaded ? open_library() : NULL;
    return lib != NULL && works(lib, 1) &&
           part_refused(lib, 1, 2, TRINE_ERR_UNSUPPORTED, "sm_count is set, but the driver has no cuGreenCtxCreate");
}

int main(int argc, char **argv) {
    ops = argv + (argc > 0);
    if (dlopen("libcuda.so.1", RTLD_NOW) != NULL) return tap_skip_all("this machine has a driver");
    tap(alone(parted, NULL), "sizes of parts, and what is refused");
    tap(alone(parts_work, NULL), "work on the queue's own SMs");
    tap(alone(graph_of_part, NULL), "a part's graph");
    tap(alone(stream_of_part, NULL), "the caller's stream of a green context");
#define ENTRY(name) tap(alone(part_survives, STRING(cu##name)), "%s fails", STRING(cu##name));
    CUDA_PART_ENTRY_POINTS(ENTRY)
#undef ENTRY
    tap(alone(driver_without_parts, NULL), "a driver without green contexts");
    return tap_end();
}
