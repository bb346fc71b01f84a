/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products for sm_90a: copies of boxes, products of warpgroups.
 *
 * A block is a producer warpgroup, one thread of which keeps copies of 128-byte steps of k on their way into a ring of stages, and two consumer warpgroups, each
 * with 64 rows of the 128 x N tile in its registers. A stage has two barriers: `full` counts the bytes that arrived, `empty` the consumers that are done with it.
 *
 * Persistent: two blocks of a cluster have tiles one above the other; each copies half of y's part to both. While consumers write a tile, copies for the next one are
 * under way. Split: the blocks of a cluster share one tile, each with a part of k; their sums meet in shared memory, each block finishes a part of the tile, and adds
 * in the order of ranks. */
#ifndef TRINE_CUDA_MATMUL_SM90_INL_H
#define TRINE_CUDA_MATMUL_SM90_INL_H

#include "matmul_finish.h"
#include "matmul_sm90.h"
#include "tile/hopper.h"

template <class T> struct matmul_element {
    enum { SIZE = 2 };
};
template <> struct matmul_element<int8_t> {
    enum { SIZE = 1 };
};

/* T: bf16, f16 or int8_t. */
template <class T, int COLUMNS, bool X_ACROSS, bool Y_ACROSS, bool IS_SPLIT> struct matmul_pipe {
    using product = wgmma<T, COLUMNS, X_ACROSS, Y_ACROSS>;
    using sum = typename product::sum;
    enum {
        N = COLUMNS,
        STEP = 128 / matmul_element<T>::SIZE, /* elements of k in a stage */
        PANEL = STEP * 128,                   /* bytes of 64 lanes that are consecutive */
        X_BYTES = MATMUL_SM90_ROWS * 128,
        Y_BYTES = N * 128,
        STAGE = X_BYTES + Y_BYTES,
        STAGES = MATMUL_SM90_MEMORY / STAGE,
        FIRST = MATMUL_SM90_ENDS, /* the first stage */
        BARRIERS = FIRST + STAGES * STAGE,
        SUMS = N / 2,
        SHARING = IS_SPLIT ? 1 : 2, /* blocks that y's part is for */
        HALVES = matmul_element<T>::SIZE == 2,
    };
    uint32_t memory;
    int stage = 0;
    uint32_t parity = 0;

    DEVICE uint32_t x() const { return memory + FIRST + stage * STAGE; }
    DEVICE uint32_t y() const { return x() + X_BYTES; }
    DEVICE uint32_t full() const { return memory + BARRIERS + stage * 16; }
    DEVICE uint32_t empty() const { return full() + 8; }
    DEVICE void advance() {
        stage++;
        if (stage == STAGES) stage = 0, parity ^= 1;
    }

    DEVICE void make_barriers() const {
        matmul_pipe at = *this;
        for (; at.parity == 0; at.advance()) {
            barrier_init(at.full(), 1);
            barrier_init(at.empty(), 2 * SHARING);
        }
        barriers_made();
    }
};

/* Where a tile is, and the steps of k that are this block's. */
struct matmul_task {
    int row, column, batch, first, end;
};
template <class Pipe> DEVICE matmul_task matmul_task_of(const matmul_sm90_params &p, int tile, int rank) {
    const int plane = p.down * p.right, batch = tile / plane, rest = tile - batch * plane, group = rest / (MATMUL_GROUP * p.right),
              first = group * MATMUL_GROUP;
    const int high = p.down - first < MATMUL_GROUP ? p.down - first : MATMUL_GROUP, in = rest - first * p.right, right = in / high,
              down = first + in - right * high;
    const int parts = Pipe::SHARING == 1 ? cluster_size() : 1;
    return { (down * Pipe::SHARING + (Pipe::SHARING == 1 ? 0 : rank)) * MATMUL_SM90_ROWS, right * Pipe::N, batch,
             parts > 1 ? (int)((int64_t)p.depth * rank / parts) : 0, parts > 1 ? (int)((int64_t)p.depth * (rank + 1) / parts) : p.depth };
}

/* ------------------------------------------------------------------------------------------------------------------ producer */

