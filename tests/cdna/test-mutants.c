/* SPDX-License-Identifier: Apache-2.0 */
/* What the interpreter must catch: snippets that do one thing wrong, kernels of kernels.hip with a small defect, and the same kernels without one of their waits. A
 * mutant that survives fails the test. */
#include <elf.h>

#include "kernels.h"

/* ------------------------------------------------------------------------------------------------------------------- snippets */

/* Run by two waves; s[8:9] points to 256 bytes, v0 is the work-item, v1 its dword's offset in LDS and v2 a defined value. */
#define ROW_3_MISSING \
    "s_mov_b64 s[12:13], exec\ns_mov_b32 exec_lo, 0xfffffff7\ns_mov_b32 exec_hi, exec_lo\nv_mov_b32 v77, 1.0\ns_mov_b64 exec, s[12:13]\n" \
    "v_mfma_f32_32x32x2f32 v[32:47], v77, v2, 0\ns_nop 15\nv_mov_b32 v4, 0\n"
#define TURNED_READ "v_lshlrev_b32 v3, 3, v0\nds_write_b64 v3, v[2:3]\nds_read_b64_tr_b16 v[4:5], v3\n"
static const struct {
    const char *name, *text, *message;
    bool gfx950; /* only there */
} snippets[] = {
    { "nothing wrong", "v_add_u32 v3, v1, v2", NULL },
    { "a load beyond its allocation", "v_mov_b32 v3, 0xfe\nglobal_load_dword v4, v3, s[8:9]", "ends beyond its allocation" },
    { "a load before its allocation", "v_mov_b32 v3, 0\nglobal_load_dword v4, v3, s[8:9] offset:-4", "in no allocation" },
    { "a load from nowhere", "v_mov_b32 v4, 0x1000\nv_mov_b32 v5, 0\nglobal_load_dword v4, v[4:5], off", "in no allocation" },
    { "a scalar load beyond its allocation", "s_load_dwordx4 s[12:15], s[8:9], 0xf8", "ends beyond its allocation" },
    { "a store into the arguments", "v_mov_b32 v3, 0\nglobal_store_dword v3, v2, s[0:1]", "read-only" },
    { "a misaligned global atomic", "v_mov_b32 v3, 2\nglobal_atomic_add v3, v2, s[8:9]", "atomic of 4 bytes" },
    { "LDS out of bounds", "v_mov_b32 v3, 0xffe\nds_read_b32 v4, v3", "the workgroup has 4096" },
    { "LDS misaligned", "v_mov_b32 v3, 4\nds_write_b64 v3, v[2:3]", "misaligned" },
    { "uninitialised LDS used", "ds_read_b32 v3, v1\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v4, 0\nglobal_store_dword v4, v3, s[8:9]",
      "stored data is taken from an uninitialised" },
    { "an uninitialised register stored", "v_add_u32 v3, v77, v2\nv_mov_b32 v4, 0\nglobal_store_dword v4, v3, s[8:9]", "uninitialised" },
    { "the high word of a sum with an uninitialised one",
      "v_mov_b32 v76, v2\nv_mad_u64_u32 v[12:13], s[12:13], v1, v2, v[76:77]\nv_mov_b32 v4, 0\nglobal_store_dword v4, v13, s[8:9]", "uninitialised" },
    { "an uninitialised address", "global_load_dword v3, v77, s[8:9]", "uninitialised" },
    { "an uninitialised base", "global_load_dword v3, v1, s[60:61]", "uninitialised" },
    { "a branch on an uninitialised condition", "s_cmp_eq_u32 s60, 0\ns_cbranch_scc1 1f\n1:", "uninitialised SCC" },
    { "a branch on uninitialised lanes", "v_cmp_eq_u32 vcc, v77, v2\ns_cbranch_vccz 1f\n1:", "uninitialised VCC" },
    { "EXEC from an uninitialised mask", "s_and_saveexec_b64 s[12:13], s[60:61]", "EXEC is made from" },
    { "a matrix of an uninitialised register", "v_mfma_f32_32x32x2f32 v[32:47], v77, v2, 0\ns_nop 15\nv_mov_b32 v4, 0\nglobal_store_dword v4, v32, s[8:9]",
      "uninitialised" },
    { "nothing wrong: one row of a matrix uninitialised, others stored", ROW_3_MISSING "global_store_dword v4, v32, s[8:9]", NULL },
    { "a row of a matrix uninitialised, and stored", ROW_3_MISSING "global_store_dword v4, v35, s[8:9]", "stored data is taken from an uninitialised" },
    { "a load used too early", "v_mov_b32 v3, 0\nglobal_load_dword v4, v3, s[8:9]\nv_add_u32 v4, 1, v4", "s_waitcnt vmcnt" },
    { "a load overwritten", "v_mov_b32 v3, 0\nglobal_load_dword v4, v3, s[8:9]\nv_mov_b32 v4, 1", "s_waitcnt vmcnt" },
    { "a wait for one load of two",
      "v_mov_b32 v3, 0\nglobal_load_dword v4, v3, s[8:9]\nglobal_load_dword v5, v3, s[8:9]\ns_waitcnt vmcnt(1)\nv_mov_b32 v6, v4\nv_mov_b32 v6, v5",
      "v5 is read before" },
    { "a scalar load used too early", "s_load_dword s12, s[8:9], 0x0\ns_add_u32 s12, s12, 1", "s_waitcnt lgkmcnt" },
    { "a partial wait for scalar loads", "s_load_dword s12, s[8:9], 0x0\ns_load_dword s13, s[8:9], 0x4\ns_waitcnt lgkmcnt(1)\ns_add_u32 s12, s12, 1",
      "s_waitcnt lgkmcnt" },
    { "an LDS read used too early", "ds_write_b32 v1, v2\nds_read_b32 v3, v1\nv_mov_b32 v4, v3", "s_waitcnt lgkmcnt" },
    { "a swizzle used too early", "ds_swizzle_b32 v3, v2 offset:0x041f\nv_mov_b32 v4, v3", "s_waitcnt lgkmcnt" },
    { "LDS read without a barrier", "ds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\nv_xor_b32 v3, 0x100, v1\nds_read_b32 v4, v3", "LDS race" },
    { "LDS written by both waves", "v_mov_b32 v3, 0\nds_write_b32 v3, v2", "LDS race" },
    { "LDS overwritten while others read",
      "ds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\ns_barrier\nv_xor_b32 v3, 0x100, v1\nds_read_b32 v4, v3\ns_waitcnt lgkmcnt(0)\nds_write_b32 v1, v2",
      "LDS race" },
    { "a barrier before the write is done", "ds_write_b32 v1, v2\ns_barrier\nv_xor_b32 v3, 0x100, v1\nds_read_b32 v4, v3", "did not wait before the barrier" },
    { "a load to LDS read too early",
      "s_mov_b32 s12, s8\ns_mov_b32 s13, s9\ns_mov_b32 s14, 0x100\ns_mov_b32 s15, 0x20000\ns_mov_b32 m0, 0\nv_and_b32 v3, 0xff, v1\nv_cmp_gt_u32 vcc, 64, "
      "v0\ns_and_saveexec_b64 "
      "s[16:17], vcc\ns_cbranch_execz 1f\nbuffer_load_dword v3, s[12:15], 0 offen lds\nds_read_b32 v4, v1\n1:",
      "before the s_waitcnt that covers the load" },
    { "a load to LDS that others read before it is there",
      "s_mov_b32 s12, s8\ns_mov_b32 s13, s9\ns_mov_b32 s14, 0x100\ns_mov_b32 s15, 0x20000\ns_mov_b32 m0, 0\nv_and_b32 v3, 0xff, v1\nv_cmp_gt_u32 vcc, 64, "
      "v0\ns_and_saveexec_b64 "
      "s[16:17], vcc\ns_cbranch_execz 1f\nbuffer_load_dword v3, s[12:15], 0 offen lds\n1:\ns_andn2_b64 exec, s[16:17], vcc\ns_barrier\nds_read_b32 v4, v3",
      "while a load to it by wave 0 is in flight" },
    { "a wave missing at a barrier", "v_cmp_gt_u32 vcc, 64, v0\ns_cbranch_vccz 1f\ns_barrier\n1:", "waits at a barrier that wave 1 never reaches" },
    { "an endless loop", "1:\ns_branch 1b", "is not done" },
    { "an unknown instruction", "v_cvt_off_f32_i4 v3, v2", "does not know" },
    { "a register the kernel does not have", "v_mov_b32 v200, v2", "beyond the registers" },
    { "a trap", "s_trap 2", "traps" },
    { "nothing wrong: a read that turns", TURNED_READ "s_waitcnt lgkmcnt(0)\nv_mov_b32 v6, v5", NULL, true },
    { "a read that turns used too early", TURNED_READ "v_mov_b32 v6, v5", "s_waitcnt lgkmcnt", true },
    { "a read that turns with a lane missing", "s_mov_b32 exec_hi, 0xfffffff7\n" TURNED_READ "s_waitcnt lgkmcnt(0)", "wants all lanes", true },
    { "a read that turns a lane's uninitialised bytes over to others",
      "v_lshlrev_b32 v3, 3, v0\ns_mov_b32 exec_lo, 0xfffffffe\nds_write_b64 v3, v[2:3]\ns_mov_b32 exec_lo, -1\nds_read_b64_tr_b16 v[4:5], v3\n"
      "s_waitcnt lgkmcnt(0)\nv_mov_b32 v6, 0\nv_and_b32 v7, 63, v0\nv_cmp_eq_u32 vcc, 3, v7\ns_and_saveexec_b64 s[12:13], vcc\nglobal_store_dword v6, v4, "
      "s[8:9]",
      "stored data is taken from an uninitialised", true },
    { "a result that hangs on the order of waves", "v_lshrrev_b32 v3, 6, v0\nv_mov_b32 v4, 0\nglobal_store_dword v4, v3, s[8:9]", "order of its waves" },
};
enum { SNIPPETS = sizeof snippets / sizeof snippets[0] };

