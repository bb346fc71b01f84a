/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of chains on a device: the same bits as the calls one after the other, and calls that are alike are one launch,
 * which a stand-in for the driver counts. Speaks TAP. Usage: chain-lists DEVICE KERNEL CALLS LARGE. */
#include <dlfcn.h>

#include "emulators/cuda/stub.h"
#include "lists.h"
#include "tap.h"

enum { ALIKE = 150, N = 36 };

static const char *programs[] = { "y0 = x0 * 2 + 1", "y0 = x0 / sum_row(x0 * x0)" };

/* Launches of a list of calls of one program, of which `odd` are in bf16; -1: nobody counts. */
static int launches_of(trine_queue *queue, const char *program, int odd) {
    static trine_tensor tensor[2 * ALIKE];
    static trine_chain_args args[ALIKE];
    const void *list[ALIKE];
    stub_settings *stub = dlsym(RTLD_DEFAULT, STUB_SETTINGS);
    void *memory = NULL;
    if (trine_memory_alloc(queue, sizeof(float) * 2 * ALIKE * N, &memory) != TRINE_OK) return 0;
    for (int i = 0; i < ALIKE; i++) {
        for (int k = 0; k < 2; k++)
            tensor[2 * i + k] = trine_tensor_1d((float *)memory + (2 * i + k) * N, i < odd ? TRINE_BF16 : TRINE_F32, N);
        args[i] =
            (trine_chain_args){ TRINE_ARGS(chain), .x0 = &tensor[2 * i], .y0 = &tensor[2 * i + 1], .program = program };
        list[i] = &args[i];
    }
    if (trine_run_list(queue, TRINE_OP_CHAIN, list, ALIKE) != TRINE_OK) return 0; /* what is compiled is */
    const int before = stub != NULL ? stub->launches : 0;
    const trine_status status = trine_run_list(queue, TRINE_OP_CHAIN, list, ALIKE);
    const int after = stub != NULL ? stub->launches : -1;
    trine_queue_wait(queue);
    trine_memory_free(queue, memory);
    return status == TRINE_OK ? after - before : 0;
}

int main(int argc, char **argv) {
    trine *lib;
    trine_queue *queue;
    if (argc != 5 || trine_open(NULL, &lib) != TRINE_OK) return 2;
    const int device = trine_device_find(lib, argv[1]);
    const trine_queue_options options = { .struct_size = sizeof options, .kernel = argv[2] };
    if (device < 0 || trine_queue_open(lib, device, &options, &queue) != TRINE_OK) {
        tap(false, "%s: %s", argv[1], trine_error_message());
        return tap_end();
    }
    tap(lists_of_chains_agree(queue, 1, atoi(argv[3]), atoll(argv[4])), "lists by %s have the bits of single calls",
        argv[2]);
    for (int i = 0; i < 2; i++) {
        const int all = launches_of(queue, programs[i], 0), apart = launches_of(queue, programs[i], 1);
        tap(all < 0 || all == 3, "%d calls of \"%s\" are %d launches", ALIKE, programs[i], all);
        tap(apart < 0 || apart == 4, "one of them in another type: %d", apart);
    }
    trine_queue_close(queue);
    trine_close(lib);
    return tap_end();
}
