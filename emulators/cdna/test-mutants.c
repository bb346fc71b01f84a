/* SPDX-License-Identifier: Apache-2.0 */
/* What the interpreter must catch: snippets that do one thing wrong, kernels of kernels.hip with a small defect, and
 * the same kernels without one of their waits. A mutant that survives fails the test. */
#include <elf.h>

#include "kernels.h"

/* --------------------------------------------------------------------------------------------------------- snippets */

/* Run by two waves of each of two workgroups, one after the other; s[8:9] points to 256 bytes of zeros, v0 is the
 * work-item, v1 its dword's offset in LDS, v2 a defined value and v9 zero. */
#define ROW_3_MISSING \
    "s_mov_b64 s[12:13], exec\ns_mov_b32 exec_lo, 0xfffffff7\ns_mov_b32 exec_hi, exec_lo\nv_mov_b32 v77, " \
    "1.0\ns_mov_b64 exec, s[12:13]\n" \
    "v_mfma_f32_32x32x2f32 v[32:47], v77, v2, 0\ns_nop 15\nv_mov_b32 v4, 0\n"
#define SPILL(word) "scratch_store_dword v9, " word ", off\n"
#define RELOAD(suffix) "scratch_load_" suffix "\ns_waitcnt vmcnt(0) lgkmcnt(0)\n"
#define USE(word) "global_store_dword v9, " word ", s[8:9]"
#define FOUR_WORDS "v_mov_b32 v78, v2\nscratch_store_dwordx4 v9, v[76:79], off\n" RELOAD("dwordx4 v[80:83], v9, off")
#define THIRD_BYTE_MISSING SPILL("v2") "scratch_store_byte v9, v77, off offset:2\n"
#define FLAT "s_mov_b64 s[12:13], src_private_base\nv_mov_b32 v6, 0\nv_mov_b32 v7, s13\n"
#define HALF_FLAT \
    FLAT "v_mov_b32 v10, s8\nv_mov_b32 v11, s9\nv_and_b32 v8, 63, v0\nv_cmp_gt_u32 vcc, 32, v8\nv_cndmask_b32 v6, " \
         "v10, v6, vcc\nv_cndmask_b32 v7, v11, v7, " \
         "vcc\n" \
         "s_mov_b64 s[14:15], exec\n"
#define BUFFER "s_mov_b64 s[12:13], 0\ns_mov_b32 s14, -1\ns_mov_b32 s15, 0x800000\n"
#define TO_LDS \
    BUFFER "v_cmp_gt_u32 vcc, 64, v0\ns_and_saveexec_b64 s[16:17], vcc\ns_cbranch_execz 1f\ns_mov_b32 m0, " \
           "0\nbuffer_load_dword v9, s[12:15], 0 offen lds\n" \
           "s_waitcnt vmcnt(0)\nds_read_b32 v4, v1\ns_waitcnt lgkmcnt(0)\n" USE("v4") "\n1:"
#define SCALAR_SPILL(word) \
    "v_writelane_b32 v76, " word ", 3\n" SPILL("v76") \
        RELOAD("dword v76, v9, off") "v_readlane_b32 s12, v76, 3\ns_cmp_eq_u32 s12, 0\ns_cbranch_scc1 1f\n1:"
