/* SPDX-License-Identifier: Apache-2.0 */
/* What LDS would not tell: bounds, races between waves by barrier epochs, uninitialised bytes, and bank conflicts. */
#include "machine.h"

static uint8_t byte_set(uint32_t dword, uint32_t address, uint32_t end) {
    const uint32_t first = address > 4 * dword ? address - 4 * dword : 0,
                   last = end < 4 * dword + 4 ? end - 4 * dword : 4;
    return (uint8_t)((1u << last) - (1u << first));
}

/* Has the wave `writer` waited for what it wrote in an earlier epoch before it came to a barrier since? */
static bool released(const wave *w, uint8_t writer, uint32_t epoch) {
    if (writer == MANY || epoch + EPOCHS <= w->epoch) return true;
    return w->group->wave[writer].lds_release[epoch % EPOCHS] < w->epoch;
}

static void check_write_before(wave *w, int lane, const cell *c, uint32_t address, uint8_t bytes, lds_access access) {
    static const char *const verbs[] = { "reads", "writes", "adds to", "loads to" };
    if (!(c->written & bytes)) return;
    const bool mine = c->writer == w->number;
    if (c->flight & bytes) {
        if (mine && access != LDS_FLIGHT)
            stop(w, lane, "%s LDS at %u before the s_waitcnt that covers the load to it", verbs[access], address);
        if (!mine)
            stop(w, lane, "LDS race: %s %u while a load to it by wave %d is in flight", verbs[access], address,
                 c->writer);
    }
    if (mine || (access == LDS_ATOMIC && c->atomic)) return;
    if (c->write_epoch == w->epoch)
        stop(w, lane, "LDS race: %s %u, which %s since the last barrier", verbs[access], address,
             c->atomic           ? "atomics of other waves changed"
             : c->writer == MANY ? "several waves wrote"
                                 : "another wave wrote");
    if (!released(w, c->writer, c->write_epoch))
        stop(w, lane, "LDS race: %s %u, for whose writing wave %d did not wait before the barrier", verbs[access],
             address, c->writer);
}

static void note_write(const wave *w, cell *c, uint8_t bytes, lds_access access) {
    const bool again = c->write_epoch == w->epoch && c->written != 0;
    c->atomic = access == LDS_ATOMIC && (!again || c->atomic);
    c->writer = again && c->writer != w->number ? MANY : (uint8_t)w->number;
    c->written = again ? c->written | bytes : bytes;
    c->write_epoch = w->epoch;
    c->flight = access == LDS_FLIGHT ? c->flight | bytes : c->flight & (uint8_t)~bytes;
}

void lds_touch(wave *w, int lane, uint32_t address, uint32_t bytes, uint32_t alignment, lds_access access) {
    group *g = w->group;
    if ((uint64_t)address + bytes > g->lds_size)
        stop(w, lane, "LDS at %u, %u bytes, but the workgroup has %u", address, bytes, g->lds_size);
    if (address % alignment)
        stop(w, lane, "LDS at %u is misaligned: this access wants a multiple of %u", address, alignment);
    for (uint32_t dword = address / 4; 4 * dword < address + bytes; dword++) {
        cell *c = &g->cell[dword];
        const uint8_t set = byte_set(dword, address, address + bytes);
        check_write_before(w, lane, c, address, set, access);
        if (access == LDS_READ) {
            if (c->read_epoch != w->epoch || c->read == 0) {
                c->read = set;
                c->reader = (uint8_t)w->number;
            } else {
                c->read |= set;
                if (c->reader != w->number) c->reader = MANY;
            }
            c->read_epoch = w->epoch;
            continue;
        }
        if (c->read & set && c->read_epoch == w->epoch && c->reader != w->number && access != LDS_ATOMIC)
            stop(w, lane, "LDS race: writes %u, which another wave read since the last barrier", address);
        note_write(w, c, set, access);
    }
}

bool lds_defined(const wave *w, uint32_t address, uint32_t bytes) {
    for (uint32_t dword = address / 4; 4 * dword < address + bytes; dword++)
        if (byte_set(dword, address, address + bytes) & ~w->group->cell[dword].defined) return false;
    return true;
}

void lds_define(wave *w, uint32_t address, uint32_t bytes, bool defined) {
    for (uint32_t dword = address / 4; 4 * dword < address + bytes; dword++) {
        cell *c = &w->group->cell[dword];
        const uint8_t set = byte_set(dword, address, address + bytes);
        c->defined = defined ? c->defined | set : c->defined & (uint8_t)~set;
    }
}

