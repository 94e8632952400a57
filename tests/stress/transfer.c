/* SPDX-License-Identifier: BSD-3-Clause */
/* transfer.c - puts and gets of all kinds. Only PE s writes region s of each PE, so s can keep a mirror of it. The
 * mirror is compared with the results of gets and, at a check, with what the owner reads by its own loads.
 *
 * The rules of the specification that make this well-defined: two puts to the same address have a fence between them; a
 * get of what was put comes after a quiet; the source of a non-blocking put is unchanged until a quiet.
 */
#include "mix.h"

#include <stdlib.h>
#include <string.h>

#include <shmem.h>

#define OPEN_MAX      24
#define READINGS_MAX  6
#define STATIC_BYTES  1024 /* of one PE's region among the static variables */
#define STATIC_PES    64
#define REGIONS_BYTES ((size_t)256 << 20) /* of all regions of all PEs */
#define STRIDE_MAX    5
#define STRIDED_MAX   3000

static uint8_t static_regions[STATIC_PES * STATIC_BYTES]; /* symmetric */

struct shelf {           /* regions in one kind of memory */
    uint8_t *regions;    /* symmetric: [writer][bytes] */
    uint8_t *mirrors;    /* private: [owner][bytes] */
    uint64_t *hash_seen; /* symmetric: [writer], as read by the owner */
    size_t bytes;
};

struct range {
    int shelf, pe;
    size_t first, end;
};

struct open_write {
    struct range range;
    bool is_fenced;
    bool is_source_in_use; /* non-blocking: the mirror must not change before a quiet */
};

struct reading { /* an outstanding non-blocking get */
    struct range range;
    uint8_t *into; /* owned */
};

struct transfers {
    struct shelf shelves[2];
    uint8_t *library; /* symmetric: never changes, the same on all PEs */
    size_t library_bytes;
    uint8_t *scratch;
    struct open_write open[OPEN_MAX];
    size_t open_count;
    struct reading readings[READINGS_MAX];
    size_t reading_count;
};

#define LIBRARY (-1) /* the range of the library's variable */

typedef void put_function(void *to, const void *from, size_t count, int pe);
typedef void strided_function(void *to, const void *from, ptrdiff_t to_stride, ptrdiff_t from_stride, size_t count,
                              int pe);

static const struct kind {
    size_t element;
    put_function *put, *put_nbi, *get, *get_nbi;
    strided_function *iput, *iget;
} kinds[] = {
    {1, shmem_putmem, shmem_putmem_nbi, shmem_getmem, shmem_getmem_nbi, shmem_iput8, shmem_iget8},
    {1, shmem_put8, shmem_put8_nbi, shmem_get8, shmem_get8_nbi, shmem_iput8, shmem_iget8},
    {2, shmem_put16, shmem_put16_nbi, shmem_get16, shmem_get16_nbi, shmem_iput16, shmem_iget16},
    {4, shmem_put32, shmem_put32_nbi, shmem_get32, shmem_get32_nbi, shmem_iput32, shmem_iget32},
    {8, shmem_put64, shmem_put64_nbi, shmem_get64, shmem_get64_nbi, shmem_iput64, shmem_iget64},
    {16, shmem_put128, shmem_put128_nbi, shmem_get128, shmem_get128_nbi, shmem_iput128, shmem_iget128},
};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

