/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for the tests of the interpreter: compiled as they are, and with small defects that it must catch. The words
 * in comments at the end of lines are what the mutants look for. */
#define KERNEL(items) extern "C" __attribute__((global, amdgpu_flat_work_group_size(items, items))) void
#define DEVICE static inline __attribute__((device, always_inline))
#define SHARED static __attribute__((shared))

typedef unsigned short u16;
typedef unsigned u32;
typedef short bf16x4 __attribute__((ext_vector_type(4)));
typedef short bf16x8 __attribute__((ext_vector_type(8)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x16 __attribute__((ext_vector_type(16)));

DEVICE int item() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE int group() { return __builtin_amdgcn_workgroup_id_x(); }

DEVICE void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

DEVICE float as_float(int x) { return __builtin_bit_cast(float, x); }
DEVICE int as_int(float x) { return __builtin_bit_cast(int, x); }

KERNEL(256) vector_add(const float *a, const float *b, float *c, int n) {
    const int i = group() * 256 + item();
    if (i < n) /* bound */
        c[i] = a[i] + b[i];
}

/* ------------------------------------------------------------------------------------------------------- reductions */

template <int control, int rows> DEVICE float shifted(float x) {
    return as_float(__builtin_amdgcn_update_dpp(0, as_int(x), control, rows, 15, false));
}

/* In lane 63: the sum over the wave. */
DEVICE float wave_sum_dpp(float x) {
    x += shifted<0x111, 15>(x);
    x += shifted<0x112, 15>(x);
    x += shifted<0x114, 15>(x);
    x += shifted<0x118, 15>(x);
    x += shifted<0x142, 10>(x);
    x += shifted<0x143, 12>(x);
    return as_float(__builtin_amdgcn_readlane(as_int(x), 63));
}

DEVICE float other_half(float x) { return as_float(__builtin_amdgcn_ds_bpermute((item() ^ 32) * 4, as_int(x))); }

#define FOLD(name, operation) \
    DEVICE float name(float x) { \
        float y; \
        y = as_float(__builtin_amdgcn_ds_swizzle(as_int(x), 0x041f)), x = operation; \
        y = as_float(__builtin_amdgcn_ds_swizzle(as_int(x), 0x081f)), x = operation; \
        y = as_float(__builtin_amdgcn_ds_swizzle(as_int(x), 0x101f)), x = operation; \
        y = as_float(__builtin_amdgcn_ds_swizzle(as_int(x), 0x201f)), x = operation; \
        y = as_float(__builtin_amdgcn_ds_swizzle(as_int(x), 0x401f)), x = operation; \
        y = other_half(x), x = operation; \
        return x; \
    }
FOLD(wave_sum, x + y)
FOLD(wave_max, __builtin_fmaxf(x, y))

/* A wave sums its 64 numbers. */
KERNEL(256) wave_sums(const float *x, float *sums) {
    const int wave = item() / 64, first = group() * 256;
    const float sum = wave_sum_dpp(x[first + item()]);
    if (item() % 64 == 0) sums[group() * 4 + wave] = sum; /* slot */
}

/* Sums n numbers of a row through LDS, in f64. */
KERNEL(256) row_sum(const float *x, double *sums, int n) {
    SHARED double part[256];
    double sum = 0;
    for (int i = item(); i < n; i += 256) sum += x[(long)group() * n + i];
    part[item()] = sum; /* fill */
    barrier();          /* filled */
    for (int half = 128; half > 0; half /= 2) {
        if (item() < half) part[item()] += part[item() + half]; /* fold */
        barrier();                                              /* folded */
    }
    if (item() == 0) sums[group()] = part[0];
}

/* -------------------------------------------------------------------------------------------------------- transpose */

KERNEL(256) transpose(const float *x, float *y, int rows, int columns) {
    SHARED float tile[32][33];
    const int tiles = (columns + 31) / 32, row = group() / tiles * 32, column = group() % tiles * 32, i = item() / 32,
              j = item() % 32;
    for (int r = i; r < 32; r += 8)
        if (row + r < rows && column + j < columns) tile[r][j] = x[(long)(row + r) * columns + column + j];
    barrier(); /* tile */
    for (int c = i; c < 32; c += 8)
        if (column + c < columns && row + j < rows) y[(long)(column + c) * rows + row + j] = tile[j][c];
}

/* ---------------------------------------------------------------------------------------------------------- softmax */

DEVICE float fold_waves(float x, bool sum) {
    SHARED float part[4];
    const float mine = sum ? wave_sum(x) : wave_max(x);
    barrier(); /* free */
    if (item() % 64 == 0) part[item() / 64] = mine;
    barrier(); /* parts */
    return sum ? part[0] + part[1] + part[2] + part[3]
               : __builtin_fmaxf(__builtin_fmaxf(part[0], part[1]), __builtin_fmaxf(part[2], part[3]));
}

KERNEL(256) softmax(const float *x, float *y, int n) {
    const float *row = x + (long)group() * n;
    float highest = -__builtin_inff(), sum = 0;
    for (int i = item(); i < n; i += 256) highest = __builtin_fmaxf(highest, row[i]);
    highest = fold_waves(highest, false);
    for (int i = item(); i < n; i += 256) sum += __builtin_expf(row[i] - highest);
    sum = fold_waves(sum, true);
    for (int i = item(); i < n; i += 256) y[(long)group() * n + i] = __builtin_expf(row[i] - highest) / sum;
}

/* ----------------------------------------------------------------------------------------------------------- matmul */

/* C[m,n] = A[m,k] B[n,k]^T: a workgroup of four waves makes 64 x 64 of C, 32 of k at a time, from two LDS tiles in
 * turn. m, n are multiples of 64, k of 32. */
enum { TILE = 64, STEP = 32, PITCH = 40 };

KERNEL(256) matmul(const u16 *a, const u16 *b, float *c, int n, int k) {
    SHARED u16 left[2][TILE][PITCH], right[2][TILE][PITCH];
    const int tiles = n / TILE, row = group() / tiles * TILE, column = group() % tiles * TILE;
    const int load_row = item() / 4, load_k = item() % 4 * 8, lane = item() % 64, wave = item() / 64,
              i0 = wave / 2 * 32, j0 = wave % 2 * 32;
    const u16 *from_a = a + (long)(row + load_row) * k + load_k, *from_b = b + (long)(column + load_row) * k + load_k;
    f32x16 sum = {};
    bf16x8 next_a = *(const bf16x8 *)from_a, next_b = *(const bf16x8 *)from_b;
    for (int at = 0, turn = 0; at < k; at += STEP, turn ^= 1) {
        *(bf16x8 *)&left[turn][load_row][load_k] = next_a;
        *(bf16x8 *)&right[turn][load_row][load_k] = next_b;
        barrier();           /* written */
        if (at + STEP < k) { /* more */
            next_a = *(const bf16x8 *)(from_a + at + STEP);
            next_b = *(const bf16x8 *)(from_b + at + STEP);
        }
        for (int inner = 0; inner < STEP; inner += 8) {
            const bf16x4 x = *(const bf16x4 *)&left[turn][i0 + lane % 32][inner + 4 * (lane / 32)];
            const bf16x4 y = *(const bf16x4 *)&right[turn][j0 + lane % 32][inner + 4 * (lane / 32)];
            sum = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(x, y, sum, 0, 0, 0);
        }
    }
    for (int r = 0; r < 16; r++) {
        const int i = 8 * (r / 4) + 4 * (lane / 32) + r % 4; /* layout */
        c[(long)(row + i0 + i) * n + column + j0 + lane % 32] = sum[r];
    }
}

/* ---------------------------------------------------------------------------------------------------------- scratch */

/* Indexing by data keeps the table in scratch. */
KERNEL(64) scatter(const int *index, float *y) {
    volatile float table[16];
    for (int i = 0; i < 16; i++) table[i] = (float)i * (float)item();
    y[item()] = table[index[item()] & 15];
}

/* A histogram through LDS atomics, then global ones. */
KERNEL(256) histogram(const u32 *x, u32 *bins, int n) {
    SHARED u32 count[16];
    if (item() < 16) count[item()] = 0; /* zero */
    barrier();                          /* zeroed */
    for (int i = group() * 256 + item(); i < n; i += 1024) __atomic_fetch_add(&count[x[i] & 15], 1, __ATOMIC_RELAXED);
    barrier(); /* counted */
    if (item() < 16) __atomic_fetch_add(&bins[item()], count[item()], __ATOMIC_RELAXED);
}

/* Each lane reads 16 bytes of LDS where it is told to. */
KERNEL(64) read_tile(const u32 *offset, f32x4 *y) {
    SHARED f32x4 tile[64];
    tile[item()] = (f32x4)(float)item();
    barrier();
    y[item()] = *(f32x4 *)((__attribute__((address_space(3))) char *)tile + offset[item()]);
}

/* ------------------------------------------------------------------------------------------------------------ peers */

typedef unsigned long long u64;

/* Each of two launches gives the other a number, and waits for the other's. */
KERNEL(64) meet(u64 *theirs, u64 *own) {
    __hip_atomic_store(&theirs[item()], (u64)item() + 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
    while (__hip_atomic_load(&own[item()], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) != (u64)item() + 1)
        __builtin_amdgcn_s_sleep(1);
}

/* Stores as 16 bytes, plainly. */
KERNEL(64) give_plainly(u64 *theirs) { ((f32x4 *)theirs)[item()] = (f32x4)1.0f; }