#define PARTLY_SPILLED "s_and_b32 s12, s60, 15\nv_writelane_b32 v76, s12, 3\nv_readlane_b32 s13, v76, 3\n"
#define ON_S13 "s_cmp_eq_u32 s13, 0\ns_cbranch_scc1 1f\n1:"
#define UNDEFINED "stored data is taken from an uninitialised register; pc 0x"
#define TURNED_READ "v_lshlrev_b32 v3, 3, v0\nds_write_b64 v3, v[2:3]\nds_read_b64_tr_b16 v[4:5], v3\n"
static const struct {
    const char *name, *text, *message;
    bool gfx950; /* only there */
} snippets[] = {
    { "nothing wrong", "v_add_u32 v3, v1, v2", NULL },
    { "a load beyond its allocation", "v_mov_b32 v3, 0xfe\nglobal_load_dword v4, v3, s[8:9]",
      "ends beyond its allocation" },
    { "a load before its allocation", "v_mov_b32 v3, 0\nglobal_load_dword v4, v3, s[8:9] offset:-4",
      "in no allocation" },
    { "a load from nowhere", "v_mov_b32 v4, 0x1000\nv_mov_b32 v5, 0\nglobal_load_dword v4, v[4:5], off",
      "in no allocation" },
    { "a scalar load beyond its allocation", "s_load_dwordx4 s[12:15], s[8:9], 0xf8", "ends beyond its allocation" },
    { "a store into the arguments", "v_mov_b32 v3, 0\nglobal_store_dword v3, v2, s[0:1]", "read-only" },
    { "a misaligned global atomic", "v_mov_b32 v3, 2\nglobal_atomic_add v3, v2, s[8:9]", "atomic of 4 bytes" },
    { "LDS out of bounds", "v_mov_b32 v3, 0xffe\nds_read_b32 v4, v3", "the workgroup has 4096" },
    { "LDS misaligned", "v_mov_b32 v3, 4\nds_write_b64 v3, v[2:3]", "misaligned" },
    { "uninitialised LDS used",
      "ds_read_b32 v3, v1\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v4, 0\nglobal_store_dword v4, v3, s[8:9]",
      "stored data is taken from an uninitialised" },
    { "an uninitialised register stored", "v_add_u32 v3, v77, v2\nv_mov_b32 v4, 0\nglobal_store_dword v4, v3, s[8:9]",
      "uninitialised" },
    { "the high word of a sum with an uninitialised one",
      "v_mov_b32 v76, v2\nv_mad_u64_u32 v[12:13], s[12:13], v1, v2, v[76:77]\nv_mov_b32 v4, 0\nglobal_store_dword v4, "
      "v13, s[8:9]",
      "uninitialised" },
    { "an uninitialised address", "global_load_dword v3, v77, s[8:9]", "uninitialised" },
    { "an uninitialised base", "global_load_dword v3, v1, s[60:61]", "uninitialised" },
    { "a branch on an uninitialised condition", "s_cmp_eq_u32 s60, 0\ns_cbranch_scc1 1f\n1:", "uninitialised SCC" },
    { "a branch on uninitialised lanes", "v_cmp_eq_u32 vcc, v77, v2\ns_cbranch_vccz 1f\n1:", "uninitialised VCC" },
    { "a spilled scalar's bits that are defined", PARTLY_SPILLED "s_and_b32 s13, s13, 0xf0\n" ON_S13, NULL },
    { "those that are not", PARTLY_SPILLED "s_and_b32 s13, s13, 1\n" ON_S13, "uninitialised SCC" },
    { "and those of a lane written again",
      PARTLY_SPILLED "v_mov_b32 v76, v77\nv_readlane_b32 s13, v76, 3\n"
                     "s_and_b32 s13, s13, 0xf0\n" ON_S13,
      "uninitialised SCC" },
    { "EXEC from an uninitialised mask", "s_and_saveexec_b64 s[12:13], s[60:61]", "EXEC is made from" },
    { "a matrix of an uninitialised register",
      "v_mfma_f32_32x32x2f32 v[32:47], v77, v2, 0\ns_nop 15\nv_mov_b32 v4, 0\nglobal_store_dword v4, v32, s[8:9]",
      "uninitialised" },
    { "nothing wrong: one row of a matrix uninitialised, others stored",
      ROW_3_MISSING "global_store_dword v4, v32, s[8:9]", NULL },
    { "a row of a matrix uninitialised, and stored", ROW_3_MISSING "global_store_dword v4, v35, s[8:9]",
      "stored data is taken from an uninitialised" },
    { "a load used too early", "v_mov_b32 v3, 0\nglobal_load_dword v4, v3, s[8:9]\nv_add_u32 v4, 1, v4",
      "s_waitcnt vmcnt" },
    { "a load overwritten", "v_mov_b32 v3, 0\nglobal_load_dword v4, v3, s[8:9]\nv_mov_b32 v4, 1", "s_waitcnt vmcnt" },
    { "a wait for one load of two",
      "v_mov_b32 v3, 0\nglobal_load_dword v4, v3, s[8:9]\nglobal_load_dword v5, v3, s[8:9]\ns_waitcnt "
      "vmcnt(1)\nv_mov_b32 v6, v4\nv_mov_b32 v6, v5",
      "v5 is read before" },
    { "a scalar load used too early", "s_load_dword s12, s[8:9], 0x0\ns_add_u32 s12, s12, 1", "s_waitcnt lgkmcnt" },
    { "a partial wait for scalar loads",
      "s_load_dword s12, s[8:9], 0x0\ns_load_dword s13, s[8:9], 0x4\ns_waitcnt lgkmcnt(1)\ns_add_u32 s12, s12, 1",
      "s_waitcnt lgkmcnt" },
    { "an LDS read used too early", "ds_write_b32 v1, v2\nds_read_b32 v3, v1\nv_mov_b32 v4, v3", "s_waitcnt lgkmcnt" },
    { "a swizzle used too early", "ds_swizzle_b32 v3, v2 offset:0x041f\nv_mov_b32 v4, v3", "s_waitcnt lgkmcnt" },
    { "LDS read without a barrier",
      "ds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\nv_xor_b32 v3, 0x100, v1\nds_read_b32 v4, v3", "LDS race" },
    { "LDS written by both waves", "v_mov_b32 v3, 0\nds_write_b32 v3, v2", "LDS race" },
    { "LDS overwritten while others read",
      "ds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\ns_barrier\nv_xor_b32 v3, 0x100, v1\nds_read_b32 v4, v3\ns_waitcnt "
      "lgkmcnt(0)\nds_write_b32 v1, v2",
      "LDS race" },
    { "a barrier before the write is done",
      "ds_write_b32 v1, v2\ns_barrier\nv_xor_b32 v3, 0x100, v1\nds_read_b32 v4, v3",
      "did not wait before the barrier" },
    { "a load to LDS read too early",
      "s_mov_b32 s12, s8\ns_mov_b32 s13, s9\ns_mov_b32 s14, 0x100\ns_mov_b32 s15, 0x20000\ns_mov_b32 m0, 0\nv_and_b32 "
      "v3, 0xff, v1\nv_cmp_gt_u32 vcc, 64, "
      "v0\ns_and_saveexec_b64 "
      "s[16:17], vcc\ns_cbranch_execz 1f\nbuffer_load_dword v3, s[12:15], 0 offen lds\nds_read_b32 v4, v1\n1:",
      "before the s_waitcnt that covers the load" },
    { "a load to LDS that others read before it is there",
      "s_mov_b32 s12, s8\ns_mov_b32 s13, s9\ns_mov_b32 s14, 0x100\ns_mov_b32 s15, 0x20000\ns_mov_b32 m0, 0\nv_and_b32 "
      "v3, 0xff, v1\nv_cmp_gt_u32 vcc, 64, "
      "v0\ns_and_saveexec_b64 "
      "s[16:17], vcc\ns_cbranch_execz 1f\nbuffer_load_dword v3, s[12:15], 0 offen lds\n1:\ns_andn2_b64 exec, s[16:17], "
      "vcc\ns_barrier\nds_read_b32 v4, v3",
      "while a load to it by wave 0 is in flight" },
    { "a wave missing at a barrier",
      "v_cmp_gt_u32 vcc, 64, v0\ns_cbranch_vccz 1f\ns_barrier\n1:", "waits at a barrier that wave 1 never reaches" },
    { "an endless loop", "1:\ns_branch 1b", "is not done" },
    { "an unknown instruction", "v_cvt_off_f32_i4 v3, v2", "does not know" },
    { "a register the kernel does not have", "v_mov_b32 v200, v2", "beyond the registers" },
    { "a trap", "s_trap 2", "traps" },
    { "nothing wrong: a read that turns", TURNED_READ "s_waitcnt lgkmcnt(0)\nv_mov_b32 v6, v5", NULL, true },
    { "a read that turns used too early", TURNED_READ "v_mov_b32 v6, v5", "s_waitcnt lgkmcnt", true },
    { "a read that turns with a lane missing", "s_mov_b32 exec_hi, 0xfffffff7\n" TURNED_READ "s_waitcnt lgkmcnt(0)",
      "wants all lanes", true },
    { "a read that turns a lane's uninitialised bytes over to others",
      "v_lshlrev_b32 v3, 3, v0\ns_mov_b32 exec_lo, 0xfffffffe\nds_write_b64 v3, v[2:3]\ns_mov_b32 exec_lo, "
      "-1\nds_read_b64_tr_b16 v[4:5], v3\n"
      "s_waitcnt lgkmcnt(0)\nv_mov_b32 v6, 0\nv_and_b32 v7, 63, v0\nv_cmp_eq_u32 vcc, 3, v7\ns_and_saveexec_b64 "
      "s[12:13], vcc\nglobal_store_dword v6, v4, "
      "s[8:9]",
      "stored data is taken from an uninitialised", true },
    { "nothing wrong: an uninitialised register goes to scratch and back",
      SPILL("v77") RELOAD("dword v4, v9, off") "v_add_u32 v4, v4, v2", NULL },
    { "nothing wrong: a register back from scratch is used", SPILL("v2") RELOAD("dword v4, v9, off") USE("v4"), NULL },
    { "an uninitialised register used once it is back from scratch",
      SPILL("v77") RELOAD("dword v4, v9, off") "v_add_u32 v4, v4, v2\n" USE("v4"), UNDEFINED },
    { "an uninitialised accumulation register used once it is back", SPILL("a5") RELOAD("dword a6, v9, off") USE("a6"),
      UNDEFINED },
    { "scratch that nothing wrote", RELOAD("dword v4, v9, off offset:8") USE("v4"), UNDEFINED },
    { "scratch that is written over with something uninitialised",
      SPILL("v2") SPILL("v77") RELOAD("dword v4, v9, off") USE("v4"), UNDEFINED },
    { "scratch that another workgroup wrote",
      "v_lshrrev_b32 v3, 6, v0\nv_lshlrev_b32 v3, 2, v3\nglobal_load_dword v4, v3, s[8:9]\ns_waitcnt "
      "vmcnt(0)\nv_readfirstlane_b32 s12, v4\ns_cmp_eq_u32 s12, "
      "0\n"
      "s_cbranch_scc0 1f\nglobal_store_dword v3, v2, s[8:9]\n" SPILL("v2") "s_endpgm\n1:\n" RELOAD("dword v4, v9, off")
          USE("v4"),
      UNDEFINED },
    { "a lane of scratch that nothing wrote",
      "s_mov_b32 exec_lo, 0xfffffff7\n" SPILL("v2") "s_mov_b32 exec_lo, -1\n" RELOAD("dword v4, v9, off") USE("v4"),
      "lane 3, " },
    { "nothing wrong: one word of four", FOUR_WORDS USE("v82"), NULL },
    { "a word of four that was uninitialised", FOUR_WORDS USE("v83"), UNDEFINED },
    { "nothing wrong: a word made of its parts",
      "scratch_store_byte v9, v2, off\nscratch_store_byte_d16_hi v9, v2, off offset:1\nscratch_store_short_d16_hi v9, "
      "v2, off offset:2\n" RELOAD("dword v4, v9, off") USE("v4"),
      NULL },
    { "a word without one of its parts",
      "scratch_store_byte v9, v2, off\nscratch_store_short v9, v2, off offset:2\n" RELOAD("dword v4, v9, off")
          USE("v4"),
      UNDEFINED },
    { "nothing wrong: bytes beside an uninitialised one",
      THIRD_BYTE_MISSING RELOAD("ushort v4, v9, off")
          RELOAD("sbyte v5, v9, off offset:3") "v_or_b32 v4, v4, v5\n" USE("v4"),
      NULL },
    { "an uninitialised byte of a word", THIRD_BYTE_MISSING RELOAD("dword v4, v9, off") USE("v4"), UNDEFINED },
    { "an uninitialised byte", THIRD_BYTE_MISSING RELOAD("ubyte v4, v9, off offset:2") USE("v4"), UNDEFINED },
    { "nothing wrong: halves beside an uninitialised one",
      THIRD_BYTE_MISSING RELOAD("short_d16 v4, v9, off") RELOAD("short_d16_hi v4, v9, off") USE("v4"), NULL },
    { "an uninitialised upper half",
      THIRD_BYTE_MISSING "v_mov_b32 v4, v2\n" RELOAD("short_d16_hi v4, v9, off offset:2") USE("v4"), UNDEFINED },
    { "an uninitialised lower half",
      THIRD_BYTE_MISSING "v_mov_b32 v4, v2\n" RELOAD("sbyte_d16 v4, v9, off offset:2") USE("v4"), UNDEFINED },
    { "nothing wrong: to scratch and back by flat addresses",
      FLAT "flat_store_dword v[6:7], v77\nflat_load_dword v4, v[6:7]\ns_waitcnt vmcnt(0) lgkmcnt(0)\n", NULL },
    { "scratch that nothing wrote, by flat addresses",
      FLAT "flat_load_dword v4, v[6:7]\ns_waitcnt vmcnt(0) lgkmcnt(0)\n" USE("v4"), UNDEFINED },
    { "nothing wrong: uninitialised where a flat store is one to scratch",
      HALF_FLAT "s_not_b64 exec, vcc\nv_mov_b32 v77, v2\ns_mov_b64 exec, s[14:15]\nflat_store_dword v[6:7], v77",
      NULL },
    { "uninitialised where a flat store is not one to scratch",
      HALF_FLAT "s_mov_b64 exec, vcc\nv_mov_b32 v77, v2\ns_mov_b64 exec, s[14:15]\nflat_store_dword v[6:7], v77",
      "lane 32, " },
    { "nothing wrong: to scratch and back by a descriptor",
      BUFFER "buffer_store_dword v77, off, s[12:15], 0\nbuffer_load_dword v4, off, s[12:15], 0\ns_waitcnt vmcnt(0)",
      NULL },
    { "an uninitialised register back by a descriptor",
      BUFFER SPILL("v77") "buffer_load_dword v4, off, s[12:15], 0\ns_waitcnt vmcnt(0)\n" USE("v4"), UNDEFINED },
    { "nothing wrong: from scratch straight to LDS", SPILL("v2") TO_LDS, NULL },
    { "uninitialised from scratch straight to LDS", SPILL("v77") TO_LDS,
      "stored data is taken from an uninitialised register" },
    { "nothing wrong: a scalar register in a lane in scratch", SCALAR_SPILL("s8"), NULL },
    { "an uninitialised scalar register in a lane in scratch", SCALAR_SPILL("s60"), "uninitialised SCC; pc 0x" },
    { "an atomic on uninitialised scratch", FLAT "flat_atomic_add v[6:7], v2",
      "an atomic on scratch at 0, which is uninitialised" },
    { "scratch out of bounds", RELOAD("dword v4, v9, off offset:64"), "scratch at 64, of 64 bytes" },
    { "a result that hangs on the order of waves",
      "v_lshrrev_b32 v3, 6, v0\nv_mov_b32 v4, 0\nglobal_store_dword v4, v3, s[8:9]", "order of its waves" },
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
        snprintf(body, sizeof body,
                 "s_load_dwordx2 s[8:9], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\nv_mov_b32 v2, 1.0\nv_mov_b32 v9, "
                 "0\ns_waitcnt lgkmcnt(0)\n%s",
                 snippets[i].text);
        append_kernel(file, name, names[i], body);
    }
    append_metadata(file, name, list, count);
    fclose(file);
    bench b;
    if (tap(bench_open(&b, chip, false, text), "%s: the snippets assemble and load", name)) {
        void *area = cdna_memory_alloc(b.machine, 256);
        const cdna_options options = { .trace_wave = -1, .budget = 1000, .threads = 1 };
        for (int i = 0; i < SNIPPETS; i++) {
            if (snippets[i].gfx950 && chip != CDNA_GFX950) continue;
            const cdna_grid grid = { { 2, 1, 1 }, { 128, 1, 1 }, 0 };
            memset(area, 0, 256);
            const bool ran = cdna_launch_both(b.machine, cdna_object_kernel(b.object, names[i]), &grid, &area,
                                              sizeof area, &options, NULL, &b.failure);
            const bool good = snippets[i].message ? !ran && strstr(b.failure.message, snippets[i].message) : ran;
            if (!tap(good, "%s: %s", name, snippets[i].name)) printf("# %s\n", ran ? "it survived" : b.failure.message);
        }
    }
    cdna_close(b.machine);
    free(text);
}

