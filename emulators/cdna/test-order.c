/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which blocks take the tiles of a product, and of attention, on each chip: every tile is taken once,
 * whatever their number, and neighbours by the same chiplet; and of attention with a causal mask no chiplet has more to
 * do than others. */
#include <stdlib.h>

#include "tests/tap.h"
#include "backends/hip/core/chips.h"

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
    for (int64_t blocks = 1; good && blocks <= FEW; blocks++)
        good = covers(of, hip_order_of(chip, units, blocks), blocks);
    for (size_t i = 0; good && i < sizeof MANY / sizeof MANY[0]; i++)
        good = covers(of, hip_order_of(chip, units, MANY[i]), MANY[i]);
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
                const int tile = (int)tile_of_block((uint32_t)b, o), group = (int)o.group,
                          first = tile / (group * SIDE) * group, rest = tile - first * SIDE;
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

/* -------------------------------------------------------------------------------------------------------- attention */

typedef struct attention_order {
    int64_t (*shared)(int64_t block, share_order o), (*place)(int64_t place, int64_t tiles);
} attention_order;
static int64_t as_dealt(int64_t block, share_order o) { return (void)o, block; }
static int64_t as_they_come(int64_t place, int64_t tiles) { return (void)tiles, place; }
static const attention_order ours = { shared_tile_of_block, tile_from_ends }, dealt = { as_dealt, as_they_come };

typedef struct heads {
    int count, tiles;
} heads;
typedef struct head_tile {
    int64_t head, tile;
} head_tile;
static head_tile taken_by(attention_order of, int64_t block, share_order o, heads h) {
    const int64_t number = of.shared(block, o), head = number / h.tiles;
    return (head_tile){ head, of.place(number - head * h.tiles, h.tiles) };
}

static bool takes_each_tile(attention_order of, const hip_chip *chip, int units, heads h) {
    const int64_t blocks = (int64_t)h.count * h.tiles;
    unsigned char *taken = calloc(1, (size_t)blocks);
    bool good = taken != NULL;
    for (int64_t b = 0; good && b < blocks; b++) {
        const head_tile t = taken_by(of, b, hip_shares_of(chip, units, blocks), h);
        good =
            t.head >= 0 && t.head < h.count && t.tile >= 0 && t.tile < h.tiles && !taken[t.head * h.tiles + t.tile]++;
    }
    free(taken);
    return good;
}

/* What the busiest chiplet has to do beyond its part, in what the last tile of a head has, if each has as much as its
 * number. */
static double busiest(attention_order of, const hip_chip *chip, int units, heads h) {
    const int chiplets = (int)hip_chiplets_of(chip, units);
    const int64_t blocks = (int64_t)h.count * h.tiles;
    int64_t most = 0, all = 0;
    for (int chiplet = 0; chiplet < chiplets; chiplet++) {
        int64_t work = 0;
        for (int64_t b = chiplet; b < blocks; b += chiplets)
            work += taken_by(of, b, hip_shares_of(chip, units, blocks), h).tile + 1;
        most = work > most ? work : most;
        all += work;
    }
    return ((double)most - (double)all / chiplets) / h.tiles;
}

/* With any number of heads, of any number of tiles: is each tile taken once? And has the busiest chiplet at most what
 * two of the last tiles have beyond its part? */
static bool takes_all(attention_order of, const hip_chip *chip, int units) {
    bool good = true;
    for (int count = 1; good && count <= 40; count++)
        for (int tiles = 1; good && tiles <= 40; tiles++)
            good = takes_each_tile(of, chip, units, (heads){ count, tiles });
    return good;
}
static bool shares_evenly(attention_order of, const hip_chip *chip, int units) {
    bool good = true;
    for (int count = 1; good && count <= 40; count++)
        for (int tiles = 1; good && tiles <= 40; tiles++) good = busiest(of, chip, units, (heads){ count, tiles }) <= 2;
    return good;
}

