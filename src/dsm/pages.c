/* SPDX-License-Identifier: BSD-3-Clause */
/* Routines by which a program controls its pages. */
#include <dsm.h>
#include <shmem.h>
#include <string.h>

#include "dsm/barrier.h"
#include "dsm/coherence.h"
#include "dsm/home.h"
#include "dsm/net.h"
#include "dsm/profile.h"
#include "dsm/races.h"
#include "dsm/space.h"
#include "dsm/stats.h"

static struct quoit_dsm *running_for(const void *address, size_t bytes, const char *call)
{
    struct quoit_dsm *dsm = quoit_dsm_running(call);
    if (!quoit_dsm_space_has(dsm, address) || bytes > dsm->space_bytes ||
        (bytes > 0 && !quoit_dsm_space_has(dsm, (const char *)address + bytes - 1)))
        quoit_dsm_wrong("%s: %zu bytes at %p are not in shared memory", call, bytes, address);
    return dsm;
}

int dsm_home(const void *address)
{
    QUOIT_DSM_CALL("dsm_home");
    struct quoit_dsm *dsm = running_for(address, 1, "dsm_home");
    if (dsm->is_direct)
        return 0;
    quoit_dsm_lock(dsm);
    int home = quoit_dsm_home_of(dsm, quoit_dsm_space_page(dsm, address));
    quoit_dsm_unlock(dsm);
    return home;
}

void dsm_prefetch(const void *address, size_t bytes)
{
    QUOIT_DSM_CALL("dsm_prefetch");
    struct quoit_dsm *dsm = running_for(address, bytes, "dsm_prefetch");
    if (quoit_dsm_races_reads(dsm)) /* which must see each load fault */
        return;
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    quoit_dsm_lock(dsm);
    quoit_dsm_touch(dsm, address, bytes, false);
    quoit_dsm_unlock(dsm);
    quoit_dsm_span_end(dsm, QUOIT_DSM_FETCHING, timer);
}

void dsm_migrate(void *address, size_t bytes, int pe)
{
    QUOIT_DSM_CALL("dsm_migrate");
    struct quoit_dsm *dsm = running_for(address, bytes, "dsm_migrate");
    if (pe < 0 || pe >= dsm->pe_count)
        quoit_dsm_wrong("dsm_migrate: pe is %d, but the job has %d PEs (0..%d)", pe, dsm->pe_count, dsm->pe_count - 1);
    quoit_dsm_barrier(dsm);
    if (dsm->is_direct || bytes == 0)
        return;
    char *at = (char *)((uintptr_t)address & ~(dsm->page_bytes - 1)), *end = (char *)address + bytes;
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    quoit_dsm_lock(dsm);
    for (char *page = at; page < end; page += dsm->page_bytes)
        quoit_dsm_home_of(dsm, quoit_dsm_space_page(dsm, page));
    shmem_barrier_all();
    for (; at < end; at += dsm->page_bytes) {
        uint64_t page = quoit_dsm_space_page(dsm, at);
        quoit_dsm_home_move(dsm, page, quoit_dsm_home_of(dsm, page), pe);
    }
    shmem_barrier_all();
    quoit_dsm_unlock(dsm);
    quoit_dsm_span_end(dsm, QUOIT_DSM_FETCHING, timer);
}

/* Only what this PE has a copy of: a range that nobody has touched occupies no memory afterwards either. */
void dsm_acquire(const void *address, size_t bytes)
{
    QUOIT_DSM_CALL("dsm_acquire");
    struct quoit_dsm *dsm = running_for(address, bytes, "dsm_acquire");
    if (dsm->is_direct || bytes == 0)
        return;
    const char *at = (const char *)((uintptr_t)address & ~(dsm->page_bytes - 1)), *end = (const char *)address + bytes;
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    quoit_dsm_lock(dsm);
    quoit_dsm_release(dsm);
    for (; at < end; at += dsm->page_bytes) {
        if (dsm->slot_of_chunk[quoit_dsm_offset_of(dsm, at) >> dsm->chunk_shift] == 0)
            continue;
        uint64_t page = quoit_dsm_space_page(dsm, at);
        if (quoit_dsm_home_known(dsm, page) != dsm->me || dsm->races)
            quoit_dsm_drop(dsm, page);
    }
    quoit_dsm_unlock(dsm);
    quoit_dsm_span_end(dsm, QUOIT_DSM_FETCHING, timer);
}

