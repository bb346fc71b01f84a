/* SPDX-License-Identifier: Apache-2.0 */
/* HIP kernels, compiled for each chip, run in both wave orders, against the host;
 * and what the profile must count for some of them. */
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
    tap(ran && p.stored == 4 * N && scalar_bytes > 0 && scalar_bytes <= 16 * 64 && p.waves == 16,
        "%s: vector_add loads 8 bytes an element, and stores 4", chip);
    tap(p.transactions == 3 * N * 4 / 64 && p.ideal == p.transactions, "%s: vector_add is coalesced", chip);
    tap(p.instructions[CDNA_LOAD] == 32 && p.instructions[CDNA_STORE] == 16 && p.narrow == 48,
        "%s: vector_add has two loads and one store a wave", chip);
    cdna_memory_free(b->machine, x);
}

static uint64_t conflicts_of(bench *b, const char *kernel, uint32_t workgroups, uint32_t items, const void *args,
                             size_t bytes) {
    const cdna_grid grid = { { workgroups, 1, 1 }, { items, 1, 1 }, 0 };
    cdna_profile p = { 0 };
    const bool ran =
        cdna_launch(b->machine, cdna_object_kernel(b->object, kernel), &grid, args, bytes, NULL, &p, &b->failure);
    return ran ? p.lds_conflicts : UINT64_MAX;
}

/* Rows of 33 floats spread a column over all banks. On gfx950, a 16 x 32 tile of 2-byte elements read as the matrix
 * unit wants it has two lanes on each bank, and none with the swizzle of HipKittens (arXiv 2511.08083). */
static void check_conflicts(bench *b, cdna_chip chip) {
    const char *name = cdna_chip_name(chip);
    enum { N = 64 };
    float *x = cdna_memory_alloc(b->machine, 2 * N * N * sizeof *x);
    const struct {
        float *x, *y;
        int rows, columns;
    } args = { memset(x, 0, 2 * N * N * sizeof *x), x + N * N, N, N };
    tap(conflicts_of(b, "transpose", 4, 256, &args, sizeof args) == 0, "%s: transpose has no bank conflicts", name);
    uint32_t *plain = (uint32_t *)x, *swizzled = plain + 64;
    for (uint32_t l = 0; l < 64; l++) {
        plain[l] = l % 16 * 64 + l / 16 * 16;
        swizzled[l] = plain[l] ^ plain[l] % 1024 >> 9 << 5;
    }
    const void *reads[2][2] = { { plain, args.y }, { swizzled, args.y } };
    const uint64_t before = conflicts_of(b, "read_tile", 1, 64, reads[0], sizeof reads[0]),
                   after = conflicts_of(b, "read_tile", 1, 64, reads[1], sizeof reads[1]);
    if (chip == CDNA_GFX950)
        tap(before == 4 && after == 0, "%s: a swizzle takes the conflicts of a tile from 4 cycles to none", name);
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
        for (const kernel_case *k = kernel_cases; k->name; k++) {
            b.options.quantum = 0;
            if (!tap(k->check(&b), "%s: %s", name, k->name)) printf("# %s\n", b.failure.message);
            b.options.quantum = 7;
            if (!tap(k->check(&b), "%s: %s, its waves taking turns of 7 instructions", name, k->name))
                printf("# %s\n", b.failure.message);
        }
        check_profile(&b, name);
        check_conflicts(&b, (cdna_chip)chip);
        cdna_close(b.machine);
    }
    free(source);
    return tap_end();
}