static void check_snippets(cdna_chip chip) {
    char *text = NULL, names[SNIPPETS][16], body[2048];
    const char *list[SNIPPETS], *name = cdna_chip_name(chip);
    size_t size;
    FILE *file = open_memstream(&text, &size);
    int count = 0;
    for (int i = 0; i < SNIPPETS; i++) {
        if (snippets[i].gfx950 && chip != CDNA_GFX950) continue;
        snprintf(names[i], sizeof names[i], "case%d", i);
        list[count++] = names[i];
        snprintf(body, sizeof body, "s_load_dwordx2 s[8:9], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\nv_mov_b32 v2, 1.0\ns_waitcnt lgkmcnt(0)\n%s",
                 snippets[i].text);
        append_kernel(file, name, names[i], body);
    }
    append_metadata(file, name, list, count);
    fclose(file);
    bench b;
    if (tap(bench_open(&b, chip, false, text), "%s: the snippets assemble and load", name)) {
        void *area = memset(cdna_memory_alloc(b.machine, 256), 0, 256);
        const cdna_options options = { .trace_wave = -1, .budget = 1000 };
        for (int i = 0; i < SNIPPETS; i++) {
            if (snippets[i].gfx950 && chip != CDNA_GFX950) continue;
            const cdna_grid grid = { { 1, 1, 1 }, { 128, 1, 1 }, 0 };
            const bool ran = cdna_launch_both(b.machine, cdna_object_kernel(b.object, names[i]), &grid, &area, sizeof area, &options, NULL, &b.failure);
            const bool good = snippets[i].message ? !ran && strstr(b.failure.message, snippets[i].message) : ran;
            if (!tap(good, "%s: %s", name, snippets[i].name)) printf("# %s\n", ran ? "it survived" : b.failure.message);
        }
    }
    cdna_close(b.machine);
    free(text);
}

