/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized on the CPU: each row of codes is read once for every few rows of x.
 *
 * A byte has 8/bits codes, which shifts of a vector of bytes part: code p of each byte in one vector. x is laid out
 * once in that order, group by group, as f32. A group's products are added up before they are multiplied by its scale;
 * the sum of x over the group, times min - scale zero, is added to them. Codes of 3, 5, 6 and 7 bits are unpacked to
 * bytes first. */
#include "matmul_finish.h"
#include "backends/cpu/quantize/codes.h"
#include "spec/places/matmul_quantized.h"

/* Rows of codes in a task; rows of x at most, since of more it pays to write the weights down; rows of x, or of codes,
 * that are worked on together. */
enum { STRIP = 32, FEW = 16, SIDE = 4, LINE = 64 /* bytes of a line of the cache */ };

typedef struct quantized {
    const trine_call *call;
    int64_t m, n, k, groups, bytes, group;
    int bits, parts;          /* bits of a code; codes of a byte, 1 where codes are unpacked to bytes */
    int64_t code_bytes, line; /* of a group, unpacked; floats of each part of a group of x, whole vectors */
    int64_t x_row, sums_row;  /* floats of a row of x as it is laid out; of its sums over groups */
    int32_t flip, offset;     /* what turns a byte's signed codes into unsigned ones; what is then taken from them */
    bool e2m1;
    bool shifted;      /* is anything added to code times scale? */
    float *x, *sums;   /* in the workspace */
    char *own;         /* of the first thread */
    int64_t own_bytes; /* scales, shifts, sums, and codes of SIDE rows */
    int64_t all_bytes;
    int team;
} quantized;

static quantized quantized_of(const trine_call *call) {
    const trine_matmul_quantized_args *args = call->args;
    quantized q = { .call = call,
                    .m = call->dim[MATMUL_QUANTIZED_DIM_M],
                    .n = call->dim[MATMUL_QUANTIZED_DIM_N],
                    .k = call->dim[MATMUL_QUANTIZED_DIM_K],
                    .groups = call->dim[MATMUL_QUANTIZED_DIM_GROUPS],
                    .bytes = call->dim[MATMUL_QUANTIZED_DIM_BYTES],
                    .offset = args->offset,
                    .e2m1 = args->format == TRINE_CODES_E2M1 };
    if (q.k == 0) q.groups = 0;
    q.group = q.groups > 0 ? q.k / q.groups : 0;
    q.bits = q.k > 0 ? (int)(8 * q.bytes * q.groups / q.k) : 8;
    q.parts = 8 % q.bits == 0 ? 8 / q.bits : 1;
    q.code_bytes = 8 % q.bits == 0 ? q.bytes : q.group;
    q.line = cpu_round_up(q.code_bytes, VL);
    q.x_row = q.groups * q.parts * q.line;
    q.sums_row = cpu_round_up(q.groups, VL);
    if (call->type[MATMUL_QUANTIZED_TYPE_C] == TRINE_I8) {
        for (int at = q.bits - 1; at < (q.parts > 1 ? 8 : q.bits); at += q.bits) q.flip |= 1 << at;
        q.offset += 1 << (q.bits - 1);
    }
    q.shifted = (call->present >> MATMUL_QUANTIZED_ZEROS & 1) || (call->present >> MATMUL_QUANTIZED_MINS & 1);
    const int64_t read = q.n * q.groups * q.bytes, much = 1 << 30;
    q.team = cpu_team(call, (q.n + STRIP - 1) / STRIP, (read < much ? read : much) * (1 + q.m / SIDE));
    q.own_bytes = cpu_round_up((2 * SIDE * q.sums_row + q.m * STRIP + VL) * 4 + SIDE * q.line, 256);
    const int64_t x_bytes = cpu_round_up(q.m * q.x_row * 4, 256), sums_bytes = cpu_round_up(q.m * q.sums_row * 4, 256);
    q.all_bytes = x_bytes + sums_bytes + q.team * q.own_bytes;
    q.x = call->workspace;
    q.sums = (float *)(void *)((char *)call->workspace + x_bytes);
    q.own = (char *)call->workspace + x_bytes + sums_bytes;
    return q;
}

