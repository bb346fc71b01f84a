/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the interpreter share: decoded instructions, the state of waves and workgroups, and the tables of
 * instructions. */
#ifndef CDNA_MACHINE_H
#define CDNA_MACHINE_H

#include <pthread.h>
#include <setjmp.h>

#include "cdna.h"

enum {
    LANES = 64,
    VGPRS = 512, /* v0..v255, then a0..a255 */
    FIRST_AGPR = 256,
    SGPRS = 256, /* numbered as in the encoding */
    VCC = 106,
    TTMP = 108,
    M0 = 124,
    EXEC = 126,
    SHARED_BASE = 235, /* and src_shared_limit, src_private_base, src_private_limit: read-only, as the three below */
    VCCZ = 251,
    EXECZ = 252,
    SCC = 253,
    MAX_WAVES = 16,
    MAX_OPERANDS = 8,
    EPOCHS = 256 /* as far back as a release is remembered */
};

/* One register of a wave. A value of n words is n registers in a row. */
typedef uint32_t lanes[LANES];

/* ----------------------------------------------------------------------------------------------------- instructions */

typedef enum operand_kind {
    OPERAND_NONE,
    OPERAND_VGPR,
    OPERAND_SGPR,
    OPERAND_CONSTANT,
    OPERAND_OFF,
    OPERAND_NAME
} operand_kind;

typedef enum value_class { CLASS_BITS, CLASS_SIGNED, CLASS_FLOAT, CLASS_MASK } value_class;

/* The type of an operand: what constants, modifiers and selections mean to it. */
typedef struct value_type {
    const char *name;
    uint8_t words, bits; /* of one element */
    value_class class;
    bool packed, mix;
} value_type;

typedef enum written { WRITTEN_DECIMAL, WRITTEN_HEX, WRITTEN_FLOAT } written;

typedef struct operand {
    const value_type *type;
    union {
        uint64_t value; /* of a constant, in the operand's type */
        double real;    /* of one written with a point, before it has a type */
    };
    uint16_t index;
    uint8_t kind, words;     /* words as written: v[0:3] has 4 */
    uint8_t written, select; /* how a constant was; SDWA */
    bool negate, negate_high, absolute, extend;
    bool high, high_high; /* op_sel, op_sel_hi */
    bool plain;           /* a register taken as it is */
} operand;

typedef enum dpp_kind {
    DPP_NONE,
    DPP_QUAD_PERM,
    DPP_ROW_SHL,
    DPP_ROW_SHR,
    DPP_ROW_ROR,
    DPP_WAVE_SHL,
    DPP_WAVE_ROL,
    DPP_WAVE_SHR,
    DPP_WAVE_ROR,
    DPP_ROW_MIRROR,
    DPP_ROW_HALF_MIRROR,
    DPP_ROW_BCAST15,
    DPP_ROW_BCAST31,
    DPP_ROW_NEWBCAST
} dpp_kind;

enum { SELECT_DWORD, SELECT_BYTE_0, SELECT_BYTE_1, SELECT_BYTE_2, SELECT_BYTE_3, SELECT_WORD_0, SELECT_WORD_1 };
enum { UNUSED_PAD, UNUSED_SEXT, UNUSED_PRESERVE };

typedef struct wave wave;
typedef struct instruction instruction;
typedef struct row row;

typedef void execute_function(wave *w, const instruction *in);
/* Destinations and sources. Sources hold what modifiers and selections make of them; a lane mask is 0 or 1 in each
 * lane. */
typedef void vector_function(lanes *const d[2], const lanes *const s[4]);
typedef uint64_t scalar_function(uint64_t a, uint64_t b, uint64_t c, bool *scc);

/* An instruction of the tables. */
struct row {
    const char *name;
    /* "f32 = f32 f32"; "+=": the destination is the last source too; NULL: the row's own business */
    const char *signature;
    execute_function *execute;
    union {
        vector_function *vector;
        scalar_function *scalar;
        const void *data;
    };
    uint32_t flags;
    cdna_kind kind;
};

