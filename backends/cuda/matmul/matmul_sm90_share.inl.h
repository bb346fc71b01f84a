/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of tiles that the blocks of a cluster share, or that one has alone: each finishes a part of the columns, for
 * which the others send it their sums. */
#ifndef TRINE_CUDA_MATMUL_SM90_SHARE_INL_H
#define TRINE_CUDA_MATMUL_SM90_SHARE_INL_H

#include "matmul_sm90_ends.inl.h"
#include "backends/cuda/tile/order.h"

/* What a block of a cluster that shares k finishes: columns of a tile in eights, and rows in those of warps. */
struct matmul_share {
    int first, end, warp, warps;
};
template <class Pipe> DEVICE matmul_share matmul_share_of(int rank, int parts) {
    enum { EIGHTS = Pipe::N / 8 };
    if (parts <= EIGHTS)
        return { (rank * EIGHTS + parts - 1) / parts, ((rank + 1) * EIGHTS + parts - 1) / parts, 0, 8 };
    const int cut = parts / EIGHTS; /* powers of two */
    return { rank / cut, rank / cut + 1, rank % cut * 8 / cut, 8 / cut };
}

/* Eight columns of a warp's sums, four of each thread, in d's order: as they are for any end; in 16 bits for a plain
 * one, by rows of 256 bytes whose pieces of 16 change places. */
template <bool SWAPPED, class Pipe>
DEVICE void matmul_put_eight(const Pipe &pipe, int warp, int eight, const typename Pipe::sum *sum) {
    enum { PITCH = SWAPPED ? Pipe::PITCH_SWAPPED : Pipe::PITCH };
    const int lane = thread_index() % 32, row = warp * 16 + lane / 4, column = eight * 8 + lane % 4 * 2;
    const uint32_t at = pipe.memory + Pipe::FIRST + (SWAPPED ? column * PITCH + row * 4 : row * PITCH + column * 4);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t word;
        __builtin_memcpy(&word, &sum[i], sizeof word);
        shared_store(at + i / 2 * 8 * (SWAPPED ? 4 : PITCH) + i % 2 * (SWAPPED ? PITCH : 4), word);
    }
}
template <class E, bool SWAPPED, class Pipe>
DEVICE void matmul_put_eight(const Pipe &pipe, const float (&factor)[2], int warp, int eight, const float *sum) {
    const int lane = thread_index() % 32, row = lane % 8, upper = lane / 8 % 2;
    const uint32_t to = pipe.memory + Pipe::FIRST;
    float x[4], scale[2] = { 1, 1 };
    if constexpr (Pipe::FLOAT8) matmul_line_take(scale, pipe.scales(), eight * 8 + lane % 4 * 2);
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = factor[i / 2] * scale[i % 2] * sum[i];
    if constexpr (SWAPPED)
        store_two_matrices<true>(to + eight * 2048 + row * 256 + ((warp * 2 + upper) ^ row) * 16, E::pair(x[0], x[1]),
                                 E::pair(x[2], x[3]));
    else
        store_two_matrices<false>(to + (warp * 16 + upper * 8 + row) * 256 + (eight ^ row) * 16, E::pair(x[0], x[1]),
                                  E::pair(x[2], x[3]));
}

/* Eight columns of a warp's sums, either way. */
template <class E, bool SWAPPED, class Pipe> struct matmul_put_by {
    const Pipe &pipe;
    float factor[2];
    int warp;
    DEVICE void operator()(int eight, const typename Pipe::sum *sum) const {
        if constexpr (sizeof(typename E::bits) == 2)
            matmul_put_eight<E, SWAPPED>(pipe, factor, warp, eight, sum);
        else
            matmul_put_eight<SWAPPED>(pipe, warp, eight, sum);
    }
};

/* The sums of a warpgroup to the blocks that finish them, 16 bytes of each thread as it has them;
 * its own behind the last block's. */