/* -------------------------------------------------------------------------------------------------- loads and waits */

void lds_fly(wave *w, uint32_t start, uint32_t bytes, uint32_t sequence) {
    if (w->flight_count == (int)(sizeof w->flights / sizeof w->flights[0]))
        stop(w, -1, "more loads to LDS in flight than vmcnt can count");
    w->flights[w->flight_count++] = (flight){ sequence, start, bytes };
}

void lds_landed(wave *w) {
    int left = 0;
    for (int i = 0; i < w->flight_count; i++) {
        const flight *f = &w->flights[i];
        if (f->sequence > w->counter[COUNTER_VM].done) {
            w->flights[left++] = *f;
            continue;
        }
        for (uint32_t dword = f->start / 4; 4 * dword < f->start + f->bytes && 4 * dword < w->group->lds_size;
             dword++) {
            cell *c = &w->group->cell[dword];
            if (c->writer != w->number || !c->flight) continue;
            c->flight = 0;
            c->write_epoch = w->epoch;
        }
    }
    w->flight_count = left;
    lds_released(w);
}

void lds_released(wave *w) {
    for (uint32_t epoch = w->lds_oldest; epoch <= w->epoch; epoch++) {
        if (w->lds_sequence[epoch % EPOCHS] > w->counter[COUNTER_LGKM].done) return;
        if (w->lds_release[epoch % EPOCHS] == UINT32_MAX) w->lds_release[epoch % EPOCHS] = w->epoch;
        if (epoch < w->epoch) w->lds_oldest = epoch + 1;
    }
}

/* --------------------------------------------------------------------------------------------------- bank conflicts */

/* Which lanes an access serves together, and over how many banks of 4 bytes. gfx950: as the authors of HipKittens
 * measured it (arXiv 2511.08083), which gives the first phases of the 16-byte and 12-byte reads; the others follow by
 * symmetry. Reads that turn are assumed to be like those of as many bytes. Elsewhere lanes are assumed to be served in
 * order, 128 bytes at a time. */
typedef struct phases {
    uint32_t bytes;
    bool write;
    int banks, lanes;
    uint8_t order[32]; /* of lanes 0..31; 32..63 follow in the same order */
} phases;

static const phases gfx950_phases[] = {
    { 16, false, 64, 16, { 0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27,
                           4, 5, 6, 7, 8,  9,  10, 11, 16, 17, 18, 19, 28, 29, 30, 31 } },
    { 12, false, 32, 8, { 0, 1, 2,  3,  20, 21, 22, 23, 4,  5,  6,  7,  16, 17, 18, 19,
                          8, 9, 10, 11, 28, 29, 30, 31, 12, 13, 14, 15, 24, 25, 26, 27 } },
    { 8, false, 64, 32, { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                          16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31 } },
};

static phases phases_of(cdna_chip chip, uint32_t bytes, bool write) {
    if (chip == CDNA_GFX950)
        for (size_t i = 0; i < sizeof gfx950_phases / sizeof gfx950_phases[0]; i++)
            if (gfx950_phases[i].bytes == bytes && gfx950_phases[i].write == write) return gfx950_phases[i];
    phases p = { bytes, write, 32, bytes <= 4 ? 32 : bytes == 8 ? 16 : 8, { 0 } };
    for (int i = 0; i < 32; i++) p.order[i] = (uint8_t)i;
    return p;
}

void lds_conflicts(wave *w, const uint32_t *address, uint64_t mask, uint32_t bytes, bool write) {
    const phases p = phases_of(w->group->machine->chip, bytes, write);
    cdna_profile *profile = &w->group->profile;
    for (int first = 0; first < LANES; first += p.lanes) {
        uint32_t seen[64][8];
        uint8_t count[64] = { 0 }, most = 0;
        for (int i = first; i < first + p.lanes; i++) {
            const int l = p.order[i % 32] + i / 32 * 32;
            if (!(mask >> l & 1)) continue;
            for (uint32_t dword = address[l] / 4; 4 * dword < address[l] + bytes; dword++) {
                const int bank = (int)(dword % (uint32_t)p.banks);
                int k = 0;
                while (k < count[bank] && k < 8 && seen[bank][k] != dword) k++;
                if (k < count[bank] && k < 8) continue;
                if (count[bank] < 8) seen[bank][count[bank]] = dword;
                if (++count[bank] > most) most = count[bank];
            }
        }
        profile->lds_phases += most > 0;
        profile->lds_conflicts += most > 1 ? most - 1u : 0;
    }
}