static const char *refuse(const trine_call *call) {
    if (call->dim[MATMUL_QUANTIZED_DIM_M] > FEW) return "more than 16 rows";
    return call->dim[MATMUL_QUANTIZED_DIM_K] > (int64_t)1 << 40 ? "rows of more than 2^40 weights" : NULL;
}

static size_t workspace(const trine_call *call) { return (size_t)quantized_of(call).all_bytes; }

/* ------------------------------------------------------------------------------------------------------ x, laid out */

INLINE float lay_out(float *to, const quantized *q, const void *from, int64_t first, trine_dtype type) {
    float sum = 0;
    for (int p = 0; p < q->parts; p++)
        for (int64_t b = 0; b < q->line; b++) {
            const float x = b < q->code_bytes ? sload(from, type, first + b * q->parts + p) : 0;
            to[p * q->line + b] = x;
            sum += x;
        }
    return sum;
}

static void lay_out_rows(const void *context, int64_t begin, int64_t end, int thread) {
    const quantized *q = context;
    const trine_tensor *x = &q->call->tensor[MATMUL_QUANTIZED_X];
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const char *row = (const char *)x->data + i * x->stride[0] * (int64_t)trine_dtype_size(x->dtype);
        float *sums = q->sums + i * q->sums_row;
        for (int64_t g = 0; g < q->sums_row; g++) sums[g] = 0;
        for (int64_t g = 0; g < q->groups; g++) {
            float *to = q->x + i * q->x_row + g * q->parts * q->line;
            const int64_t first = g * q->group;
            if (x->dtype == TRINE_F32)
                sums[g] = lay_out(to, q, row, first, TRINE_F32);
            else if (x->dtype == TRINE_BF16)
                sums[g] = lay_out(to, q, row, first, TRINE_BF16);
            else
                sums[g] = lay_out(to, q, row, first, TRINE_F16);
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------- weights */

/* The scales of a row of codes, and what is added for each x of a group: min - scale zero. Behind the last
 * group both are 0. */
INLINE void row_scales(float *scales, float *shifts, const quantized *q, int64_t j, trine_dtype type) {
    const trine_tensor *t = q->call->tensor;
    const bool zeros = q->call->present >> MATMUL_QUANTIZED_ZEROS & 1,
               mins = q->call->present >> MATMUL_QUANTIZED_MINS & 1;
    for (int64_t g = 0; g < q->groups; g += VL) {
        const int part = q->groups - g < VL ? (int)(q->groups - g) : VL;
#define ROW(place) ((const char *)t[place].data + j * t[place].stride[0] * (int64_t)vsize(type))
        const vf scale = vloadn(ROW(MATMUL_QUANTIZED_SCALES), type, g, part, 0);
        vf shift = mins ? vloadn(ROW(MATMUL_QUANTIZED_MINS), type, g, part, 0) : vzero();
        if (zeros) shift -= scale * vloadn(ROW(MATMUL_QUANTIZED_ZEROS), type, g, part, 0);
#undef ROW
        *(vf_any *)(scales + g) = scale;
        *(vf_any *)(shifts + g) = shift;
    }
}

/* Codes of a group as bytes. */
static void unpack(uint8_t *to, const uint8_t *from, const quantized *q) {
    for (int64_t l = 0; l < q->group; l += CODES_UNIT) {
        const int64_t left = q->group - l, count = left < CODES_UNIT ? left : CODES_UNIT;
        const code_bytes codes = codes_load(from + l / 8 * q->bits, (int)count, q->bits);
        memcpy(to + l, &codes, (size_t)count);
    }
}

/* Adds the products of VL bytes of codes and `rows` rows of x. */
INLINE void byte_dots(vf (*sum)[SIDE], const quantized *q, const float *x, vi byte, int j, int rows, int parts,
                      bool e2m1) {
    const int bits = 8 / parts;
#pragma GCC unroll 8
    for (int p = 0; p < parts; p++) {
        const vi code = (byte >> p * bits) & ((1 << bits) - 1);
        const vf w = e2m1 ? codes_from_e2m1(code) - vset((float)q->offset)
                          : __builtin_convertvector(code - viset(q->offset), vf);
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            sum[i][j] = vfma(*(const vf_any *)(x + i * q->x_row + p * q->line), w, sum[i][j]);
    }
}

/* Adds the products of a group: `rows` rows of x by `columns` rows of codes, and has those fetched that lie `ahead`
 * bytes further. */
INLINE void group_dots(vf (*total)[SIDE], const quantized *q, const float *x, const uint8_t *const *from, int64_t ahead,
                       const float *scale, int rows, int columns, int parts, bool e2m1) {
    const int64_t bytes = q->code_bytes;
    const vi flip = viset(q->flip);
    vf sum[SIDE][SIDE];
    int64_t b = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) sum[i][j] = vzero();
    for (; b + VL <= bytes; b += VL) {
#pragma GCC unroll 4
        for (int j = 0; j < columns; j++) {
            if (b % LINE == 0) __builtin_prefetch((const void *)((uintptr_t)from[j] + (uintptr_t)(ahead + b)));
            byte_dots(sum, q, x + b, vload_u8(from[j] + b) ^ flip, j, rows, parts, e2m1);
        }
    }
    for (int j = 0; b < bytes && j < columns; j++) {
        uint8_t tail[VL] = { 0 };
        memcpy(tail, from[j] + b, (size_t)(bytes - b));
        byte_dots(sum, q, x + b, vload_u8(tail) ^ flip, j, rows, parts, e2m1);
    }
#pragma GCC unroll 4
    for (int j = 0; j < columns; j++)
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) total[i][j] = vfma(vset(scale[j * q->sums_row]), sum[i][j], total[i][j]);
}

