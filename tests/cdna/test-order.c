/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which blocks of a product take its tiles, on each chip: every tile is taken once, whatever their number, and neighbours by the same chiplet. */
#include <stdlib.h>

#include "../tap.h"
#include "backends/hip/chips.h"

enum { CHIPS = sizeof hip_chips / sizeof hip_chips[0], FEW = 5000 };
static const int64_t MANY[] = { 1 << 16, (1 << 20) - 1, (1 << 20) + 511, 3000017 };

typedef uint32_t order_function(uint32_t block, tile_order o);

/* Is each number below `blocks` the tile of one block? */
static bool covers(order_function *of, tile_order o, int64_t blocks) {
    unsigned char *taken = calloc(1, (size_t)blocks);
    bool good = taken != NULL;
    for (uint32_t b = 0; good && b < blocks; b++) {
        const uint32_t tile = of(b, o);
        good = tile < blocks && !taken[tile];
        if (good) taken[tile] = 1;
    }
    free(taken);
    return good;
}

static bool covers_all(order_function *of, const hip_chip *chip, int units) {
    bool good = true;
    for (int64_t blocks = 1; good && blocks <= FEW; blocks++) good = covers(of, hip_order_of(chip, units, blocks), blocks);
    for (size_t i = 0; good && i < sizeof MANY / sizeof MANY[0]; i++) good = covers(of, hip_order_of(chip, units, MANY[i]), MANY[i]);
    return good;
}

/* One that covers only multiples of the chiplets. */
static uint32_t split_evenly(uint32_t block, tile_order o) {
    const uint32_t blocks = o.whole ? o.whole + 1 : o.chiplets + 1;
    return block % o.chiplets * (blocks / o.chiplets) + block / o.chiplets;
}

/* Rows of a and columns of b that a chiplet's blocks read at a time, on average, of 32 x 32 tiles. */
static double read_together(const hip_chip *chip, int units, tile_order o) {
    enum { SIDE = 32 };
    const int chiplets = chip->units ? units / chip->units : 1;
    int64_t sum = 0, times = 0;
    for (int begin = 0; begin < SIDE * SIDE; begin += units, times += chiplets)
        for (int chiplet = 0; chiplet < chiplets; chiplet++) {
            bool row[SIDE] = { 0 }, column[SIDE] = { 0 };
            for (int b = begin + chiplet; b < begin + units && b < SIDE * SIDE; b += chiplets) {
                const int tile = (int)tile_of_block((uint32_t)b, o), group = (int)o.group, first = tile / (group * SIDE) * group, rest = tile - first * SIDE;
                row[first + rest % group] = column[rest / group] = true;
            }
            for (int i = 0; i < SIDE; i++) sum += row[i] + column[i];
        }
    return (double)sum / (double)times;
}

static bool stays_together(const hip_chip *chip, int units) {
    const tile_order o = hip_order_of(chip, units, FEW);
    for (uint32_t b = 0; b < o.whole; b++)
        if ((tile_of_block(b, o) >> o.run_bits) % o.chiplets != b % o.chiplets) return false;
    return true;
}

int main(void) {
    for (int i = 0; i < CHIPS; i++) {
        const hip_chip *chip = &hip_chips[i];
        for (int chiplets = 1; chiplets <= (chip->units ? 8 : 1); chiplets++) {
            const int units = chip->units ? chip->units * chiplets : 104;
            tap(covers_all(tile_of_block, chip, units) && stays_together(chip, units), "%s with %d units: each tile once, and runs of one chiplet", chip->arch,
                units);
        }
        tap(covers_all(tile_of_block, chip, 97) && hip_order_of(chip, 97, FEW).whole == 0, "%s with 97 units: the order of blocks", chip->arch);
        tap(hip_order_of(chip, 8 * chip->units, (int64_t)INT32_MAX + 1).whole == 0, "%s: nor are more than 2^31 blocks ordered", chip->arch);
        if (chip->units == 0) continue;
        const tile_order o = hip_order_of(chip, 8 * chip->units, 1024), dealt = { o.chiplets, 0, 0, 8 };
        const double before = read_together(chip, 8 * chip->units, dealt), after = read_together(chip, 8 * chip->units, o);
        tap(after <= before * 0.6, "%s: of 1024 tiles a chiplet reads %.1f rows and columns at a time, %.1f as they are dealt", chip->arch, after, before);
    }
    tap(!covers_all(split_evenly, &hip_chips[1], 304), "an order that leaves tiles out is found");
    return tap_end();
}