void dsm_release(const void *address, size_t bytes)
{
    QUOIT_DSM_CALL("dsm_release");
    struct quoit_dsm *dsm = running_for(address, bytes, "dsm_release");
    if (dsm->is_direct)
        return;
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    quoit_dsm_lock(dsm);
    quoit_dsm_release(dsm);
    quoit_dsm_diffs_settle(dsm);
    quoit_dsm_unlock(dsm);
    quoit_dsm_span_end(dsm, QUOIT_DSM_DIFFING, timer);
}

/* Atomics */

enum deed { FETCH, ADD, SWAP, COMPARE_SWAP };

static uint64_t at_home(struct quoit_dsm *dsm, uint64_t *master, int home, enum deed deed, uint64_t expected,
                        uint64_t value)
{
    switch (deed) {
    case FETCH:
        return quoit_dsm_fetch(dsm, master, home);
    case ADD:
        return quoit_dsm_add(dsm, master, value, home);
    case SWAP:
        return quoit_dsm_swap(dsm, master, value, home);
    case COMPARE_SWAP:
        break;
    }
    return quoit_dsm_compare_swap(dsm, master, expected, value, home);
}

/* The own copy, and its twin, are brought up to date too, so that a diff does not take the new value for a write of the
 * program's. */
static uint64_t update(const uint64_t *word, enum deed deed, uint64_t expected, uint64_t value, const char *call)
{
    struct quoit_dsm *dsm = running_for(word, sizeof *word, call);
    if ((uintptr_t)word % sizeof *word != 0)
        quoit_dsm_wrong("%s: word is %p, but its address is a multiple of 8", call, (const void *)word);
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    quoit_dsm_lock(dsm);
    uint64_t page = quoit_dsm_space_page(dsm, word), offset = (uintptr_t)word & (dsm->page_bytes - 1);
    int home = dsm->is_direct ? 0 : quoit_dsm_home_of(dsm, page);
    uint64_t *own = (uint64_t *)(quoit_dsm_frame(dsm, page) + offset);
    uint64_t *master = (uint64_t *)(quoit_dsm_master(dsm, page) + offset);
    uint64_t before = at_home(dsm, master, home, deed, expected, value), after = deed == ADD ? before + value : value;
    bool is_changed = deed != FETCH && (deed != COMPARE_SWAP || before == expected);
    if (is_changed && (home != dsm->me || dsm->races) && !dsm->is_direct && dsm->states[page] != QUOIT_DSM_INVALID) {
        memcpy(own, &after, sizeof after);
        if (dsm->has_twin[page])
            memcpy(quoit_dsm_twin(dsm, page) + offset, &after, sizeof after);
    }
    if (is_changed && !dsm->is_direct)
        quoit_dsm_add_extra(dsm, page);
    quoit_dsm_unlock(dsm);
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
    return before;
}

uint64_t dsm_fetch(const uint64_t *word)
{
    QUOIT_DSM_CALL("dsm_fetch");
    return update(word, FETCH, 0, 0, "dsm_fetch");
}

uint64_t dsm_fetch_add(uint64_t *word, uint64_t value)
{
    QUOIT_DSM_CALL("dsm_fetch_add");
    return update(word, ADD, 0, value, "dsm_fetch_add");
}

uint64_t dsm_swap(uint64_t *word, uint64_t value)
{
    QUOIT_DSM_CALL("dsm_swap");
    return update(word, SWAP, 0, value, "dsm_swap");
}

uint64_t dsm_compare_swap(uint64_t *word, uint64_t expected, uint64_t value)
{
    QUOIT_DSM_CALL("dsm_compare_swap");
    return update(word, COMPARE_SWAP, expected, value, "dsm_compare_swap");
}