INLINE void dots(float *to, const quantized *q, int64_t i, int64_t j, const float *scales, const float *shifts,
                 uint8_t *unpacked, int rows, int columns, int parts, bool e2m1) {
    const trine_tensor *codes = &q->call->tensor[MATMUL_QUANTIZED_CODES];
    const bool whole = 8 % q->bits == 0;
    vf total[SIDE][SIDE];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) total[r][c] = vzero();
    for (int64_t g = 0; g < q->groups; g++) {
        const uint8_t *code[SIDE];
        for (int c = 0; c < columns; c++) {
            code[c] = (const uint8_t *)codes->data + (j + c) * codes->stride[0] + g * codes->stride[1];
            if (whole) continue;
            unpack(unpacked + c * q->line, code[c], q);
            code[c] = unpacked + c * q->line;
        }
        group_dots(total, q, q->x + i * q->x_row + g * q->parts * q->line, code, columns * codes->stride[0], scales + g,
                   rows, columns, parts, e2m1);
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            for (int64_t g = 0; q->shifted && g < q->groups; g += VL)
                total[r][c] = vfma(*(const vf_any *)(q->sums + (i + r) * q->sums_row + g),
                                   *(const vf_any *)(shifts + c * q->sums_row + g), total[r][c]);
            to[r * STRIP + c] = vhsum(total[r][c]);
        }
}

