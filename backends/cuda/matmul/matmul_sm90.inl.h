/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products for sm_90a: copies of boxes, products of warpgroups.
 *
 * A block is a producer warpgroup, one thread of which keeps copies of 128-byte steps of k on their way into a ring of
 * stages, and two consumer warpgroups, each with 64 rows of the 128 x N tile in its registers. A stage has two
 * barriers: `full` counts the bytes that arrived, `empty` the consumers that are done with it.
 *
 * Pairs: two blocks of a cluster have tiles one above the other, of 64 to 256 columns in steps of 16, and each copies
 * half of y's part to both. Blocks stay for one tile after the other; while consumers write one, copies for the next
 * are in flight. The tiles that are left over when each pair has had as many are shared: several pairs each have a part
 * of k, and finish a part of the columns, for which the others leave their sums in memory. All blocks are there at once
 * then, so that none waits for one that has not begun. Either operand is x; if it is b, ends turn their tiles.
 *
 * Split: the blocks of a cluster share one tile, each with a part of k, or one has it alone; each finishes a part of
 * y's lanes, for which the others send it their sums as threads have them, and adds in the order of ranks. There the
 * operand with fewer lanes is y, so that d may be written transposed, and tiles may have fewer than 128 lanes of x: the
 * rest is multiplied and not written.
 *
 * NOTES, all of one H200. Floors: 2 m n k flops over 990 TFLOP/s (bf16; 1979 for i8; power holds either to about 75 %
 * of that), and operands and d once over 4.2 TB/s. A step of 128 x 256 is 1024 clocks of products and 32 KiB from L2,
 * for which the pair halves y's part: 7 TB/s for all SMs together.
 * - Arrivals at cluster scope with `release`, and waits with `acquire`, cost 500 clocks of fences a step: 518 TFLOP/s
 * at 4096, against 681 without, as predicted.
 * - Results as registers hold them, 4 columns to a thread, end a tile in 6 % of its time. Boxes of shared memory that
 * TMA takes out wait behind those it brings in for the next tile: 12,500 clocks for a tile of e4m3. Warps that each
 * bring 16 rows into d's order and store them wait for nothing: 4,600; e4m3 at 4096 took 206,000 clocks, and now
 * 176,000 (157,000 without ends).
 * - Clusters of 2 x 2 that share both operands should have saved a quarter of the traffic, but the device holds too few
 * of them at once: 53 us at 2048, against 30.
 * - The end of a tile that does not persist is as long as its instructions: with two warps to a scheduler none hides
 * another's. Of 38 us, m 128, n 14336, k 4096, from the last product on, 0.6 went to shared memory and 2.9 from there
 * to d; the latter took 2.3 without its stores, and as long when it was run again at once: neither stores nor a cold
 * cache of instructions. Plain ends in 16 bits, by stmatrix turned and pieces of 16 bytes, take 0.4 and 0.8.
 * - Blocks that share k and read each other's sums took 5 us for three; sent as registers hold them, 43 KB of a block
 * of three take 1.5 us (29 bytes a ns), then 0.4 until all is there, 0.6 to add, 0.4 to d.
 * - Lanes beyond an operand in TMA boxes are slow: x of 64 lanes in boxes of 128 took 46 us where 34 were enough.
 * - Four warps that copy steps in turns: no difference in 16 bits, 5 % slower for e4m3. So a box is asked for soon
 * enough.
 * - Prefetching the first steps of weights into L2 before the previous launch has ended, by a warp that does nothing
 * else, gains 0.3 to 0.4 us for two to four steps (32 to 64 KiB of each block), nothing for six, and loses 0.2 for
 * eight; for 128 columns two are best. Which operand is asked for first, and pauses between steps, changed nothing.
 * - Ends with c, a bias or an activation added 30 to 55 % to the time at 4096 by chunks of 32 columns; by warps, with
 * each question asked once for 64 columns, 10 to 20.
 * - Sums that pairs exchange through memory cost 4 us, and 40 ns for each column: 64 KB of a block of 128 columns go
 * out and come in at 20 bytes a ns. That the products of a shared tile come behind the loop over whole tiles, not
 * inside it, keeps what they need out of its registers: inside, every wgmma waited for the one before.
 * - Copies of boxes that begin at other than 16 bytes trap, also where only the coordinate does; such operands are
 * moved by hand, at a tenth of the speed. */
#ifndef TRINE_CUDA_MATMUL_SM90_INL_H
#define TRINE_CUDA_MATMUL_SM90_INL_H

#include "matmul_sm90_share.inl.h"
#include "backends/cuda/tile/fetch.h"

