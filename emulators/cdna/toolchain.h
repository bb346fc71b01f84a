/* SPDX-License-Identifier: Apache-2.0 */
/* Builds code objects for the tests with the clang that Meson found, and launches their kernels. */
#ifndef CDNA_TOOLCHAIN_H
#define CDNA_TOOLCHAIN_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cdna.h"
#include "tests/tap.h"

/* A code object of `source`, in HIP without headers or in assembly; NULL if clang does not take it. To be freed. */
static inline unsigned char *build_object(const char *chip, bool hip, const char *source, size_t *size_out) {
    char directory[] = "/tmp/trine-cdna-test-XXXXXX", in[64], out[64], command[1024];
    if (mkdtemp(directory) == NULL) return NULL;
    snprintf(in, sizeof in, "%s/k.%s", directory, hip ? "hip" : "s");
    snprintf(out, sizeof out, "%s/k.hsaco", directory);
    FILE *file = fopen(in, "w");
    unsigned char *bytes = NULL;
    if (file != NULL && fputs(source, file) >= 0 && fclose(file) == 0) {
        if (hip)
            snprintf(command, sizeof command,
                     "'%s' -x hip -nogpuinc -nogpulib --cuda-device-only --no-gpu-bundle-output --offload-arch=%s -O3 "
                     "-mcode-object-version=5 '%s' -o '%s' "
                     "2>'%s/log'",
                     CDNA_CLANG, chip, in, out, directory);
        else
            snprintf(
                command, sizeof command,
                "'%s' -x assembler --target=amdgcn-amd-amdhsa -mcpu=%s -mcode-object-version=5 '%s' -o '%s' 2>'%s/log'",
                CDNA_CLANG, chip, in, out, directory);
        const bool built = system(command) == 0;
        file = built ? fopen(out, "rb") : NULL;
        if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
            *size_out = (size_t)ftell(file);
            rewind(file);
            bytes = malloc(*size_out);
            if (bytes != NULL && fread(bytes, 1, *size_out, file) != *size_out) {
                free(bytes);
                bytes = NULL;
            }
            fclose(file);
        }
        snprintf(command, sizeof command, "%ssed 's/^/# /' %s/log | head -n 20; rm -r %s", built ? ": " : "", directory,
                 directory);
        if (system(command) != 0) fprintf(stderr, "cannot remove %s\n", directory);
    }
    return bytes;
}

/* Does clang know the chip? */
static inline bool chip_builds(const char *chip) {
    char command[512];
    snprintf(command, sizeof command,
             "echo s_endpgm | '%s' -x assembler --target=amdgcn-amd-amdhsa -mcpu=%s -c -o /dev/null - >/dev/null 2>&1",
             CDNA_CLANG, chip);
    return system(command) == 0;
}

/* The text of an assembled kernel, with what its descriptor and its metadata must say. It gets arguments at s[0:1], the
 * number of its workgroup in s2, and work-items in v0. */
static inline void append_kernel(FILE *file, const char *chip, const char *name, const char *body) {
    (void)chip;
    fprintf(file,
            ".text\n.globl %s\n.p2align 8\n.type %s,@function\n%s:\n%s\ns_endpgm\n.size %s, .-%s\n"
            ".section .rodata\n.p2align 6\n.amdhsa_kernel %s\n.amdhsa_user_sgpr_kernarg_segment_ptr "
            "1\n.amdhsa_user_sgpr_count "
            "2\n.amdhsa_system_sgpr_workgroup_id_x 1\n"
            ".amdhsa_next_free_vgpr 256\n.amdhsa_accum_offset 128\n.amdhsa_next_free_sgpr "
            "100\n.amdhsa_group_segment_fixed_size "
            "4096\n.amdhsa_private_segment_fixed_size 64\n.amdhsa_float_denorm_mode_32 3\n.end_amdhsa_kernel\n",
            name, name, name, body, name, name, name);
}

static inline void append_metadata(FILE *file, const char *chip, const char *const *names, int count) {
    fprintf(file,
            ".amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.target: amdgcn-amd-amdhsa--%s\namdhsa.kernels:\n",
            chip);
    for (int i = 0; i < count; i++)
        fprintf(file,
                "  - .name: %s\n    .symbol: %s.kd\n    .kernarg_segment_size: 64\n    .kernarg_segment_align: 8\n    "
                ".group_segment_fixed_size: 4096\n"
                "    .private_segment_fixed_size: 64\n    .wavefront_size: 64\n    .sgpr_count: 100\n    .vgpr_count: "
                "256\n    .max_flat_workgroup_size: 1024\n",
                names[i], names[i]);
    fprintf(file, "...\n.end_amdgpu_metadata\n");
}

/* The end of what the tests of one chip share. */
typedef struct bench {
    cdna_machine *machine;
    cdna_object *object;
    cdna_failure failure;
    cdna_profile profile;
    cdna_options options;
} bench;

static inline bool bench_open(bench *b, cdna_chip chip, bool hip, const char *source) {
    size_t size;
    unsigned char *bytes = build_object(cdna_chip_name(chip), hip, source, &size);
    *b = (bench){ .machine = cdna_open(chip), .options.trace_wave = -1 };
    b->object = bytes && b->machine ? cdna_object_load(b->machine, bytes, size, &b->failure) : NULL;
    if (bytes && !b->object) printf("# %s\n", b->failure.message);
    free(bytes);
    return b->object != NULL;
}

static inline bool bench_run(bench *b, const char *kernel, uint32_t workgroups, uint32_t items, const void *arguments,
                             size_t bytes) {
    const cdna_kernel *k = cdna_object_kernel(b->object, kernel);
    const cdna_grid grid = { { workgroups, 1, 1 }, { items, 1, 1 }, 0 };
    if (k == NULL) snprintf(b->failure.message, sizeof b->failure.message, "there is no kernel %s", kernel);
    return k != NULL && cdna_launch_both(b->machine, k, &grid, arguments, bytes, &b->options, &b->profile, &b->failure);
}

/* The same numbers on every run. */
static inline uint32_t random_bits(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

#endif