template <class Pipe>
DEVICE void matmul_send(const typename Pipe::sum (&sum)[Pipe::SUMS], const Pipe &pipe, int warp, int rank, int parts) {
    enum { EIGHTS = Pipe::N / 8 };
    const int cut = parts > EIGHTS ? parts / EIGHTS : 1, in = (warp % (8 / cut)) * 512 + thread_index() % 32 * 16,
              stride = 8 / cut * 512;
    int to = -1, step = 0;
    uint32_t at = 0, met = 0;
#pragma unroll
    for (int j = 0; j < EIGHTS; j++, at += step) {
        const int next = parts > EIGHTS ? j * cut + warp * cut / 8 : j * parts / EIGHTS;
        if (next != to) {
            to = next, step = to == rank ? stride : (parts - 1) * stride, met = cluster_address(pipe.met(), to);
            at = to == rank ? pipe.memory + Pipe::FIRST + Pipe::OWN + in
                            : cluster_address(pipe.memory + (rank - (rank > to)) * stride + in, to);
        }
        packed<uint32_t, 4> x;
        __builtin_memcpy(&x, &sum[j * 4], sizeof x);
        if (to == rank)
            shared_store_piece(at, x);
        else
            cluster_send_piece(at, met, x);
    }
}

/* The pieces of a thread that the blocks of a cluster sent it. */
template <class Pipe> struct matmul_sent {
    uint32_t first;
    int begin, stride, rank, parts; /* where its share begins; bytes between pieces */
    DEVICE packed<uint32_t, 4> operator()(int part, int j, bool there) const {
        const int at = part == rank ? Pipe::FIRST + Pipe::OWN + (j - begin) * stride
                                    : (part - (part > rank) + (j - begin) * (parts - 1)) * stride;
        return shared_load_piece(there ? first + at : first);
    }
};
template <class Pipe>
DEVICE matmul_sent<Pipe> matmul_sent_to(const Pipe &pipe, const matmul_share &share, int warp, int rank, int parts) {
    return { pipe.memory + (warp - share.warp) * 512 + thread_index() % 32 * 16, share.first, share.warps * 512, rank,
             parts };
}

/* Pieces of each part, added in their order, to d's order. PARTS: 0 if the program does not know. */
template <int PARTS, class Sum, class Put, class From>
DEVICE void matmul_meet(const Put &put, const From &from, const matmul_share &share, int parts) {
    enum {
        MOST = PARTS ? PARTS : MATMUL_SM90_SPLIT,
        AHEAD = 16 / MOST
    }; /* pieces that are read before the first is used */
#pragma unroll 1
    for (int first = share.first; first < share.end; first += AHEAD) {
        packed<uint32_t, 4> x[AHEAD][MOST];
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
#pragma unroll
            for (int part = 0; part < MOST; part++)
                if (PARTS || part < parts) x[j][part] = from(part, first + j, first + j < share.end);
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            Sum sum[4];
#pragma unroll
            for (int part = 0; part < MOST; part++)
                if (PARTS || part < parts)
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        Sum next;
                        __builtin_memcpy(&next, &x[j][part].v[i], sizeof next);
                        sum[i] = part > 0 ? matmul_plus(1, next, sum[i]) : next;
                    }
            if (first + j < share.end) put(first + j, sum);
        }
    }
}

/* Where a tile, or d, ends. */
struct matmul_corner {
    int m, n;
};
DEVICE matmul_corner matmul_corner_of(const matmul_sm90_params &p, const matmul_task &task) {
    const int m = (int)p.m, n = (int)p.n, x = task.row + p.rows;
    return p.swapped ? matmul_corner{ m, x < n ? x : n } : matmul_corner{ x < m ? x : m, n };
}

/* A plain share in 16 bits from shared memory to d. */
template <class Pipe>
DEVICE void matmul_copy_share(const matmul_sm90_params &p, const matmul_task &task, const matmul_share &share,
                              uint32_t memory) {
    const matmul_corner end = matmul_corner_of(p, task);
    const int top = p.swapped ? share.first * 8 : share.warp * 16,
              rows = p.swapped ? (share.end - share.first) * 8 : share.warps * 16,
              left = p.swapped ? share.warp * 2 : share.first,
              pieces = p.swapped ? share.warps * 2 : share.end - share.first;
    int shift = 0; /* threads of a row */
    while (1 << shift < pieces) shift++;
    const int thread = thread_index() - WARPGROUP, down = thread >> shift, right = thread & ((1 << shift) - 1),
              step = 2 * WARPGROUP >> shift;
    const int row = (p.swapped ? task.column : task.row) + top + down,
              column = (p.swapped ? task.row : task.column) + (left + right) * 8;
    const int most = end.m - row < rows - down ? end.m - row : rows - down,
              count = right < pieces && column < end.n ? most : 0;
    uint32_t from = memory + (top + down) * 256 + ((left + right) ^ down % 8) * 16;
    char *to = (char *)p.to.d + (task.batch * p.to.d_batch + row * p.to.d_row + column) * 2;
    const int64_t next = step * p.to.d_row * 2;
    for (int i = 0; i < rows; i += 4 * step) {
        packed<uint32_t, 4> x[4];
#pragma unroll
        for (int q = 0; q < 4; q++) x[q] = shared_load_piece(i + q * step < count ? from + q * step * 256 : memory);
#pragma unroll
        for (int q = 0; q < 4; q++) store_piece_if(i + q * step < count, to + q * next, x[q]);
        from += 4 * step * 256, to += 4 * next;
    }
}

