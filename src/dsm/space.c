/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/space.h"

#include <errno.h>
#include <shmem.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "dsm/detect.h"
#include "dsm/memory.h"
#include "dsm/net.h"

#ifdef __SANITIZE_THREAD__ /* keeps its own tables everywhere else */
#define FIRST_CANDIDATE 0x7e8000000000ull
#define CANDIDATE_STEP  0x001000000000ull
#else
#define FIRST_CANDIDATE 0x200000000000ull
#define CANDIDATE_STEP  0x010000000000ull
#endif
#define CANDIDATE_COUNT 48
#define CLAIMED         UINT64_MAX /* a PE is about to take a slot for the chunk */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static bool reserve_at(uint64_t address, uint64_t bytes)
{
    void *got = mmap((void *)address, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != MAP_FAILED && got != (void *)address) { /* kernels before 4.17 take the address as a hint */
        munmap(got, bytes);
        return false;
    }
    return got != MAP_FAILED;
}

/* Each PE says whether it could; the address counts if all could. */
bool quoit_dsm_space_all(struct quoit_dsm *dsm, bool could)
{
    dsm->words[QUOIT_DSM_AGREE] = could;
    shmem_barrier_all();
    bool all = true;
    for (int pe = 0; pe < dsm->pe_count; pe++) {
        uint64_t word;
        shmem_getmem(&word, &dsm->words[QUOIT_DSM_AGREE], sizeof word, pe);
        all = all && word != 0;
    }
    shmem_barrier_all();
    return all;
}

void quoit_dsm_space_reserve(struct quoit_dsm *dsm)
{
    for (uint64_t i = 0; i < CANDIDATE_COUNT; i++) {
        uint64_t address = FIRST_CANDIDATE + i * CANDIDATE_STEP;
        bool could = reserve_at(address, dsm->space_bytes);
        if (quoit_dsm_space_all(dsm, could)) {
            dsm->space = (char *)address;
            return;
        }
        if (could)
            munmap((void *)address, dsm->space_bytes);
    }
    quoit_dsm_wrong("no range of %llu MiB is free at the same address on all PEs; a smaller DSM_SPACE, or a larger "
                    "ulimit -v, helps",
                    (unsigned long long)(dsm->space_bytes >> 20));
}

void quoit_dsm_space_release(struct quoit_dsm *dsm)
{
    munmap(dsm->space, dsm->space_bytes);
}

/* One PE wins the claim and takes the slot, so that none is wasted; the others wait for its word. */
static int32_t resolve_slot(struct quoit_dsm *dsm, uint64_t chunk)
{
    int directory = (int)(chunk % (uint64_t)dsm->pe_count);
    uint64_t *word = &dsm->chunks[chunk / (uint64_t)dsm->pe_count];
    uint64_t found = quoit_dsm_compare_swap(dsm, word, 0, CLAIMED, directory);
    if (found == 0) {
        uint64_t slot = quoit_dsm_add(dsm, &dsm->words[QUOIT_DSM_NEXT_SLOT], 1, 0);
        if (slot >= dsm->slot_count)
            quoit_dsm_wrong(
                "all %llu MiB of DSM_MEMORY are in use; a larger DSM_MEMORY, and SHMEM_SYMMETRIC_SIZE, helps",
                (unsigned long long)(dsm->slot_count << dsm->chunk_shift >> 20));
        quoit_dsm_set(dsm, word, slot + 1, directory);
        return (int32_t)slot;
    }
    while (found == CLAIMED) {
        quoit_dsm_relax();
        found = quoit_dsm_fetch(dsm, word, directory);
    }
    return (int32_t)found - 1;
}

static void take_part(void *start, uint64_t bytes, int pe)
{
    int error = quoit_dsm_memory_take(start, bytes, pe);
    if (error == ENOMEM)
        quoit_dsm_wrong("PE %d has no memory for %llu KiB more of shared pages: less than 64 MiB would remain of its "
                        "machine, or of its control group; a larger limit (memory.max), or homes of pages on more "
                        "hosts, helps",
                        pe, (unsigned long long)(bytes + 1023) >> 10);
    if (error)
        quoit_dsm_wrong("PE %d cannot take memory for shared pages: %s", pe, strerror(error));
}

static void take_versions(struct quoit_dsm *dsm, uint64_t page, uint64_t count, int pe)
{
    uint64_t row_bytes = (uint64_t)dsm->pe_count * sizeof *dsm->version;
    take_part(&dsm->version[page * (uint64_t)dsm->pe_count], count * row_bytes, pe);
}