/* Keys and values that a chiplet's blocks read at a time, on average, if `group` heads have the same. */
static double keys_together(attention_order of, const hip_chip *chip, int units, heads h, int group) {
    const int chiplets = (int)hip_chiplets_of(chip, units);
    const int64_t blocks = (int64_t)h.count * h.tiles;
    int64_t sum = 0, times = 0;
    for (int64_t begin = 0; begin + units <= blocks; begin += units, times += chiplets)
        for (int chiplet = 0; chiplet < chiplets; chiplet++) {
            int64_t before = -1;
            for (int64_t b = begin + chiplet; b < begin + units; b += chiplets) {
                const int64_t keys = taken_by(of, b, hip_shares_of(chip, units, blocks), h).head / group;
                sum += keys != before;
                before = keys;
            }
        }
    return (double)sum / (double)times;
}

static void test_attention(const hip_chip *chip) {
    for (int chiplets = 1; chiplets <= (chip->units ? 8 : 1); chiplets++) {
        const int units = chip->units ? chip->units * chiplets : 104;
        tap(takes_all(ours, chip, units) && shares_evenly(ours, chip, units),
            "%s with %d units: attention's tiles each once, and as much for each chiplet", chip->arch, units);
    }
    tap(hip_shares_of(chip, 8 * chip->units, (int64_t)INT32_MAX + 1).share == 0,
        "%s: nor are more than 2^31 of attention", chip->arch);
    if (chip->units == 0) return;
    const int units = 8 * chip->units;
    for (int group = 1; group <= 4; group *= 4) {
        const heads h = { 64, 32 };
        const double before = keys_together(dealt, chip, units, h, group),
                     after = keys_together(ours, chip, units, h, group);
        tap(after <= 2.2 && after <= before * 0.6,
            "%s: of 64 heads of 32 tiles, %d to the same keys, a chiplet reads %.1f of those at a time, %.1f as they "
            "are dealt",
            chip->arch, group, after, before);
    }
}

static int64_t behind_the_shares(int64_t block, share_order o) {
    return o.share ? block % o.chiplets * o.share + block / o.chiplets : block;
}
static int64_t from_ends_of_odd(int64_t place, int64_t tiles) {
    return place % 2 ? place / 2 : tiles - place / 2 - tiles % 2;
}

static void test_mutants(const hip_chip *chip, int units) {
    tap(!takes_all((attention_order){ behind_the_shares, tile_from_ends }, chip, units),
        "blocks behind the shares that take a tile of them are found");
    tap(!takes_all((attention_order){ shared_tile_of_block, from_ends_of_odd }, chip, units),
        "a tile beyond the last one is found");
    tap(!shares_evenly((attention_order){ shared_tile_of_block, as_they_come }, chip, units),
        "shares with more to do are found");
    tap(!shares_evenly(dealt, chip, units), "chiplets that have the last tile of each head are found");
}

int main(void) {
    for (int i = 0; i < CHIPS; i++) {
        const hip_chip *chip = &hip_chips[i];
        for (int chiplets = 1; chiplets <= (chip->units ? 8 : 1); chiplets++) {
            const int units = chip->units ? chip->units * chiplets : 104;
            tap(covers_all(tile_of_block, chip, units) && stays_together(chip, units),
                "%s with %d units: each tile once, and runs of one chiplet", chip->arch, units);
        }
        tap(covers_all(tile_of_block, chip, 97) && hip_order_of(chip, 97, FEW).whole == 0,
            "%s with 97 units: the order of blocks", chip->arch);
        tap(hip_order_of(chip, 8 * chip->units, (int64_t)INT32_MAX + 1).whole == 0,
            "%s: nor are more than 2^31 blocks ordered", chip->arch);
        if (chip->units == 0) continue;
        const tile_order o = hip_order_of(chip, 8 * chip->units, 1024), dealt = { o.chiplets, 0, 0, 8 };
        const double before = read_together(chip, 8 * chip->units, dealt),
                     after = read_together(chip, 8 * chip->units, o);
        tap(after <= before * 0.6,
            "%s: of 1024 tiles a chiplet reads %.1f rows and columns at a time, %.1f as they are dealt", chip->arch,
            after, before);
    }
    for (int i = 0; i < CHIPS; i++) test_attention(&hip_chips[i]);
    test_mutants(&hip_chips[1], 304);
    tap(!covers_all(split_evenly, &hip_chips[1], 304), "an order that leaves tiles out is found");
    return tap_end();
}