/* Sums in d's order to d, each thread always the same four columns. What matmul_finish asks for each call is asked once
 * where rows are whole. */
template <class Pipe>
DEVICE void matmul_write_share(const matmul_sm90_params &p, const matmul_task &task, const matmul_share &share,
                               uint32_t memory, int pitch) {
    using Sum = typename Pipe::sum;
    const matmul_corner end = matmul_corner_of(p, task);
    enum { Q = Pipe::N >= 128 ? 4 : Pipe::N >= 64 ? 2 : 1 };
    const int x = share.warp * 16, xs = share.warps * 16, y = share.first * 8, ys = (share.end - share.first) * 8;
    const int top = p.swapped ? y : x, rows = p.swapped ? ys : xs, units = (p.swapped ? xs : ys) / 4; /* of a row */
    const int thread = thread_index() - WARPGROUP, down = thread / units,
              right = (p.swapped ? x : y) + (thread - down * units) * 4, step = 2 * WARPGROUP / units;
    const int64_t row = (p.swapped ? task.column : task.row) + top,
                  column = (p.swapped ? task.row : task.column) + right;
    const bool inside = column < end.n, scaled = p.to.columns.data || p.to.rows.data;
    Sum bias[4] = {};
    float scale[4] = { 1, 1, 1, 1 };
    if (down >= step) return;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (p.whole && p.to.bias && inside) bias[i] = matmul_load<Sum>(p.to.bias_type, p.to.bias, column + i);
        if (scaled) scale[i] = matmul_scale_at(p.to.columns, task.batch, column + i, p.n);
    }
#pragma unroll 1
    for (int i = down; i < rows; i += Q * step) {
        Sum x[Q][4], c[Q][4] = {};
#pragma unroll
        for (int q = 0; q < Q; q++) {
            const packed<uint32_t, 4> four = shared_load_piece(
                memory + (uint32_t)((top + (i + q * step < rows ? i + q * step : i)) * pitch + right) * 4);
            __builtin_memcpy(x[q], &four, sizeof four);
        }
        const int most = inside ? rows - i < (int)(end.m - row - i) ? rows - i : (int)(end.m - row - i) : 0;
        if (!p.whole) {
            matmul_finish(x, p.to,
                          { task.batch, row + i, step, column, row + rows < end.m ? row + rows : end.m, end.n });
            continue;
        }
        const int64_t to = task.batch * p.to.d_batch + (row + i) * p.to.d_row + column,
                      from = task.batch * p.to.c_batch + (row + i) * p.to.c_row + column;
        if (p.to.c)
#pragma unroll
            for (int q = 0; q < Q; q++)
                if (q * step < most) matmul_load_four(c[q], p.to.type, p.to.c, from + q * step * p.to.c_row);
#pragma unroll
        for (int q = 0; q < Q; q++) {
            float factor = p.to.alpha;
            if (scaled) factor *= matmul_scale_at(p.to.rows, task.batch, row + i + q * step, p.m);
#pragma unroll
            for (int e = 0; e < 4; e++) x[q][e] = matmul_times(scaled ? factor * scale[e] : factor, x[q][e]);
        }
        if (p.to.c)
#pragma unroll
            for (int e = 0; e < Q * 4; e++) x[e / 4][e % 4] = matmul_plus(p.to.beta, c[e / 4][e % 4], x[e / 4][e % 4]);
        if (p.to.bias)
#pragma unroll
            for (int e = 0; e < Q * 4; e++) x[e / 4][e % 4] = matmul_plus(1, bias[e % 4], x[e / 4][e % 4]);
        if (p.to.activation) matmul_activate(x, p.to.activation);
#pragma unroll
        for (int q = 0; q < Q; q++)
            if (q * step < most) matmul_store_four(x[q], p.to.type, p.to.d, to + q * step * p.to.d_row);
    }
}