/* -------------------------------------------------------------------------------------------------------------------- kernels */

static const struct {
    const char *kernel, *from, *to;
} defects[] = {
    { "vector_add", "if (i < n) /* bound */", "if (i <= n)" },
    { "vector_add", "c[i] = a[i] + b[i]", "c[i] = a[i] - b[i]" },
    { "wave_sums", "sums[group() * 4 + wave] = sum; /* slot */", "sums[group() * 4] = sum;" },
    { "wave_sums", "shifted<0x142, 10>", "shifted<0x142, 5>" },
    { "wave_sums", "shifted<0x143, 12>", "shifted<0x142, 12>" },
    { "row_sum", "barrier();          /* filled */", "" },
    { "row_sum", "barrier();                                             /* folded */", "" },
    { "row_sum", "part[item()] = sum; /* fill */", "if (item() < 200) part[item()] = sum;" },
    { "row_sum", "if (item() < half) part[item()]", "if (item() <= half) part[item()]" },
    { "transpose", "barrier(); /* tile */", "" },
    { "transpose", "row + r < rows && column + j < columns", "row + r < rows && column + j <= columns" },
    { "transpose", "column + c < columns && row + j < rows", "column + c < columns" },
    { "transpose", "tile[j][c]", "tile[c][j]" },
    { "softmax", "barrier(); /* free */", "" },
    { "softmax", "barrier(); /* parts */", "" },
    { "softmax", "barrier(); /* parts */", "if (item() < 192) barrier();" },
    { "softmax", "part[item() / 64] = mine", "part[item() / 128] = mine" },
    { "matmul", "8 * (r / 4) + 4 * (lane / 32) + r % 4; /* layout */", "16 * (lane / 32) + r;" },
    { "matmul", "inner + 4 * (lane / 32)];\n            const bf16x4 y", "inner + 4 - 4 * (lane / 32)];\n            const bf16x4 y" },
    { "matmul", "barrier(); /* written */", "" },
    { "matmul", "left[2][TILE][PITCH], right[2][TILE][PITCH]", "left[2][TILE][PITCH - 12], right[2][TILE][PITCH]" },
    { "matmul", "turn ^= 1", "turn ^= 0" },
    { "matmul", "at = 0, turn = 0; at < k;", "at = 0, turn = 0; at <= k;" },
    { "matmul", "from_a + at + STEP", "from_a + at" },
    { "scatter", "index[item()] & 15", "index[item()] & 31 | 16" },
    { "histogram", "if (item() < 16) count[item()] = 0; /* zero */", "" },
    { "histogram", "barrier();                          /* zeroed */", "" },
    { "histogram", "barrier(); /* counted */", "" },
};

