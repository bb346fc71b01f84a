/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks exchange on devices: packets of 16 bytes, which a rank's threads write straight into another's memory.
 *
 * A rank's area has, for each other rank and each of a few rounds in turn, a place for a packet of each thread. A place
 * that nothing has come to is all ones; a packet is never that in the last word of either half, so that each half tells
 * by itself, in one access of 8 bytes, that it is there. Who has read a packet writes ones again. So data need no
 * flags, no fences and no second way across: a call costs one.
 *
 * Copies can be of any bits: words that would look absent go in a packet of their own, beside the one that says so.
 *
 * A place is used again by the same thread, and when: launches take two sets of places in turn, and a launch ends when
 * it has seen that all ranks have begun theirs (a greeting, which also says what they call). So a rank's launch finds
 * that set free which it used two launches ago: the others have ended that one, for they have begun the next. Within a
 * launch a thread sends round k + 1 before it reads round k; its partners have sent round k - 1 when they had read and
 * cleared k - 3, which is the round that k + 1 takes the places of. A fence after each round sees to this order, where
 * places are used again at all. */
#ifndef TRINE_SIMT_EXCHANGE_H
#define TRINE_SIMT_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/simt/core/params.h"

enum {
    EXCHANGE_RANKS = 64,
    EXCHANGE_THREADS = 512,
    EXCHANGE_HELD = 4, /* blocks that a unit has at most at the same time */
    EXCHANGE_PACKET = 16,
    EXCHANGE_ROUNDS = 4,
    EXCHANGE_SETS = 2,
    EXCHANGE_BLOCKS = 1024, /* most of a launch */
    EXCHANGE_HEAD = EXCHANGE_SETS * EXCHANGE_RANKS * EXCHANGE_PACKET
};

/* Why a rank gave up, in a word of the host's memory: the code, and from bit 8 the rank that it is about, from bit 16
 * the op that this one calls. */
enum { EXCHANGE_FINE, EXCHANGE_LATE, EXCHANGE_DIFFERS, EXCHANGE_REFUSED, EXCHANGE_ABORTED, EXCHANGE_ENDED };
#define EXCHANGE_IS_REFUSED 0x80000000u /* in a greeting's first word, beside the op */

/* In the host's memory, which the device reads and writes. */
typedef struct exchange_report {
    uint64_t failed;
    uint32_t abort;
    uint32_t ended[EXCHANGE_RANKS / 32]; /* set of the ranks whose process has: what they sent before still counts */
} exchange_report;

typedef struct exchange_params {
    char *area[EXCHANGE_RANKS]; /* of each rank, as this one sees it */
    uint64_t *launches;         /* so far, once for each block */
    uint32_t *stop;             /* a thread has given up */
    exchange_report *report;
    uint64_t patience; /* nanoseconds */
    int64_t room;      /* places of another rank in a round; of all 32 bits count */
    uint32_t op, note; /* what this rank calls: the op, and a hash of the rest */
    int32_t rank, ranks, blocks;
    int32_t kind; /* of sums: TRINE_RANKS_*; of a broadcast the root */
    bool aligned; /* each row begins with a whole packet's address */
    const void *x;
    void *y;
    int64_t x_row, y_row; /* bytes from what is for one rank, or from one, to the next; 0: the same for all */
    const void *moves;    /* of ops whose rows go by lists: rows.h */
    int64_t n;            /* elements of a row, or of a line */
    /* of products, whose rows have several lines (products.inl.h): how many, and bytes from one to the next */
    int64_t lines, x_line, y_line;
    simt_divisor line_packets; /* of a line */
} exchange_params;

/* Lines that the other ranks sent before they began this launch. */
typedef struct landed_params {
    exchange_params exchange;        /* x: this rank's own lines */
    const char *landed;              /* of the other ranks, in order */
    int64_t landed_row, landed_line; /* bytes from one's to the next one's, and of a line, which has whole packets */
} landed_params;

#endif