/* ------------------------------------------------------------------------------------------------------------ peers */

/* Accesses of device 0 to memory that peers reach while launches run: on device 0, or on 1, which it was let reach
 * unless something else is said. The last modifiers are what the chip needs of the system's scope. */
enum { SCOPE_NONE, SCOPE_AGENT, SCOPE_SYSTEM };
#define LOAD "global_load_dword v4, v9, s[8:9]"
#define LOAD_2 "global_load_dwordx2 v[4:5], v9, s[8:9]"
#define STORE "global_store_dword v9, v2, s[8:9]"
#define STORE_2 "global_store_dwordx2 v9, v[2:3], s[8:9]"
#define NO_SCOPE "not of the system's scope"
static const struct {
    const char *name, *text, *message;
    int scope, device; /* -1: the host */
    bool stores;
    cdna_use use;
    bool unreached;
} accesses[] = {
    { "nothing wrong: a peer's memory loaded", LOAD_2, NULL, SCOPE_SYSTEM, 1, false, CDNA_FOR_PEERS },
    { "nothing wrong: a peer's memory stored", STORE_2, NULL, SCOPE_SYSTEM, 1, true, CDNA_FOR_PEERS },
    { "nothing wrong: own memory that peers store", LOAD, NULL, SCOPE_SYSTEM, 0, false, CDNA_FOR_PEERS },
    { "nothing wrong: memory of the host", LOAD, NULL, SCOPE_NONE, -1, false, CDNA_INCOHERENT },
    { "a plain load of a peer's memory", LOAD_2, NO_SCOPE, SCOPE_NONE, 1, false, CDNA_FOR_PEERS },
    { "a plain load of own memory that peers store", "flat_load_dword v4, v[10:11]", NO_SCOPE, SCOPE_NONE, 0, false,
      CDNA_FOR_PEERS },
    { "a scalar load of a peer's memory", "s_load_dword s12, s[8:9], 0x0", NO_SCOPE, SCOPE_NONE, 1, false,
      CDNA_FOR_PEERS },
    { "a load of the device's scope", LOAD, NO_SCOPE, SCOPE_AGENT, 1, false, CDNA_FOR_PEERS },
    { "a plain store to a peer's memory", STORE, NO_SCOPE, SCOPE_NONE, 1, true, CDNA_FOR_PEERS },
    { "a store of the device's scope", STORE, NO_SCOPE, SCOPE_AGENT, 1, true, CDNA_FOR_PEERS },
    { "16 bytes from a peer at once", "global_load_dwordx4 v[4:7], v9, s[8:9]", "need not arrive at once", SCOPE_SYSTEM,
      1, false, CDNA_FOR_PEERS },
    { "16 bytes to a peer at once", "global_store_dwordx4 v9, v[2:5], s[8:9]", "need not arrive at once", SCOPE_SYSTEM,
      1, true, CDNA_FOR_PEERS },
    { "8 bytes to an address of 4", STORE_2 " offset:4", "need not arrive at once", SCOPE_SYSTEM, 1, true,
      CDNA_FOR_PEERS },
    { "a peer's memory that its caches keep", LOAD, "that its caches keep", SCOPE_SYSTEM, 1, false, CDNA_ANY_USE },
    { "a peer that was not let reach", LOAD, "was not let reach", SCOPE_SYSTEM, 1, false, CDNA_FOR_PEERS, true },
    { "memory of the host that is not coherent", LOAD, "is not coherent", SCOPE_SYSTEM, -1, false, CDNA_INCOHERENT },
};
enum { ACCESSES = sizeof accesses / sizeof accesses[0] };