enum {
    ROW_SELECTS = 1,     /* c chooses between a and b, lane by lane: the other may be uninitialised */
    ROW_COMPARES = 2,    /* v_cmpx: writes EXEC too */
    ROW_MERGES = 4,      /* 16 bits of destination: the other half stays */
    ROW_TRUTH_TABLE = 8, /* the modifier bitop3 is the last source */
    ROW_ANDS = 16,       /* scalar: a zero bit of either source decides */
    ROW_ANDS_NOT = 32,   /* as that, with b inverted */
    ROW_ORS = 64,
    ROW_BITWISE = 128, /* scalar: each bit comes from the same bit of the sources; vector: each word */
    ROW_SETS_SCC = 256,
    ROW_READS_SCC = 512,
    ROW_JUMPS = 1024,
    ROW_CARRIES = 4096, /* vector: the low word of the result comes from the low words of the sources alone */
    /* a pair of halves, of which compilers leave b undefined where only a's half is used: a decides */
    ROW_PAIRS = 8192,
    ROW_RAW_OFFSET = 2048 /* the offset is the first word's low half, whatever is printed for it */
};

struct instruction {
    const row *row;
    operand operand[MAX_OPERANDS];
    int operands, destinations, sources; /* sources follow destinations */
    int32_t offset, offset1;
    uint32_t pc, size;
    int index, target; /* position in the object; and of a branch's destination, -1 */
    dpp_kind dpp;
    uint8_t dpp_control[4], row_mask, bank_mask;
    bool bound_control, clamp, glc, sc1, offen, idxen, to_lds, gds; /* glc: sc0 too */
    int8_t omod;                                                    /* exponent */
    uint8_t destination_select, destination_unused;
    bool destination_high;
    uint8_t cbsz, abid, blgp;
    uint8_t bitop3;
    uint16_t wait_vm, wait_lgkm; /* UINT16_MAX: no wait */
    const char *text;
};

struct cdna_object {
    cdna_machine *machine;
    unsigned char *image; /* the loaded segments, from address 0 of the object */
    size_t image_size;
    instruction *instruction;
    int instructions;
    int *at; /* instruction at byte offset 4 i of the image, -1 */
    char *listing;
    cdna_kernel *kernel;
    int kernels;
    struct symbol {
        char *name;
        uint64_t value, size;
    } *symbol;
    int symbols;
    cdna_object *next;
};

/* ------------------------------------------------------------------------------------------------------------ state */

typedef struct allocation {
    unsigned char *start, *end;
    bool writable;
    void *base; /* to free; NULL: of the caller */
    int device; /* whose memory it is; ANY_DEVICE: the host's, or another process's */
    cdna_use use;
} allocation;

enum { ANY_DEVICE = -1 };

struct cdna_machine {
    cdna_chip chip;
    pthread_mutex_t lock;   /* of what follows, but for launches, which have a copy */
    allocation *allocation; /* by rising address */
    int allocations, room;
    bool shares;                  /* what is in none may be touched too */
    uint32_t reach[CDNA_DEVICES]; /* of each device, the set of the others that it reaches */
    cdna_object *objects;
};

/* Operations that return later: how many were issued, and how many of those a wait has seen done. */
typedef struct counter {
    uint32_t issued, done;
    uint32_t unordered; /* the last one that may return out of order */
} counter;

enum { COUNTER_VM, COUNTER_LGKM, COUNTERS };

/* A dword of LDS. */
typedef struct cell {
    uint32_t write_epoch, read_epoch;
    uint8_t writer, reader;                 /* wave, or MANY */
    uint8_t defined, written, read, flight; /* sets of bytes; flight: a load to LDS is under way */
    bool atomic;                            /* what was written, was by atomics alone */
} cell;
enum { MANY = 254 };

/* Loads straight to LDS that are under way. */
typedef struct flight {
    uint32_t sequence, start, bytes;
} flight;

typedef struct group group;

