/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter of CDNA machine code: runs the kernels of an AMD code object on the host, instruction by instruction,
 * and stops at what hardware would let pass. */
#ifndef CDNA_H
#define CDNA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum cdna_chip { CDNA_GFX90A, CDNA_GFX942, CDNA_GFX950, CDNA_CHIPS } cdna_chip;

/* One chip or several, with their memory. Device addresses are host addresses; only what lies in an allocation may be
 * touched. */
typedef struct cdna_machine cdna_machine;
enum { CDNA_DEVICES = 16 };
typedef struct cdna_object cdna_object;

/* What a code object says of a kernel. */
typedef struct cdna_kernel {
    const char *name;
    const cdna_object *object;
    uint32_t entry;        /* byte offset of the first instruction from the object's first address */
    uint32_t kernarg_size; /* bytes of arguments, hidden ones included */
    uint32_t lds_size;     /* static bytes of LDS */
    uint32_t private_size; /* bytes of scratch of a work-item */
    uint32_t vgprs, agprs, sgprs, vgpr_spills, sgpr_spills;
    uint32_t max_workgroup;
    struct cdna_setup { /* the registers the kernel expects at its start, from its descriptor */
        uint32_t user_sgprs, preload_words, preload_offset;
        uint16_t properties; /* KERNEL_CODE_PROPERTIES of the descriptor */
        bool private_offset, workgroup_id[3], workgroup_info;
    } setup;
    struct cdna_argument {
        uint32_t offset, size;
        char kind[28]; /* "by_value", "global_buffer", "hidden_block_count_x", ... */
    } *argument;
    int arguments;
} cdna_kernel;

typedef enum cdna_kind {
    CDNA_SCALAR,
    CDNA_VECTOR,
    CDNA_MATRIX,
    CDNA_SCALAR_LOAD,
    CDNA_LOAD,
    CDNA_STORE,
    CDNA_ATOMIC,
    CDNA_LDS,
    CDNA_BRANCH,
    CDNA_BARRIER,
    CDNA_WAIT,
    CDNA_OTHER,
    CDNA_KINDS
} cdna_kind;

/* Sums over the launches it is given to. */
typedef struct cdna_profile {
    uint64_t launches, workgroups, waves;
    uint64_t instructions[CDNA_KINDS];
    uint64_t loaded, stored; /* bytes of global memory, over active lanes */
    /* 64-byte segments touched per instruction; and the fewest that could carry its bytes */
    uint64_t transactions, ideal;
    uint64_t narrow; /* vector accesses of global memory of less than 16 bytes per lane */
    uint64_t lds_bytes, lds_accesses;
    uint64_t lds_phases, lds_conflicts; /* cycles without conflicts; and cycles more because of them */
    uint64_t matrix_operations;         /* multiplications and additions of matrix instructions */
    uint64_t *executed;                 /* NULL, or one counter per instruction of the object */
    uint64_t *waited;                   /* NULL, or as many: how often a wait had anything to wait for */
} cdna_profile;

typedef struct cdna_failure {
    char message[768]; /* "kernel k, workgroup (0,0,0), wave 1, lane 3, pc 0x1b6c: v_add_f32 ...: what is wrong" */
} cdna_failure;

typedef enum cdna_order { CDNA_FORWARD, CDNA_REVERSE } cdna_order;

typedef struct cdna_options {
    cdna_order order; /* of waves in a workgroup, and of workgroups */
    int quantum;      /* instructions a wave runs before the next one's turn; 0: to its next barrier */
    int threads;      /* 0: as OpenMP says */
    uint64_t budget;  /* most instructions of one wave; 0: 2^32 */
    FILE *trace;      /* NULL, or where each executed instruction is printed; then one thread runs */
    int trace_wave;   /* the wave to trace; -1: all */
    int device;       /* that it runs on */
} cdna_options;

typedef struct cdna_grid {
    uint32_t workgroups[3], workgroup[3];
    uint32_t dynamic_lds; /* bytes beyond the kernel's own */
} cdna_grid;

cdna_machine *cdna_open(cdna_chip chip);
void cdna_close(cdna_machine *machine);
cdna_chip cdna_machine_chip(const cdna_machine *machine);
const char *cdna_chip_name(cdna_chip chip);
bool cdna_chip_parse(const char *name, cdna_chip *chip_out);
const char *cdna_kind_name(cdna_kind kind);

/* NULL if there is no memory. Contents are unspecified; nothing else lies within 4 KiB of an allocation. */
void *cdna_memory_alloc(cdna_machine *machine, size_t bytes);
bool cdna_memory_free(cdna_machine *machine, void *memory);
/* Makes memory of the caller's known; cdna_memory_free then only forgets it. */
bool cdna_memory_register(cdna_machine *machine, void *memory, size_t bytes, bool writable);
/* Memory of one of the devices: others may touch it only if they were let, and if it is for peers; -1: of whoever. What
 * is for peers must be touched with the system's scope, by up to 8 bytes at a time; memory of the host that is not
 * coherent never with that scope, since what others do there is seen between launches alone. */
typedef enum cdna_use { CDNA_ANY_USE, CDNA_FOR_PEERS, CDNA_INCOHERENT } cdna_use;
void cdna_memory_place(cdna_machine *machine, void *memory, int device, cdna_use use);
/* Lets a device reach another's memory; false if it does already. */
bool cdna_memory_reach(cdna_machine *machine, int device, int other);
/* From now on memory of the process that is in no allocation may be touched too, as with a device that shares the
 * host's page tables: guard pages then tell. */
void cdna_memory_share(cdna_machine *machine);
/* Is [address, address + bytes) within one allocation? */
bool cdna_memory_contains(const cdna_machine *machine, const void *address, size_t bytes);

/* NULL with failure->message on what is not a code object of this machine's chip, or holds an instruction that
 * llvm-objdump does not know. */
cdna_object *cdna_object_load(cdna_machine *machine, const void *bytes, size_t size, cdna_failure *failure);
void cdna_object_unload(cdna_machine *machine, cdna_object *object);
const cdna_kernel *cdna_object_kernel(const cdna_object *object, const char *name);
const cdna_kernel *cdna_object_kernels(const cdna_object *object, int *count_out);
/* The address of a global variable, NULL if there is none of that name. */
void *cdna_object_symbol(const cdna_object *object, const char *name, size_t *size_out);
int cdna_object_instructions(const cdna_object *object);
/* Text and byte offset of instruction `index`, in the order of addresses. */
const char *cdna_object_instruction(const cdna_object *object, int index, uint32_t *offset_out);
/* True if the instruction is one the interpreter executes. */
bool cdna_object_known(const cdna_object *object, int index);

/* Runs a kernel to its end; several threads may, if none of the memory that a launch sees is freed meanwhile.
 * `arguments` are the explicit ones, laid out as the kernel declares; hidden ones are added.
 * False with failure->message if it was stopped. */
bool cdna_launch(cdna_machine *machine, const cdna_kernel *kernel, const cdna_grid *grid, const void *arguments,
                 size_t bytes, const cdna_options *options, cdna_profile *profile, cdna_failure *failure);
/* As cdna_launch, twice, from the same memory in both wave orders: also stops if any byte of memory then differs. */
bool cdna_launch_both(cdna_machine *machine, const cdna_kernel *kernel, const cdna_grid *grid, const void *arguments,
                      size_t bytes, const cdna_options *options, cdna_profile *profile, cdna_failure *failure);

void cdna_profile_print(const cdna_profile *profile, FILE *file);

#endif