/* On gfx90a stores are of any scope, and loads of the system's or the device's alike. */
static bool is_of_chip(cdna_chip chip, int i) {
    return chip != CDNA_GFX90A || (accesses[i].scope != SCOPE_AGENT && !(accesses[i].stores && accesses[i].scope == 0));
}
static const char *modifiers_of(cdna_chip chip, int i) {
    if (accesses[i].scope == SCOPE_NONE) return "";
    if (chip == CDNA_GFX90A) return accesses[i].stores ? "" : " glc";
    return accesses[i].scope == SCOPE_AGENT ? " sc1" : " sc0 sc1";
}

static void check_accesses(cdna_chip chip) {
    char *text = NULL, names[ACCESSES][16], body[1024];
    const char *list[ACCESSES], *name = cdna_chip_name(chip);
    size_t size;
    FILE *file = open_memstream(&text, &size);
    for (int i = 0; i < ACCESSES; i++) {
        snprintf(names[i], sizeof names[i], "access%d", i);
        list[i] = names[i];
        snprintf(
            body, sizeof body,
            "s_load_dwordx2 s[8:9], s[0:1], 0x0\nv_mov_b32 v2, 1.0\nv_mov_b32 v3, v2\nv_mov_b32 v4, v2\nv_mov_b32 v5, "
            "v2\nv_mov_b32 v9, 0\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v10, s8\nv_mov_b32 v11, s9\n%s%s",
            accesses[i].text, modifiers_of(chip, i));
        append_kernel(file, name, names[i], body);
    }
    append_metadata(file, name, list, ACCESSES);
    fclose(file);
    bench b;
    if (tap(bench_open(&b, chip, false, text), "%s: the accesses to peers assemble and load", name)) {
        void *area = cdna_memory_alloc(b.machine, 256);
        memset(area, 0, 256);
        for (int reached = 0; reached < 2; reached++) {
            if (reached) cdna_memory_reach(b.machine, 0, 1);
            for (int i = 0; i < ACCESSES; i++) {
                if (accesses[i].unreached == reached || !is_of_chip(chip, i)) continue;
                cdna_memory_place(b.machine, area, accesses[i].device, accesses[i].use);
                const bool ran = bench_run(&b, names[i], 1, 64, &area, sizeof area);
                const bool good = accesses[i].message ? !ran && strstr(b.failure.message, accesses[i].message) : ran;
                if (!tap(good, "%s: %s", name, accesses[i].name))
                    printf("# %s\n", ran ? "it survived" : b.failure.message);
            }
        }
    }
    cdna_close(b.machine);
    free(text);
}