struct wave {
    lanes v[VGPRS];
    uint64_t defined[VGPRS]; /* set of lanes */
    /* of lanes that are not, but hold a scalar that is in part: a set, and which bits are */
    uint64_t spilled[VGPRS];
    lanes spilled_defined[VGPRS];
    uint32_t due[VGPRS]; /* 2 sequence + counter; 0: here */
    uint32_t s[SGPRS], s_defined[SGPRS], s_due[SGPRS];
    bool scc, scc_defined;
    uint64_t exec_cached;
    lanes exec_lanes; /* 0 or all ones */
    counter counter[COUNTERS];
    /* of ds writes: the last of each epoch, and the epoch it was seen done in */
    uint32_t lds_sequence[EPOCHS], lds_release[EPOCHS], lds_oldest;
    flight flights[64];
    int flight_count;
    group *group;
    int number, next; /* in the workgroup; instruction */
    const instruction *current;
    uint32_t epoch;
    uint64_t executed;
    bool yields; /* its turn ends */
    enum { WAVE_RUNS, WAVE_AT_BARRIER, WAVE_ENDED } state;
    /* private_size bytes of each lane; and as many more that say whether those are defined */
    unsigned char *scratch;
    const instruction *loaded_nothing; /* the last load of uninitialised scratch */
    char origin[48];                   /* of a message */
    lanes scratch_lanes[6][8];         /* where sources and results are made */
    bool tracing;
};

/* A workgroup, and the thread that runs it. */
struct group {
    cdna_machine *machine;
    const cdna_kernel *kernel;
    const cdna_object *object;
    const cdna_grid *grid;
    const cdna_options *options;
    cdna_failure *failure;
    cdna_profile profile;
    uint32_t id[3];
    uint64_t kernarg, packet; /* addresses of the arguments, and of the dispatch packet */
    int waves;
    wave *wave;
    unsigned char *lds;
    cell *cell;
    uint32_t lds_size;
    int vgprs, agprs; /* that the kernel has */
    const allocation *recent;
    jmp_buf stop;
};

/* -------------------------------------------------------------------------------------------------------- functions */

/* operand.c */
bool operand_parse(const char *token, operand *o);
const value_type *type_named(const char *name, size_t length);
/* Gives the operand the type its instruction reads it as. */
bool operand_bind(operand *o, const value_type *type);
/* decode.c: the instruction that llvm-objdump prints as `text`, whose first word is `word`. Without a row if it is not
 * one of the tables, or has an operand or modifier that they do not provide for. */
void decode(const char *text, uint32_t word, instruction *in);
/* table.c: by mnemonic, of which encoding suffixes (_e32, _e64, _dpp, _sdwa) are no part. */
const row *row_find(const char *mnemonic, size_t length);
/* disassembly.c: instructions of the loaded object. */
bool disassemble(cdna_object *object, const void *bytes, size_t size, cdna_failure *failure);
/* object.c, metadata.c */
bool metadata_read(const unsigned char *note, size_t size, cdna_object *object);