/* Ends in 16 bits that need no more than factors, and these: of a thread's rows; those of columns lie in shared
 * memory. */
struct matmul_plain {
    bool as_bf16, as_f16;
    float factor[2];
};
template <class Pipe>
DEVICE matmul_plain matmul_plain_of(const matmul_sm90_params &p, const Pipe &pipe, const matmul_task &task) {
    using T = typename Pipe::type;
    const int thread = thread_index() - WARPGROUP, row = task.row + thread / 32 * 16 + thread % 32 / 4;
    const bool plain = p.whole && p.plain && (Pipe::FLOAT8 || !p.to.rows.data);
    matmul_plain end = { matmul_gives<T, bf16>::YES && plain && p.to.type == MATMUL_BF16,
                         matmul_gives<T, f16>::YES && plain && p.to.type == MATMUL_F16,
                         { p.to.alpha, p.to.alpha } };
    if (Pipe::FLOAT8 && (end.as_bf16 || end.as_f16)) { /* alpha goes to the rows' */
        const simt_scales &x = p.swapped ? p.to.columns : p.to.rows, &y = p.swapped ? p.to.rows : p.to.columns;
        const int64_t xs = p.swapped ? p.n : p.m, ys = p.swapped ? p.m : p.n;
#pragma unroll
        for (int i = 0; i < 2; i++)
            end.factor[i] = (p.swapped ? 1 : p.to.alpha) * matmul_scale_at(x, task.batch, row + i * 8, xs);
        if (thread < Pipe::SHARE)
            shared_store(
                pipe.scales() + thread * 4,
                bits_of_float((p.swapped ? p.to.alpha : 1) * matmul_scale_at(y, task.batch, task.column + thread, ys)));
    }
    return end;
}

/* The sums of parts that share k, or of one, to d's order. E: of 16 bits the type of a plain end; f32 for all others.
 * */
template <class E, bool SWAPPED, class Pipe, class From>
DEVICE void matmul_gather(const Pipe &pipe, const typename Pipe::sum (&sum)[Pipe::SUMS], const float (&factor)[2],
                          const From &from, const matmul_share &share, int warp, int parts) {
    using Sum = typename Pipe::sum;
    const matmul_put_by<E, SWAPPED, Pipe> put = { pipe, { factor[0], factor[1] }, warp };
    if (Pipe::SHARING == 1 && parts == 1) {
#pragma unroll
        for (int j = 0; j < Pipe::N / 8; j++) put(j, sum + j * 4);
    } else if (warp < share.warp || warp >= share.warp + share.warps) {
        return;
    } else if (parts == 2) {
        matmul_meet<2, Sum>(put, from, share, parts);
    } else if (parts == 3) {
        matmul_meet<3, Sum>(put, from, share, parts);
    } else {
        matmul_meet<0, Sum>(put, from, share, parts);
    }
}
template <class E, class Pipe, class From>
DEVICE void matmul_gather_as(const Pipe &pipe, const typename Pipe::sum (&sum)[Pipe::SUMS], const float (&factor)[2],
                             const From &from, const matmul_share &share, int warp, int parts, bool swapped) {
    if (swapped)
        matmul_gather<E, true>(pipe, sum, factor, from, share, warp, parts);
    else
        matmul_gather<E, false>(pipe, sum, factor, from, share, warp, parts);
}

/* And from there to d. */
template <class Pipe, class From>
DEVICE void matmul_end_share(const matmul_sm90_params &p, const Pipe &pipe, const typename Pipe::sum (&sum)[Pipe::SUMS],
                             const matmul_plain &end, const From &from, const matmul_task &task,
                             const matmul_share &share, int parts) {
    using T = typename Pipe::type;
    const int warp = (thread_index() - WARPGROUP) / 32;
    if constexpr (matmul_gives<T, bf16>::YES)
        if (end.as_bf16) matmul_gather_as<bf16>(pipe, sum, end.factor, from, share, warp, parts, p.swapped);
    if constexpr (matmul_gives<T, f16>::YES)
        if (end.as_f16) matmul_gather_as<f16>(pipe, sum, end.factor, from, share, warp, parts, p.swapped);
    if (!end.as_bf16 && !end.as_f16) matmul_gather_as<f32>(pipe, sum, end.factor, from, share, warp, parts, p.swapped);
    sync_some(MATMUL_SM90_BARRIER, 2 * WARPGROUP);
    if (end.as_bf16 || end.as_f16)
        matmul_copy_share<Pipe>(p, task, share, pipe.memory + Pipe::FIRST);
    else
        matmul_write_share<Pipe>(p, task, share, pipe.memory + Pipe::FIRST,
                                 (p.swapped ? Pipe::PITCH_SWAPPED : Pipe::PITCH) / 4);
}

