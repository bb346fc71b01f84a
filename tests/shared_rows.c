/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that threads share (backends/cpu/core/parts.h): what comes of a row's pieces is put together in the order of the
 * pieces, as of a row that one thread has. Sums in f64 that are rounded to f32 would hardly show another order. */
#define CPU_LEVEL baseline
#include "backends/cpu/core/parts.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

enum { ROWS = 7, PIECES = 23, PASSES = 3, N = (PIECES - 1) * ROW_PIECE + 5 };

static double total[ROWS];
static int written[ROWS][PIECES];

static bool in_parallel(void) { return false; }

static void piece(const void *op, const parts_row *row, int64_t at, int count, float *h, double *result) {
    (void)op;
    for (int j = 0; j < count && row->pass == 0; j++) h[j] = (float)row->i;
    if (row->last) {
        written[row->i][at / ROW_PIECE] += count + (h[0] == (float)row->i && h[count - 1] == h[0]);
        return;
    }
    result[0] = (double)(row->i + 1 + row->pass + at / ROW_PIECE % 7);
}

/* Of which each order of the pieces makes another number. */
static void add(const void *op, parts_row *row, const double *result) {
    (void)op;
    row->number[0] = fmod(row->number[0] * 31 + result[0], 1e9 + 7);
}

static bool end(const void *op, parts_row *row) {
    (void)op;
    total[row->i] = row->number[0];
    row->last = ++row->pass == PASSES;
    return row->pass <= PASSES;
}

static int64_t shared_by(int threads) {
    static const trine_host host = { .in_parallel = in_parallel };
    cpu_queue queue = { .threads = threads };
    const trine_call call = { .queue = &queue, .host = &host };
    const parts job = { .rows = ROWS,
                        .n = N,
                        .bytes = (int64_t)ROWS * N * 64,
                        .held = PIECES * ROW_PIECE,
                        .piece = piece,
                        .add = add,
                        .end = end };
    void *workspace = malloc(parts_workspace(&call, &job));
    memset(total, 0, sizeof total);
    memset(written, 0, sizeof written);
    if (workspace != NULL) parts_run(&call, &job, workspace);
    free(workspace);
    return parts_work_of(&call, &job).shared;
}

int main(void) {
    double alone[ROWS];
    int64_t shared = shared_by(1), other = 0;
    memcpy(alone, total, sizeof alone);
    tap(shared == 0 && alone[0] != 0, "one thread shares no row");
    for (int threads = 2; threads <= 16; threads++) {
        int wrong = 0;
        shared = shared_by(threads);
        other += shared;
        for (int i = 0; i < ROWS; i++) {
            wrong += total[i] != alone[i];
            for (int k = 0; k < PIECES; k++) wrong += written[i][k] != (k + 1 < PIECES ? ROW_PIECE : 5) + 1;
        }
        tap(wrong == 0, "%d threads share %d of %d rows", threads, (int)shared, ROWS);
    }
    tap(other > 0, "some rows are shared");
    return tap_end();
}