/* check.c: the end of a launch. */
_Noreturn void stop(wave *w, int lane, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What a message about an uninitialised value may end with: the load of scratch that may have brought it. */
const char *origin_of(wave *w);
void check_register(wave *w, int index, bool write, int counter);
void check_scalar(wave *w, int index);
/* The next operation of a counter. */
uint32_t issue(wave *w, int which, bool unordered);
void wait_for(wave *w, int which, uint32_t left);

static inline uint64_t exec_of(const wave *w) { return (uint64_t)w->s[EXEC + 1] << 32 | w->s[EXEC]; }

/* vector.c */
/* defined: the lanes of each of two words, or twice those of one. */
const lanes *fetch(wave *w, const instruction *in, int which, lanes *scratch, uint64_t defined[2]);
void commit(wave *w, int index, int words, const lanes *value, uint64_t mask, uint64_t defined);
/* As commit, of what arrives when the counter says so. */
void commit_later(wave *w, int index, int words, const lanes *value, uint64_t mask, uint64_t defined, int counter,
                  uint32_t sequence);
/* Stops if a register of the operand is uninitialised in a lane of `mask`. */
const lanes *demand(wave *w, const operand *o, uint64_t mask, const char *purpose);
uint64_t demand_scalar(wave *w, const operand *o, int words, const char *purpose);
const lanes *exec_lanes_of(wave *w);
execute_function execute_vector;
/* scalar.c */
uint64_t scalar_fetch(wave *w, const operand *o, uint64_t *defined);
void scalar_commit(wave *w, int index, int words, uint64_t value, uint64_t defined);
void mask_commit(wave *w, int index, uint64_t value, uint64_t defined);
execute_function execute_scalar;

/* memory.c */
typedef enum space { SPACE_GLOBAL, SPACE_FLAT, SPACE_SCRATCH, SPACE_BUFFER } space;
/* Where each lane of an access goes: addresses of the space, and the lanes that take part. */
typedef struct lane_access {
    uint64_t address[LANES];
    uint64_t mask, dropped; /* dropped: active lanes beyond a buffer's end, by word */
    uint64_t private;       /* those of mask whose address is one of scratch */
} lane_access;
/* The host's memory at [address, address + bytes), or a stop. */
void *memory_at(wave *w, int lane, uint64_t address, uint32_t bytes, bool write);
/* The host's memory of a lane's access to a space. */
void *access_at(wave *w, space where, const lane_access *a, int lane, uint32_t bytes, bool write);
void count_access(wave *w, const lane_access *a, uint32_t bytes, bool write);
/* address.c */
void address_of(wave *w, const instruction *in, space where, const operand *vaddr, uint32_t bytes, lane_access *a);
/* scratch.c */
bool scratch_open(wave *w, uint32_t bytes); /* of a lane; false without memory */
void scratch_forget(wave *w);               /* before a wave starts */
void *scratch_at(wave *w, int lane, uint64_t offset, uint32_t bytes);
bool scratch_defined(const wave *w, int lane, uint64_t offset, uint32_t bytes);
void scratch_define(wave *w, int lane, uint64_t offset, uint32_t bytes, bool defined);
/* atomic.c: applies `name` ("add", "umax_x2", "pk_add_f16", ...) to memory; the old value in old. */
typedef struct atomic atomic;
const atomic *atomic_named(const char *name);
uint32_t atomic_bytes(const atomic *operation);
int atomic_data_words(const atomic *operation);
void atomic_apply(const atomic *operation, void *memory, const uint32_t *data, uint32_t *old);
/* lds_check.c */
typedef enum lds_access { LDS_READ, LDS_WRITE, LDS_ATOMIC, LDS_FLIGHT } lds_access;
/* Checks an access of a lane to [address, address + bytes) against bounds, alignment and the other waves, and notes
 * it. */
void lds_touch(wave *w, int lane, uint32_t address, uint32_t bytes, uint32_t alignment, lds_access access);
bool lds_defined(const wave *w, uint32_t address, uint32_t bytes);
void lds_define(wave *w, uint32_t address, uint32_t bytes, bool defined);
void lds_fly(wave *w, uint32_t start, uint32_t bytes, uint32_t sequence); /* a load to LDS sets out */
void lds_landed(wave *w);                                                 /* vmcnt has been waited for */
void lds_released(wave *w);                                               /* lgkmcnt has */
void lds_conflicts(wave *w, const uint32_t *address, uint64_t mask, uint32_t bytes, bool write);
/* Bytes of LDS for flat addresses of the shared aperture. */
#define SHARED_APERTURE UINT64_C(0x2000000000000)
#define PRIVATE_APERTURE UINT64_C(0x1000000000000)

/* run.c: one workgroup, to its end; false if it was stopped. */
bool group_run(group *g);

/* The tables; each ends with a row without a name. */
extern const row vector_rows[], scalar_rows[], lane_rows[], matrix_rows[], control_rows[], lds_rows[], memory_rows[];

#endif