/* Of this PE's versions those of whole slots: a release may be about any page of them. */
static void take_own_versions(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    for (uint64_t slot = page / dsm->chunk_pages; slot <= (page + count - 1) / dsm->chunk_pages; slot++) {
        if (__atomic_load_n(&dsm->has_rows[slot], __ATOMIC_RELAXED))
            continue;
        take_versions(dsm, slot * dsm->chunk_pages, dsm->chunk_pages, dsm->me);
        __atomic_store_n(&dsm->has_rows[slot], 1, __ATOMIC_RELAXED);
    }
}

void quoit_dsm_take(struct quoit_dsm *dsm, uint64_t page, uint64_t count, int pe)
{
    bool is_own = pe == dsm->me, has_masters = dsm->masters != dsm->frames;
    for (; is_own && count > 0 && __atomic_load_n(&dsm->is_taken[page], __ATOMIC_RELAXED); count--)
        page++;
    if (count == 0)
        return;
    if (is_own || !has_masters)
        take_part(quoit_dsm_frame(dsm, page), count << dsm->page_shift, pe);
    if (has_masters)
        take_part(quoit_dsm_master(dsm, page), count << dsm->page_shift, pe);
    if (is_own)
        take_own_versions(dsm, page, count);
    else
        take_versions(dsm, page, count, pe);
    for (uint64_t i = 0; is_own && i < count; i++)
        __atomic_store_n(&dsm->is_taken[page + i], 1, __ATOMIC_RELAXED);
}

void quoit_dsm_take_twins(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    for (; count > 0 && dsm->has_room[page]; count--)
        page++;
    if (count == 0)
        return;
    take_part(quoit_dsm_twin(dsm, page), count << dsm->page_shift, dsm->me);
    memset(&dsm->has_room[page], true, count);
}

static void remember(struct quoit_dsm *dsm, uint64_t chunk, int32_t slot)
{
    dsm->slot_of_chunk[chunk] = slot + 1;
    dsm->chunk_of_slot[slot] = (uint32_t)chunk;
    uint64_t at = dsm->mapped_count++;
    for (; at > 0 && dsm->mapped[at - 1] > chunk; at--)
        dsm->mapped[at] = dsm->mapped[at - 1];
    dsm->mapped[at] = (uint32_t)chunk;
}

/* mremap of nothing makes a second mapping of shared memory, whatever file is behind it. It comes to its place without
 * access, so that other threads which touch it fault and wait for the lock. The direct protocol maps the frames of PE 0
 * on every PE; its pages do not fault one by one, so the kernel takes each when it is touched. */
static void map_chunk(struct quoit_dsm *dsm, uint64_t chunk, int32_t slot)
{
    char *at = quoit_dsm_address_of(dsm, chunk << dsm->chunk_shift);
    uint64_t bytes = quoit_dsm_chunk_used(dsm, chunk);
    char *frames = dsm->is_direct ? dsm->peers[0].masters : dsm->frames;
    char *from = frames + ((uint64_t)slot << dsm->chunk_shift);
    char *second = mremap(from, 0, bytes, MREMAP_MAYMOVE);
    if (second == MAP_FAILED || mprotect(second, bytes, PROT_NONE) != 0 ||
        mremap(second, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
        quoit_dsm_wrong("the symmetric heap cannot be mapped a second time: %s%s", strerror(errno),
                        errno == ENOMEM ? "; is vm.max_map_count reached?" : "");
    if (!dsm->is_direct)
        dsm->detector->watch(dsm, at, bytes);
    else if (mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0)
        quoit_dsm_wrong("mprotect of a chunk failed: %s", strerror(errno));
    remember(dsm, chunk, slot);
}

uint64_t quoit_dsm_space_page(struct quoit_dsm *dsm, const void *address)
{
    uint64_t offset = quoit_dsm_offset_of(dsm, address);
    quoit_assert(offset < dsm->space_bytes);
    uint64_t chunk = offset >> dsm->chunk_shift;
    if (dsm->slot_of_chunk[chunk] == 0) {
        dsm->stats.chunk_faults++;
        map_chunk(dsm, chunk, resolve_slot(dsm, chunk));
    }
    return quoit_dsm_page_of_slot(dsm, dsm->slot_of_chunk[chunk] - 1) + (offset % dsm->chunk_bytes >> dsm->page_shift);
}