static char *replaced(const char *source, const char *from, const char *to) {
    const char *at = strstr(source, from);
    char *text = at ? malloc(strlen(source) + strlen(to) + 1) : NULL;
    if (text) sprintf(text, "%.*s%s%s", (int)(at - source), source, to, at + strlen(from));
    return text;
}

static kernel_check *check_of(const char *kernel) {
    const kernel_case *k = kernel_cases;
    while (strcmp(k->name, kernel) != 0) k++;
    return k->check;
}

static void check_defects(cdna_chip chip, const char *source) {
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++) {
        char *mutant = replaced(source, defects[i].from, defects[i].to);
        bench b = { 0 };
        const bool loads = mutant && bench_open(&b, chip, true, mutant), caught = loads && !check_of(defects[i].kernel)(&b);
        tap(caught, "%s: %s: \"%.*s\" as \"%.*s\"", cdna_chip_name(chip), defects[i].kernel, (int)strcspn(defects[i].from, "\n"), defects[i].from,
            (int)strcspn(defects[i].to, "\n"), defects[i].to);
        printf("#   %s\n", !mutant ? "its text is not in the source" : !loads ? "it does not load" : caught ? b.failure.message : "it survived");
        cdna_close(b.machine);
        free(mutant);
    }
}

/* ---------------------------------------------------------------------------------------------------------------------- waits */