static uint64_t hash_of(const uint8_t *bytes, size_t count)
{
    uint64_t hash = 0, word;
    for (size_t i = 0; i + 8 <= count; i += 8) {
        memcpy(&word, bytes + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* Where a range lies: in symmetric memory, and in the mirror. */
static uint8_t *there(const struct mix *mix, struct range range)
{
    const struct transfers *t = mix->transfers;
    if (range.shelf == LIBRARY)
        return t->library + range.first;
    return t->shelves[range.shelf].regions + (size_t)mix->me * t->shelves[range.shelf].bytes + range.first;
}

static uint8_t *mirror(const struct mix *mix, struct range range)
{
    const struct shelf *shelf = &mix->transfers->shelves[range.shelf];
    return shelf->mirrors + (size_t)range.pe * shelf->bytes + range.first;
}

static bool overlap(struct range a, struct range b)
{
    return a.shelf == b.shelf && a.pe == b.pe && a.first < b.end && b.first < a.end;
}

/* Compares the result of a get with the mirror. */
static void look_at(const struct mix *mix, struct range range, const uint8_t *brought, const char *call)
{
    size_t bytes = range.end - range.first, at = 0;
    if (range.shelf == LIBRARY) {
        uint64_t key = mix_hash(mix->seed, (uint64_t)range.pe, 1);
        for (; at < bytes &&
               brought[at] == (uint8_t)(mix_hash(key, (range.first + at) >> 3, 0) >> (range.first + at) % 8 * 8);)
            at++;
    } else if (memcmp(brought, mirror(mix, range), bytes) != 0) {
        while (brought[at] == mirror(mix, range)[at])
            at++;
    } else {
        at = bytes;
    }
    if (at < bytes)
        mix_fail(mix, "%s of %zu bytes from PE %d, %s offset %zu: byte %zu is wrong (0x%02x)", call, bytes, range.pe,
                 range.shelf == LIBRARY ? "library"
                 : range.shelf == 0     ? "heap"
                                        : "static",
                 range.first, at, brought[at]);
}

void transfers_completed(struct mix *mix)
{
    struct transfers *t = mix->transfers;
    t->open_count = 0;
    for (size_t i = 0; i < t->reading_count; i++) {
        look_at(mix, t->readings[i].range, t->readings[i].into, "non-blocking get");
        free(t->readings[i].into);
    }
    t->reading_count = 0;
}

static void quiet(struct mix *mix)
{
    shmem_quiet();
    transfers_completed(mix);
    atomics_completed(mix);
}

static void fence(struct mix *mix)
{
    shmem_fence();
    for (size_t i = 0; i < mix->transfers->open_count; i++)
        mix->transfers->open[i].is_fenced = true;
}

/* Orders a write to a range after earlier ones, as the specification requires, and records it as outstanding. */
static void begin_write(struct mix *mix, struct range range, bool is_nbi)
{
    struct transfers *t = mix->transfers;
    bool needs_fence = false, needs_quiet = t->open_count == OPEN_MAX;
    for (size_t i = 0; i < t->open_count; i++) {
        if (overlap(t->open[i].range, range)) {
            needs_fence = needs_fence || !t->open[i].is_fenced;
            needs_quiet = needs_quiet || t->open[i].is_source_in_use;
        }
    }
    for (size_t i = 0; i < t->reading_count; i++)
        needs_quiet = needs_quiet || overlap(t->readings[i].range, range);
    if (needs_quiet)
        quiet(mix);
    else if (needs_fence)
        fence(mix);
    t->open[t->open_count++] = (struct open_write){.range = range, .is_source_in_use = is_nbi};
}

static void begin_read(struct mix *mix, struct range range)
{
    for (size_t i = 0; i < mix->transfers->open_count; i++) {
        if (overlap(mix->transfers->open[i].range, range)) {
            quiet(mix);
            return;
        }
    }
}

/* A range of at most `most` bytes, of whole elements, in one of this PE's regions at PE pe, or in the library's
 * variable there. */
static struct range choose_range(struct mix *mix, int pe, size_t element, size_t most, bool is_library_allowed)
{
    const struct transfers *t = mix->transfers;
    struct range range = {.shelf = mix_choose(mix, 4) == 0 ? 1 : 0, .pe = pe};
    if (is_library_allowed && mix_choose(mix, 3) == 0)
        range.shelf = LIBRARY;
    size_t room = range.shelf == LIBRARY ? t->library_bytes : t->shelves[range.shelf].bytes;
    size_t count = mix_choose_size(mix, (most < room ? most : room) / element);
    range.first = mix_choose(mix, room / element - count + 1) * element;
    range.end = range.first + count * element;
    return range;
}

static void step_put(struct mix *mix, int pe)
{
    const struct kind *kind = &kinds[mix_choose(mix, KIND_COUNT)];
    struct range range = choose_range(mix, pe, kind->element, mix->bytes_max, false);
    size_t bytes = range.end - range.first;
    bool is_nbi = mix_choose(mix, 2) == 0;
    begin_write(mix, range, is_nbi);
    mix_fill(mirror(mix, range), bytes, quoit_prng_next(&mix->prng));
    if (is_nbi) {
        kind->put_nbi(there(mix, range), mirror(mix, range), bytes / kind->element, pe);
    } else { /* the source may be reused at once, so it is overwritten */
        memcpy(mix->transfers->scratch, mirror(mix, range), bytes);
        kind->put(there(mix, range), mix->transfers->scratch, bytes / kind->element, pe);
        memset(mix->transfers->scratch, 0xee, bytes);
    }
    mix->byte_count += bytes;
}

static void step_get(struct mix *mix, int pe)
{
    struct transfers *t = mix->transfers;
    const struct kind *kind = &kinds[mix_choose(mix, KIND_COUNT)];
    struct range range = choose_range(mix, pe, kind->element, mix->bytes_max, true);
    size_t bytes = range.end - range.first;
    begin_read(mix, range);
    if (mix_choose(mix, 2) == 0) {
        kind->get(t->scratch, there(mix, range), bytes / kind->element, pe);
        look_at(mix, range, t->scratch, "get");
    } else {
        if (t->reading_count == READINGS_MAX)
            quiet(mix);
        struct reading *reading = &t->readings[t->reading_count++];
        *reading = (struct reading){range, mix_private(mix, bytes / 16 + 1, 16)};
        kind->get_nbi(reading->into, there(mix, range), bytes / kind->element, pe);
    }
    mix->byte_count += bytes;
}

/* Elements `stride` apart in the region, `other_stride` apart in the scratch buffer. */
static void step_strided(struct mix *mix, int pe)
{
    struct transfers *t = mix->transfers;
    const struct kind *kind = &kinds[mix_choose(mix, KIND_COUNT)];
    size_t element = kind->element, stride = 1 + mix_choose(mix, STRIDE_MAX), other = 1 + mix_choose(mix, STRIDE_MAX);
    bool is_put = mix_choose(mix, 2) == 0;
    struct range range = choose_range(mix, pe, element, STRIDED_MAX * element, !is_put);
    size_t count = ((range.end - range.first) / element + stride - 1) / stride;
    if (is_put) {
        begin_write(mix, range, false);
        mix_fill(t->scratch, count * other * element, quoit_prng_next(&mix->prng));
        for (size_t i = 0; i < count; i++)
            memcpy(mirror(mix, range) + i * stride * element, t->scratch + i * other * element, element);
        kind->iput(there(mix, range), t->scratch, (ptrdiff_t)stride, (ptrdiff_t)other, count, pe);
        memset(t->scratch, 0xee, count * other * element);
    } else {
        begin_read(mix, range);
        kind->iget(t->scratch, there(mix, range), (ptrdiff_t)other, (ptrdiff_t)stride, count, pe);
        for (size_t i = 0; i < count; i++) {
            struct range one = range;
            one.first += i * stride * element;
            one.end = one.first + element;
            look_at(mix, one, t->scratch + i * other * element, "strided get");
        }
    }
    mix->byte_count += count * element;
}

static void step_single(struct mix *mix, int pe)
{
    size_t element = (size_t)1 << mix_choose(mix, 4);
    bool is_put = mix_choose(mix, 2) == 0;
    struct range range = choose_range(mix, pe, element, element, !is_put);
    uint64_t value = quoit_prng_next(&mix->prng);
    uint8_t brought[8];
    if (is_put) {
        begin_write(mix, range, false);
        memcpy(mirror(mix, range), &value, element);
    } else {
        begin_read(mix, range);
    }
#define SINGLE(type, name)                                                                                             \
    if (is_put) {                                                                                                      \
        shmem_##name##_p((type *)there(mix, range), (type)value, pe);                                                  \
    } else {                                                                                                           \
        type one = shmem_##name##_g((type *)there(mix, range), pe);                                                    \
        memcpy(brought, &one, sizeof(one));                                                                            \
    }
    if (element == 1) {
        SINGLE(uint8_t, uint8)
    } else if (element == 2) {
        SINGLE(uint16_t, uint16)
    } else if (element == 4) {
        SINGLE(uint32_t, uint32)
    } else {
        SINGLE(uint64_t, uint64)
    }
#undef SINGLE
    if (!is_put)
        look_at(mix, range, brought, "g");
    mix->byte_count += element;
}

void transfers_step(struct mix *mix, int pe)
{
    switch (mix_choose(mix, 10)) {
    case 0:
    case 1:
    case 2:
        step_put(mix, pe);
        break;
    case 3:
    case 4:
        step_get(mix, pe);
        break;
    case 5:
    case 6:
        step_strided(mix, pe);
        break;
    case 7:
    case 8:
        step_single(mix, pe);
        break;
    default:
        if (mix_choose(mix, 2) == 0)
            fence(mix);
        else
            quiet(mix);
    }
}

/* The owner sends each writer what it reads in the writer's region; the writer compares that with its mirror. */
void transfers_check(struct mix *mix)
{
    struct transfers *t = mix->transfers;
    for (int s = 0; s < 2; s++)
        for (int pe = 0; pe < mix->pe_count; pe++)
            t->shelves[s].hash_seen[pe] =
                hash_of(t->shelves[s].regions + (size_t)pe * t->shelves[s].bytes, t->shelves[s].bytes);
    shmem_barrier_all();
    for (int s = 0; s < 2; s++) {
        for (int pe = 0; pe < mix->pe_count; pe++) {
            struct range whole = {s, pe, 0, t->shelves[s].bytes};
            uint64_t seen = shmem_uint64_g(&t->shelves[s].hash_seen[mix->me], pe);
            if (seen == hash_of(mirror(mix, whole), whole.end))
                continue;
            uint8_t *brought = mix_private(mix, whole.end, 1);
            shmem_getmem(brought, there(mix, whole), whole.end, pe);
            look_at(mix, whole, brought, "check: what lies at the owner, seen by a get");
            mix_fail(mix, "PE %d sees other bytes in %s memory than this PE wrote, but a get brings the right ones", pe,
                     s == 0 ? "heap" : "static");
        }
    }
}

void transfers_open(struct mix *mix)
{
    size_t pe_count = (size_t)mix->pe_count;
    if (pe_count > STATIC_PES)
        mix_fail(mix, "at most %d PEs", STATIC_PES);
    struct transfers *t = mix->transfers = mix_private(mix, 1, sizeof(*t));
    size_t bytes = REGIONS_BYTES / (pe_count * pe_count) / 64 * 64;
    bytes = bytes < mix->bytes_max ? bytes : (mix->bytes_max + 63) / 64 * 64;
    t->shelves[0] = (struct shelf){.bytes = bytes, .regions = mix_symmetric(mix, pe_count, bytes)};
    t->shelves[1] = (struct shelf){.bytes = STATIC_BYTES, .regions = static_regions};
    for (int s = 0; s < 2; s++) {
        t->shelves[s].mirrors = mix_private(mix, pe_count, t->shelves[s].bytes);
        t->shelves[s].hash_seen = mix_symmetric(mix, pe_count, sizeof(uint64_t));
    }
    t->library_bytes = bytes;
    t->library = mix_symmetric(mix, bytes, 1);
    uint64_t key = mix_hash(mix->seed, (uint64_t)mix->me, 1);
    for (size_t at = 0; at < bytes; at++)
        t->library[at] = (uint8_t)(mix_hash(key, at >> 3, 0) >> at % 8 * 8);
    t->scratch = mix_private(mix, bytes + (size_t)STRIDED_MAX * STRIDE_MAX * 16, 1);
}

void transfers_close(struct mix *mix)
{
    struct transfers *t = mix->transfers;
    shmem_free(t->library);
    for (int s = 1; s >= 0; s--) {
        shmem_free(t->shelves[s].hash_seen);
        free(t->shelves[s].mirrors);
    }
    shmem_free(t->shelves[0].regions);
    free(t->scratch);
    free(t);
}
