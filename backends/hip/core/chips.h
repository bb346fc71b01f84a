/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of chips beyond what the driver says. A table to be tuned: the runs and groups are those that others
 * found best (HipKittens, arXiv 2511.08083). */
#ifndef TRINE_HIP_CHIPS_H
#define TRINE_HIP_CHIPS_H

#include "backends/hip/tile/order.h"

typedef struct hip_chip {
    const char *arch;
    int units;                /* compute units of a chiplet that has an L2; 0: all */
    uint32_t run_bits, group; /* of the order in which a product's blocks take its tiles */
    bool float8;              /* matrix instructions take it */
} hip_chip;

static const hip_chip hip_chips[] = {
    { "gfx90a", 0, 0, 8, false }, /* each half of an MI250X is a device */
    { "gfx942", 38, 4, 4, true },
    { "gfx950", 32, 6, 8, true },
};

/* Of a device with so many units; 1 if it is not made of whole chiplets. */
static inline uint32_t hip_chiplets_of(const hip_chip *chip, int units) {
    return chip->units > 0 && units % chip->units == 0 ? (uint32_t)(units / chip->units) : 1;
}

/* With one chiplet, or of many blocks, the order of blocks. */
static inline tile_order hip_order_of(const hip_chip *chip, int units, int64_t blocks) {
    const uint32_t chiplets = hip_chiplets_of(chip, units);
    const int64_t round = (int64_t)chiplets << chip->run_bits;
    return (tile_order){ chiplets, chip->run_bits,
                         blocks <= INT32_MAX && chiplets > 1 ? (uint32_t)(blocks / round * round) : 0, chip->group };
}
static inline share_order hip_shares_of(const hip_chip *chip, int units, int64_t blocks) {
    const uint32_t chiplets = hip_chiplets_of(chip, units);
    return (share_order){ chiplets, blocks <= INT32_MAX && chiplets > 1 ? (uint32_t)(blocks / chiplets) : 0 };
}

#endif