template <class Pipe, bool X_ACROSS, bool Y_ACROSS> DEVICE void matmul_produce(const matmul_sm90_params &p, Pipe &pipe, const matmul_task &task, int rank) {
    enum { PART = Pipe::N / Pipe::SHARING, STEP = Pipe::STEP };
    const int x_lane = task.row + (X_ACROSS ? p.x_shift : 0);
    const int x_batch = p.x_batches ? task.batch : 0, y_batch = p.y_batches ? task.batch : 0;
    const int y_lane = task.column + (Pipe::SHARING > 1 ? rank * PART : 0) + (Y_ACROSS ? p.y_shift : 0), y_place = Pipe::SHARING > 1 ? rank * PART * 128 : 0;
    for (int step = task.first; step < task.end; step++, pipe.advance()) {
        const int x_along = step * STEP + (X_ACROSS ? 0 : p.x_shift), y_along = step * STEP + (Y_ACROSS ? 0 : p.y_shift);
        barrier_wait(pipe.empty(), pipe.parity ^ 1);
        barrier_expect(pipe.full(), Pipe::STAGE);
        if constexpr (X_ACROSS)
            for (int i = 0; i < 2; i++) copy_box(pipe.x() + i * Pipe::PANEL, &p.x, pipe.full(), x_lane + i * 64, x_along, x_batch);
        else
            copy_box(pipe.x(), &p.x, pipe.full(), x_along, x_lane, x_batch);
        for (int i = 0; i < (Y_ACROSS ? PART / 64 : 1); i++) {
            const uint32_t to = pipe.y() + y_place + i * Pipe::PANEL;
            const int x = Y_ACROSS ? y_lane + i * 64 : y_along, y = Y_ACROSS ? y_along : y_lane;
            if constexpr (Pipe::SHARING > 1)
                copy_box_to((1 << Pipe::SHARING) - 1, to, &p.y, pipe.full(), x, y, y_batch);
            else
                copy_box(to, &p.y, pipe.full(), x, y, y_batch);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------------- consumers */

/* `group`: which of the two. */
template <class Pipe, bool X_ACROSS, bool Y_ACROSS>
DEVICE void matmul_consume(typename Pipe::sum (&sum)[Pipe::SUMS], Pipe &pipe, const matmul_task &task, int group, int rank) {
    enum { X_NEXT = X_ACROSS ? 2048 : 32, Y_NEXT = Y_ACROSS ? 2048 : 32 }; /* bytes to the next 32 bytes of k */
    const int thread = thread_index() % WARPGROUP;
    uint32_t last = 0;
    for (int step = task.first; step < task.end; step++, pipe.advance()) {
        barrier_wait(pipe.full(), pipe.parity);
        const uint64_t x = wgmma_operand(pipe.x() + group * 8192, Pipe::PANEL), y = wgmma_operand(pipe.y(), Pipe::PANEL);
        wgmma_begin();
#pragma unroll
        for (int i = 0; i < 4; i++) Pipe::product::multiply(sum, x + i * X_NEXT / 16, y + i * Y_NEXT / 16, step > task.first || i > 0);
        wgmma_commit();
        if (step > task.first) {
            wgmma_wait<1>();
            if (thread < Pipe::SHARING) barrier_arrive(cluster_address(last, Pipe::SHARING > 1 ? thread : rank));
        }
        last = pipe.empty();
    }
    wgmma_wait<0>();
    wgmma_settle(sum);
    if (task.end > task.first && thread < Pipe::SHARING) barrier_arrive(cluster_address(last, Pipe::SHARING > 1 ? thread : rank));
}

/* Two neighbours of a row as d has them. */
struct matmul_as_is {
    enum { BYTES = 4 };
    static DEVICE void put(uint32_t at, float alpha, float x, float y) { shared_store(at, bits_of_float(alpha * x), bits_of_float(alpha * y)); }
    static DEVICE void put(uint32_t at, float alpha, int32_t x, int32_t y) {
        const uint32_t factor = (uint32_t)(int32_t)alpha;
        shared_store(at, factor * (uint32_t)x, factor * (uint32_t)y);
    }
};
template <class T> struct matmul_halved {
    enum { BYTES = 2 };
    static DEVICE void put(uint32_t at, float alpha, float x, float y) { shared_store(at, matmul_pair<T>(alpha * x, alpha * y)); }
};

/* alpha s by copies that go on during the next tile: boxes of 64 rows of 128 bytes, swizzled as the map of d says, two of them in turn. */
template <class Form, class Pipe>
DEVICE void matmul_copy_out(const matmul_sm90_params &p, const typename Pipe::sum (&sum)[Pipe::SUMS], const matmul_task &task, int group, uint32_t memory) {
    enum { BOX = 8192, WIDTH = 128 / Form::BYTES, COUNT = WIDTH / 2 };
    const int thread = thread_index() % WARPGROUP, lane = thread % 32, row = thread / 32 * 16 + lane / 4, in = lane % 4 * 2 * Form::BYTES;
#pragma unroll
    for (int box = 0; box < Pipe::N / WIDTH; box++) {
        const uint32_t to = memory + (group * 2 + box % 2) * BOX;
        if (thread == 0) copy_box_out_wait<1>();
        sync_some(1 + group, WARPGROUP);
#pragma unroll
        for (int i = 0; i < COUNT; i += 2) {
            const int down = row + i / 2 % 2 * 8, place = i / 4 * 8 * Form::BYTES + in;
            Form::put(to + down * 128 + (place ^ (down % 8) << 4), p.to.alpha, sum[box * COUNT + i], sum[box * COUNT + i + 1]);
        }
        copies_see();
        sync_some(1 + group, WARPGROUP);
        if (thread == 0) copy_box_out(&p.d, to, task.column + box * WIDTH, task.row + group * 64, task.batch);
    }
}

/* The sums of a warpgroup to shared memory, `pitch` from row to row of d. */
template <int FIRST, int COUNT, int SUMS, class Sum> DEVICE void matmul_put(Sum *to, int pitch, bool swapped, int row, const Sum (&sum)[SUMS]) {
    const int column = thread_index() % 4 * 2;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int at = FIRST + i, x = row + (i / 2 % 2) * 8, y = column + i / 4 * 8 + i % 2;
        to[swapped ? y * pitch + x : x * pitch + y] = sum[at];
    }
}

/* Any end, in chunks of columns that go through shared memory. */
template <class Pipe, int CHUNK> struct matmul_chunks {
    template <class Sum> static DEVICE void put(int chunk, Sum *to, int row, const Sum (&sum)[Pipe::SUMS]) {
        enum { COUNT = MATMUL_SM90_CHUNK / 2 };
        if (chunk == CHUNK) matmul_put<CHUNK * COUNT, COUNT>(to, MATMUL_SM90_CHUNK + 8, false, row, sum);
        if constexpr ((CHUNK + 1) * COUNT < Pipe::SUMS) matmul_chunks<Pipe, CHUNK + 1>::put(chunk, to, row, sum);
    }
};
template <class Pipe>
DEVICE void matmul_write(const matmul_sm90_params &p, const typename Pipe::sum (&sum)[Pipe::SUMS], const matmul_task &task, int group, char *memory) {
    using Sum = typename Pipe::sum;
    enum { WIDTH = MATMUL_SM90_CHUNK, PITCH = WIDTH + 8 };
    Sum *const chunk = (Sum *)memory + group * 64 * PITCH;
    const int thread = thread_index() % WARPGROUP, row = thread / 32 * 16 + thread % 32 / 4;
#pragma unroll 1
    for (int c = 0; c < Pipe::N / WIDTH; c++) {
        matmul_chunks<Pipe, 0>::put(c, chunk, row, sum);
        sync_some(1 + group, WARPGROUP);
#pragma unroll 2
        for (int i = thread; i < 64 * WIDTH / 4; i += WARPGROUP) {
            const int down = i / (WIDTH / 4), right = i % (WIDTH / 4) * 4;
            const packed<Sum, 4> four = *(const packed<Sum, 4> *)(chunk + down * PITCH + right);
            matmul_finish_4(p.to, task.batch, task.row + group * 64 + down, task.column + c * WIDTH + right, p.m, p.n, four.v);
        }
        sync_some(1 + group, WARPGROUP);
    }
}

template <class Pipe>
DEVICE void matmul_end(const matmul_sm90_params &p, const typename Pipe::sum (&sum)[Pipe::SUMS], const matmul_task &task, int group, char *memory) {
    const uint32_t boxes = shared_address(memory);
    if (!p.copied) return matmul_write<Pipe>(p, sum, task, group, memory);
    if constexpr (Pipe::HALVES) {
        if (p.to.type == MATMUL_BF16) return matmul_copy_out<matmul_halved<bf16>, Pipe>(p, sum, task, group, boxes);
        if (p.to.type == MATMUL_F16) return matmul_copy_out<matmul_halved<f16>, Pipe>(p, sum, task, group, boxes);
    }
    matmul_copy_out<matmul_as_is, Pipe>(p, sum, task, group, boxes);
}

/* The same place in all blocks, added in the order of ranks. */
template <class Sum, int PARTS> DEVICE void matmul_add(uint32_t at, Sum (&four)[4]) {
    packed<uint32_t, 4> x[PARTS];
#pragma unroll
    for (int part = 0; part < PARTS; part++) x[part] = cluster_load(cluster_address(at, part));
#pragma unroll
    for (int k = 0; k < 4; k++) {
        __builtin_memcpy(&four[k], &x[0].v[k], sizeof four[k]);
#pragma unroll
        for (int part = 1; part < PARTS; part++) {
            Sum s;
            __builtin_memcpy(&s, &x[part].v[k], sizeof s);
            four[k] += s;
        }
    }
}

/* The blocks' sums of one tile, all of which are in shared memory: this block's part of the elements. */
template <class Sum, class Pipe> DEVICE void matmul_meet(const matmul_sm90_params &p, const matmul_task &task, uint32_t memory, int pitch, int rank) {
    const int parts = cluster_size(), width = (p.swapped ? (int)MATMUL_SM90_ROWS : (int)Pipe::N) / 4, units = MATMUL_SM90_ROWS * Pipe::N / 4;
    const int row0 = p.swapped ? task.column : task.row, column0 = p.swapped ? task.row : task.column;
    const int first = units * rank / parts, end = units * (rank + 1) / parts;
#pragma unroll 1
    for (int i = first + thread_index() - WARPGROUP; i < end; i += 2 * WARPGROUP) {
        const int down = i / width, right = (i - down * width) * 4;
        const uint32_t at = memory + (uint32_t)(down * pitch + right) * (uint32_t)sizeof(Sum);
        Sum four[4];
        if (parts == 1) matmul_add<Sum, 1>(at, four);
        if (parts == 2) matmul_add<Sum, 2>(at, four);
        if (parts == 4) matmul_add<Sum, 4>(at, four);
        if (parts == 8) matmul_add<Sum, 8>(at, four);
        matmul_finish_4(p.to, task.batch, row0 + down, column0 + right, p.m, p.n, four);
    }
}

/* ------------------------------------------------------------------------------------------------------------------- kernels */

template <class T, int N, bool X_ACROSS, bool Y_ACROSS> DEVICE void matmul_persistent(const matmul_sm90_params &p) {
    using Pipe = matmul_pipe<T, N, X_ACROSS, Y_ACROSS, false>;
    char *const memory = launch_memory();
    const int group = thread_index() / WARPGROUP - 1, rank = cluster_rank(), step = (int)block_count() / 2;
    Pipe pipe = { shared_address(memory) };
    if (thread_index() == 0) {
        tensor_map_fetch(&p.x);
        tensor_map_fetch(&p.y);
        pipe.make_barriers();
    }
    __syncwarp();
    cluster_meet();
    if (group < 0) {
        registers_fewer<24>();
        if (thread_index() < 32 && elected())
            for (int tile = (int)block_index() / 2; tile < p.tiles; tile += step)
                matmul_produce<Pipe, X_ACROSS, Y_ACROSS>(p, pipe, matmul_task_of<Pipe>(p, tile, rank), rank);
    } else {
        registers_more<240>();
        for (int tile = (int)block_index() / 2; tile < p.tiles; tile += step) {
            typename Pipe::sum sum[Pipe::SUMS];
            const matmul_task task = matmul_task_of<Pipe>(p, tile, rank);
            matmul_consume<Pipe, X_ACROSS, Y_ACROSS>(sum, pipe, task, group, rank);
            matmul_end<Pipe>(p, sum, task, group, memory);
        }
        if (thread_index() % WARPGROUP == 0) copy_box_out_wait<0>();
    }
    __syncwarp();
    cluster_meet(); /* a block stays while others may still copy to it */
}

template <class T, int N, bool X_ACROSS, bool Y_ACROSS> DEVICE void matmul_split(const matmul_sm90_params &p) {
    using Pipe = matmul_pipe<T, N, X_ACROSS, Y_ACROSS, true>;
    using Sum = typename Pipe::sum;
    char *const memory = launch_memory();
    const int group = thread_index() / WARPGROUP - 1, rank = cluster_rank(), pitch = p.swapped ? MATMUL_SM90_ROWS + 4 : N + 8;
    const matmul_task task = matmul_task_of<Pipe>(p, (int)block_index() / cluster_size(), rank);
    Pipe pipe = { shared_address(memory) };
    if (thread_index() == 0) {
        tensor_map_fetch(&p.x);
        tensor_map_fetch(&p.y);
        pipe.make_barriers();
    }
    sync_block();
    const bool alone = cluster_size() == 1;
    if (group < 0) {
        registers_fewer<40>();
        if (thread_index() < 32 && elected()) matmul_produce<Pipe, X_ACROSS, Y_ACROSS>(p, pipe, task, rank);
        __syncwarp();
        if (!alone) cluster_sync();
    } else {
        registers_more<232>();
        Sum sum[Pipe::SUMS] = {};
        const int thread = thread_index() % WARPGROUP, row = group * 64 + thread / 32 * 16 + thread % 32 / 4;
        matmul_consume<Pipe, X_ACROSS, Y_ACROSS>(sum, pipe, task, group, rank);
        sync_some(1, 2 * WARPGROUP); /* the stages are free now */
        matmul_put<0, Pipe::SUMS>((Sum *)memory, pitch, p.swapped, row, sum);
        if (alone)
            sync_some(1, 2 * WARPGROUP);
        else
            cluster_sync();
        matmul_meet<Sum, Pipe>(p, task, shared_address(memory), pitch, rank);
    }
    __syncwarp();
    if (!alone) cluster_meet(); /* others may still read its sums */
}

#endif