template <bool X_ACROSS, bool Y_ACROSS, class Pipe>
DEVICE void matmul_split_consume(const matmul_sm90_params &p, Pipe &pipe, const matmul_task &task,
                                 const matmul_share &share, int group, int rank, int parts) {
    const int warp = (thread_index() - WARPGROUP) / 32;
    const matmul_plain end = matmul_plain_of(p, pipe, task);
    typename Pipe::sum sum[Pipe::SUMS] = {};
    matmul_multiply<Pipe, X_ACROSS, Y_ACROSS, Pipe::N>(sum, pipe, task, group, rank);
    if (parts > 1) cluster_wait();                 /* all blocks are there */
    sync_some(MATMUL_SM90_BARRIER, 2 * WARPGROUP); /* the stages are free now */
    if (parts > 1) {
        matmul_send(sum, pipe, warp, rank, parts);
        barrier_wait(pipe.met(), 0);
    }
    matmul_end_share(p, pipe, sum, end, matmul_sent_to(pipe, share, warp, rank, parts), task, share, parts);
}

/* The pieces of a thread that pairs left in memory for each other, and its own in shared memory. */
struct matmul_left {
    const packed<uint32_t, 4> *first;
    uint32_t own;
    int part, next; /* its own; pieces between those of two parts */
    DEVICE packed<uint32_t, 4> operator()(int other, int j, bool there) const {
        enum { THREADS = 2 * WARPGROUP };
        packed<uint32_t, 4> x = load_piece_if(there && other != part, first + (int64_t)(other * next + j) * THREADS);
        if (other == part) x = shared_load_piece(there ? own + j * THREADS * 16 : own);
        return x;
    }
};

/* A tile whose k other pairs share, `at` of those parts: each pair finishes a part of the columns. What others finish
 * it leaves in memory as threads have it. The stages are free by then, since it is the last of the pair. */
template <class Pipe>
DEVICE void matmul_end_shared(const matmul_sm90_params &p, const typename Pipe::sum (&sum)[Pipe::SUMS],
                              const Pipe &pipe, const matmul_task &task, int at, int rank) {
    enum { THREADS = 2 * WARPGROUP, EIGHTS = Pipe::N / 8, MOST = MATMUL_SM90_SPLIT };
    const int thread = thread_index() - WARPGROUP, parts = p.parts, tile = at / parts, part = at - tile * parts,
              place = tile * 2 + rank, eights = p.columns / 8, first = part * eights / parts,
              count = (part + 1) * eights / parts - first;
    packed<uint32_t, 4> *const sums =
        (packed<uint32_t, 4> *)p.sums + (int64_t)place * parts * eights * THREADS + thread;
    const uint32_t own = pipe.memory + Pipe::FIRST + Pipe::OWN + thread * 16;
    matmul_task mine = task;
    mine.column += first * 8;
    sync_some(MATMUL_SM90_BARRIER, THREADS);
    const matmul_plain end = matmul_plain_of(p, pipe, mine);
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) {
        if (j >= eights) break;
        packed<uint32_t, 4> x;
        __builtin_memcpy(&x, &sum[j * 4], sizeof x);
        if (j >= first && j < first + count)
            shared_store_piece(own + (j - first) * THREADS * 16, x);
        else
            sums[(part * eights + j) * THREADS] = x;
    }
    sync_some(MATMUL_SM90_BARRIER, THREADS);
    uint64_t *const tickets = p.tickets + place * MOST * MOST;
    if (thread < parts && thread != part) {
        ticket_give(tickets + part * MOST + thread, p.ticket);
        ticket_take(tickets + thread * MOST + part, p.ticket);
    }
    sync_some(MATMUL_SM90_BARRIER, THREADS);
    const matmul_left from = { sums + first * THREADS, own, part, eights };
    matmul_end_share(p, pipe, sum, end, from, mine, { 0, count, 0, 8 }, parts);
}

#endif
