/* SPDX-License-Identifier: Apache-2.0 */
/* HIP kernels, compiled for each chip, run in both wave orders, against the host; and what the profile must count for some of them. */
#include "kernels.h"

/* Adding n numbers loads 8 bytes and stores 4 for each, in full transactions. */
static void check_profile(bench *b, const char *chip) {
    enum { N = 1024 };
    float *x = cdna_memory_alloc(b->machine, 3 * N * sizeof *x);
    const struct {
        float *x, *y, *z;
        int n;
    } args = { memset(x, 0, 3 * N * sizeof *x), x + N, x + 2 * N, N };
    const cdna_grid grid = { { 4, 1, 1 }, { 256, 1, 1 }, 0 };
    const cdna_kernel *kernel = cdna_object_kernel(b->object, "vector_add");
    cdna_profile p = { 0 };
    const bool ran = cdna_launch(b->machine, kernel, &grid, &args, sizeof args, NULL, &p, &b->failure);
    const uint64_t scalar_bytes = p.loaded - 8 * N;
    tap(ran && p.stored == 4 * N && scalar_bytes > 0 && scalar_bytes <= 16 * 64 && p.waves == 16, "%s: vector_add loads 8 bytes an element, and stores 4",
        chip);
    tap(p.transactions == 3 * N * 4 / 64 && p.ideal == p.transactions, "%s: vector_add is coalesced", chip);
    tap(p.instructions[CDNA_LOAD] == 32 && p.instructions[CDNA_STORE] == 16 && p.narrow == 48, "%s: vector_add has two loads and one store a wave", chip);
    cdna_memory_free(b->machine, x);
}

int main(void) {
    char *source = kernels_source();
    for (int chip = 0; source && chip < CDNA_CHIPS; chip++) {
        const char *name = cdna_chip_name((cdna_chip)chip);
        bench b;
        if (!chip_builds(name)) {
            tap(true, "%s # SKIP this clang does not know it", name);
            continue;
        }
        if (!tap(bench_open(&b, (cdna_chip)chip, true, source), "%s: the kernels compile and load", name)) continue;
        for (const kernel_case *k = kernel_cases; k->name; k++)
            if (!tap(k->check(&b), "%s: %s", name, k->name)) printf("# %s\n", b.failure.message);
        check_profile(&b, name);
        cdna_close(b.machine);
    }
    free(source);
    return tap_end();
}