/* Where in the file the instruction at an address is. */
static unsigned char *in_file(unsigned char *bytes, uint32_t address) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
    const Elf64_Phdr *segment = (const Elf64_Phdr *)(bytes + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (segment[i].p_type == PT_LOAD && address >= segment[i].p_vaddr && address < segment[i].p_vaddr + segment[i].p_filesz)
            return bytes + segment[i].p_offset + (address - segment[i].p_vaddr);
    return NULL;
}

static uint32_t end_of(const cdna_object *object, const cdna_kernel *kernel) {
    int kernels;
    const cdna_kernel *all = cdna_object_kernels(object, &kernels);
    uint32_t end = UINT32_MAX;
    for (int i = 0; i < kernels; i++)
        if (all[i].entry > kernel->entry && all[i].entry < end) end = all[i].entry;
    return end;
}

/* Each wait of a kernel that ever waits becomes an s_nop, in turn. (Not of row_sum: once one wave is left, its waits before barriers serve nobody.) */
static void check_waits(cdna_chip chip, const char *source, const char *name) {
    size_t size = 0;
    unsigned char *bytes = build_object(cdna_chip_name(chip), true, source, &size);
    bench whole = { .machine = cdna_open(chip) };
    whole.object = cdna_object_load(whole.machine, bytes, size, &whole.failure);
    const cdna_kernel *kernel = cdna_object_kernel(whole.object, name);
    const uint32_t end = end_of(whole.object, kernel);
    whole.profile.waited = calloc((size_t)cdna_object_instructions(whole.object), sizeof(uint64_t));
    tap(check_of(name)(&whole), "%s: %s is right", cdna_chip_name(chip), name);
    for (int i = 0; i < cdna_object_instructions(whole.object); i++) {
        uint32_t address;
        const char *text = cdna_object_instruction(whole.object, i, &address);
        if (address < kernel->entry || address >= end || strncmp(text, "s_waitcnt", 9) != 0 || whole.profile.waited[i] == 0) continue;
        unsigned char *at = in_file(bytes, address), saved[4];
        memcpy(saved, at, 4);
        memcpy(at, &(uint32_t){ 0xbf800000 }, 4);
        bench b = { .machine = cdna_open(chip) };
        b.object = cdna_object_load(b.machine, bytes, size, &b.failure);
        const bool caught = b.object && !check_of(name)(&b);
        tap(caught, "%s: %s without %s at 0x%x", cdna_chip_name(chip), name, text, address);
        printf("#   %s\n", caught ? b.failure.message : "it survived");
        memcpy(at, saved, 4);
        cdna_close(b.machine);
    }
    free(whole.profile.waited);
    cdna_close(whole.machine);
    free(bytes);
}

int main(void) {
    char *source = kernels_source();
    for (int i = 0; i < CDNA_CHIPS; i++) {
        const cdna_chip chip = (cdna_chip)i;
        if (!chip_builds(cdna_chip_name(chip))) {
            tap(true, "%s # SKIP this clang does not know it", cdna_chip_name(chip));
            continue;
        }
        check_snippets(chip);
        check_defects(chip, source);
        check_waits(chip, source, "vector_add");
        check_waits(chip, source, "wave_sums");
        check_waits(chip, source, "transpose");
        check_waits(chip, source, "softmax");
        check_waits(chip, source, "matmul");
    }
    free(source);
    return tap_end();
}
