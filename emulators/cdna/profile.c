/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what was counted. */
#include <inttypes.h>

#include "cdna.h"

static const char *const kind_names[CDNA_KINDS] = { "scalar", "vector", "matrix", "scalar load", "load", "store",
                                                    "atomic", "LDS",    "branch", "barrier",     "wait", "other" };

const char *cdna_kind_name(cdna_kind kind) { return kind_names[kind]; }

static double percent(uint64_t part, uint64_t whole) { return whole ? 100.0 * (double)part / (double)whole : 100; }

void cdna_profile_print(const cdna_profile *p, FILE *file) {
    uint64_t total = 0;
    for (int i = 0; i < CDNA_KINDS; i++) total += p->instructions[i];
    fprintf(file, "%" PRIu64 " launches, %" PRIu64 " workgroups, %" PRIu64 " waves, %" PRIu64 " instructions\n",
            p->launches, p->workgroups, p->waves, total);
    for (int i = 0; i < CDNA_KINDS; i++)
        if (p->instructions[i])
            fprintf(file, "  %-12s %14" PRIu64 "  %5.1f %%\n", kind_names[i], p->instructions[i],
                    percent(p->instructions[i], total));
    fprintf(file,
            "global memory: %" PRIu64 " bytes loaded, %" PRIu64 " stored; %" PRIu64
            " transactions of 64 bytes, %.1f %% coalesced; %" PRIu64 " accesses under 16 bytes a lane\n",
            p->loaded, p->stored, p->transactions, percent(p->ideal, p->transactions), p->narrow);
    fprintf(file,
            "LDS: %" PRIu64 " accesses, %" PRIu64 " bytes, %" PRIu64 " cycles, %" PRIu64 " more for bank conflicts\n",
            p->lds_accesses, p->lds_bytes, p->lds_phases, p->lds_conflicts);
    if (p->matrix_operations) fprintf(file, "matrix: %" PRIu64 " operations\n", p->matrix_operations);
}