/* ---------------------------------------------------------------------------------------------------------- kernels */

static const struct {
    const char *kernel, *from, *to;
} defects[] = {
    { "vector_add", "if (i < n) /* bound */", "if (i <= n)" },
    { "vector_add", "c[i] = a[i] + b[i]", "c[i] = a[i] - b[i]" },
    { "wave_sums", "sums[group() * 4 + wave] = sum; /* slot */", "sums[group() * 4] = sum;" },
    { "wave_sums", "shifted<0x142, 10>", "shifted<0x142, 5>" },
    { "wave_sums", "shifted<0x143, 12>", "shifted<0x142, 12>" },
    { "row_sum", "barrier();          /* filled */", "" },
    { "row_sum", "barrier();                                              /* folded */", "" },
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
    { "matmul", "inner + 4 * (lane / 32)];\n            const bf16x4 y",
      "inner + 4 - 4 * (lane / 32)];\n            const bf16x4 y" },
    { "matmul", "barrier();           /* written */", "" },
    { "matmul", "left[2][TILE][PITCH], right[2][TILE][PITCH]", "left[2][TILE][PITCH - 12], right[2][TILE][PITCH]" },
    { "matmul", "turn ^= 1", "turn ^= 0" },
    { "matmul", "at = 0, turn = 0; at < k;", "at = 0, turn = 0; at <= k;" },
    { "matmul", "from_a + at + STEP", "from_a + at" },
    { "scatter", "index[item()] & 15", "index[item()] & 31 | 16" },
    { "scatter", "int i = 0; i < 16; i++) table[i]", "int i = 1; i < 16; i++) table[i]" },
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
        const bool loads = mutant && bench_open(&b, chip, true, mutant),
                   caught = loads && !check_of(defects[i].kernel)(&b);
        tap(caught, "%s: %s: \"%.*s\" as \"%.*s\"", cdna_chip_name(chip), defects[i].kernel,
            (int)strcspn(defects[i].from, "\n"), defects[i].from, (int)strcspn(defects[i].to, "\n"), defects[i].to);
        printf("#   %s\n", !mutant  ? "its text is not in the source"
                           : !loads ? "it does not load"
                           : caught ? b.failure.message
                                    : "it survived");
        cdna_close(b.machine);
        free(mutant);
    }
}

/* ------------------------------------------------------------------------------------------------------------ waits */

/* Where in the file the instruction at an address is. */
static unsigned char *in_file(unsigned char *bytes, uint32_t address) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
    const Elf64_Phdr *segment = (const Elf64_Phdr *)(bytes + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (segment[i].p_type == PT_LOAD && address >= segment[i].p_vaddr &&
            address < segment[i].p_vaddr + segment[i].p_filesz)
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

/* Each wait of a kernel that ever waits becomes an s_nop, in turn. (Not of row_sum: once one wave is left, its waits
 * before barriers serve nobody.) */
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
        if (address < kernel->entry || address >= end || strncmp(text, "s_waitcnt", 9) != 0 ||
            whole.profile.waited[i] == 0)
            continue;
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
        check_accesses(chip);
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