template <class T, bool X_ACROSS, bool Y_ACROSS> DEVICE void matmul_pairs(const matmul_sm90_params &p) {
    enum { BLOCKS = 2 };
    using Pipe = matmul_pipe<T, MATMUL_SM90_WIDE, X_ACROSS, Y_ACROSS, BLOCKS>;
    using Bits = typename matmul_element<T>::bits;
    char *const memory = launch_memory();
    const int group = thread_index() / WARPGROUP - 1, rank = cluster_rank(), step = (int)block_count() / BLOCKS;
    Pipe pipe = { shared_address(memory), p.columns, p.stages };
    launch_next();
    if (thread_index() == 0) {
        tensor_map_fetch(&p.x);
        tensor_map_fetch(&p.y);
        pipe.make_barriers();
    }
    sync_warp();
    cluster_meet();
    launch_wait();
    const int units = matmul_units(p);
    if (group < 0) {
        registers_fewer<40>();
        if (p.by_hand) {
            for (int unit = (int)block_index() / BLOCKS; unit < units; unit += step)
                matmul_produce_by_hand<Pipe, Bits, X_ACROSS, Y_ACROSS>(p, pipe, matmul_unit_of<Pipe>(p, unit, rank),
                                                                       rank);
            pipe.drain();
        } else if (thread_index() < 32 && elected()) {
            for (int unit = (int)block_index() / BLOCKS; unit < units; unit += step)
                matmul_produce<Pipe, X_ACROSS, Y_ACROSS>(p, pipe, matmul_unit_of<Pipe>(p, unit, rank), rank);
            pipe.drain();
        }
    } else {
        registers_more<232>();
        int unit = (int)block_index() / BLOCKS;
        for (; unit < p.alone; unit += step) {
            typename Pipe::sum sum[Pipe::SUMS];
            const matmul_task task = matmul_unit_of<Pipe>(p, unit, rank);
            matmul_fetch_c_first<Pipe>(p, task, group, memory);
            matmul_multiply<Pipe, X_ACROSS, Y_ACROSS, MATMUL_SM90_WIDE>(sum, pipe, task, group, rank);
            matmul_end<Pipe>(p, sum, task, group, memory);
        }
        if (unit < units) {
            typename Pipe::sum sum[Pipe::SUMS];
            const matmul_task task = matmul_unit_of<Pipe>(p, unit, rank);
            matmul_multiply<Pipe, X_ACROSS, Y_ACROSS, MATMUL_SM90_WIDE>(sum, pipe, task, group, rank);
            matmul_end_shared<Pipe>(p, sum, pipe, task, unit - p.alone, rank);
        }
    }
    sync_warp();
    cluster_meet(); /* a block stays while others may still copy to it */
}

/* Prefetches a block's first steps of x into L2 while the previous launch ends. */
template <class Pipe, bool X_ACROSS> DEVICE void matmul_ask(const matmul_sm90_params &p, const matmul_task &task) {
    const int ahead = task.first + (Pipe::N > 64 ? 2 : 4), end = ahead < task.end ? ahead : task.end;
    for (int step = task.first; step < end; step++)
        for (int i = 0; i < (X_ACROSS ? MATMUL_SM90_ROWS / 64 : 1); i++) {
            const int lane = task.row + i * 64, along = step * Pipe::STEP;
            fetch_box(&p.x, X_ACROSS ? lane : along, X_ACROSS ? along : lane, p.x_batches ? task.batch : 0);
        }
}

template <class T, int N, bool X_ACROSS, bool Y_ACROSS> DEVICE void matmul_split(const matmul_sm90_params &p) {
    using Pipe = matmul_pipe<T, N, X_ACROSS, Y_ACROSS, 1>;
    using Bits = typename matmul_element<T>::bits;
    const int group = thread_index() / WARPGROUP - 1, rank = cluster_rank(), parts = cluster_size();
    const matmul_task task = matmul_task_of<Pipe>(p, (int)block_index() / parts, rank);
    const matmul_share share = matmul_share_of<Pipe>(rank, parts);
    Pipe pipe = { shared_address(launch_memory()), N, 0 };
    launch_next();
    if (thread_index() == 0) {
        tensor_map_fetch(&p.x);
        tensor_map_fetch(&p.y);
        pipe.make_barriers();
        barrier_expect(pipe.met(), (share.end - share.first) * share.warps * (parts - 1) * 512);
    }
    if (thread_index() == 32 && p.x_hand.data == nullptr) matmul_ask<Pipe, X_ACROSS>(p, task);
    sync_block();
    if (parts > 1) cluster_arrive();
    launch_wait();
    if (group < 0) {
        registers_fewer<40>();
        if (p.by_hand)
            matmul_produce_by_hand<Pipe, Bits, X_ACROSS, Y_ACROSS>(p, pipe, task, rank);
        else if (thread_index() < 32 && elected())
            matmul_produce<Pipe, X_ACROSS, Y_ACROSS>(p, pipe, task, rank);
        sync_warp();
        if (parts > 1) cluster_wait();
    } else {
        registers_more<232>();
        matmul_split_consume<X_ACROSS, Y_ACROSS>(p, pipe, task, share, group, rank, parts);
    }
}

#endif