static void dots_of(float *to, const quantized *q, int64_t i, int64_t j, const float *scales, const float *shifts,
                    uint8_t *unpacked, int rows, int columns){
#define DOTS(r, c) \
    if (rows == (r) && columns == (c)) { \
        if (q->parts == 1) dots(to, q, i, j, scales, shifts, unpacked, r, c, 1, false); \
        if (q->parts == 2 && !q->e2m1) dots(to, q, i, j, scales, shifts, unpacked, r, c, 2, false); \
        if (q->parts == 2 && q->e2m1) dots(to, q, i, j, scales, shifts, unpacked, r, c, 2, true); \
        if (q->parts == 4) dots(to, q, i, j, scales, shifts, unpacked, r, c, 4, false); \
        if (q->parts == 8) dots(to, q, i, j, scales, shifts, unpacked, r, c, 8, false); \
    }
    DOTS(1, SIDE) DOTS(SIDE, 1) DOTS(1, 1)
#undef DOTS
}

/* ------------------------------------------------------------------------------------------------------------ tasks */

INLINE void finish_outputs(const quantized *q, const float *sums, int64_t i, int64_t j, int64_t columns) {
    const trine_matmul_quantized_args *args = q->call->args;
    const trine_tensor *y = &q->call->tensor[MATMUL_QUANTIZED_Y], *bias = &q->call->tensor[MATMUL_QUANTIZED_BIAS];
    const target t = { .bias = q->call->present >> MATMUL_QUANTIZED_BIAS & 1 ? bias->data : NULL,
                       .bias_type = bias->dtype,
                       .activation = args->activation };
    const factors f = { .whole = 1 };
    char *row = (char *)y->data + i * y->stride[0] * (int64_t)trine_dtype_size(y->dtype);
    if (y->dtype == TRINE_F32)
        finish_row(&t, sums, &f, row, NULL, j, columns, TRINE_F32);
    else if (y->dtype == TRINE_BF16)
        finish_row(&t, sums, &f, row, NULL, j, columns, TRINE_BF16);
    else
        finish_row(&t, sums, &f, row, NULL, j, columns, TRINE_F16);
}

static void strips(const void *context, int64_t begin, int64_t end, int thread) {
    const quantized *q = context;
    float *scales = (float *)(void *)(q->own + thread * q->own_bytes), *shifts = scales + SIDE * q->sums_row,
          *sums = shifts + SIDE * q->sums_row;
    uint8_t *unpacked = (uint8_t *)(sums + q->m * STRIP + VL);
    for (int64_t s = begin; s < end; s++) {
        const int64_t first = s * STRIP, columns = q->n - first < STRIP ? q->n - first : STRIP;
        for (int64_t j = 0; j < columns; j += SIDE) {
            const int side = columns - j < SIDE ? (int)(columns - j) : SIDE;
            for (int c = 0; c < side; c++)
                FOR_TYPE(q->call->type[MATMUL_QUANTIZED_TYPE_S], row_scales, scales + c * q->sums_row,
                         shifts + c * q->sums_row, q, first + j + c);
            int64_t i = 0;
            for (; q->m - i >= SIDE; i += SIDE)
                for (int c = 0; c < side; c++)
                    dots_of(sums + i * STRIP + j + c, q, i, first + j + c, scales + c * q->sums_row,
                            shifts + c * q->sums_row, unpacked, SIDE, 1);
            for (; i < q->m; i++)
                for (int c = 0; c < side; c += side == SIDE ? SIDE : 1)
                    dots_of(sums + i * STRIP + j + c, q, i, first + j + c, scales + c * q->sums_row,
                            shifts + c * q->sums_row, unpacked, 1, side == SIDE ? SIDE : 1);
        }
        for (int64_t i = 0; i < q->m; i++) finish_outputs(q, sums + i * STRIP, i, first, columns);
    }
}

static trine_status launch(const trine_call *call) {
    const quantized q = quantized_of(call);
    cpu_shares(call, cpu_team(call, q.m, q.m * q.x_row * 8), q.m, lay_out_rows, &q);
    cpu_tasks(call, q.team, (q.n + STRIP - 1) / STRIP, strips, &q);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_M, SIDE);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_M, FEW);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_N, SIDE);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_N, STRIP);
}

CPU_KERNELS(matmul_quantized) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
