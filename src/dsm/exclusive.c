/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/exclusive.h"

#include "dsm/coherence.h"
#include "dsm/detect.h"
#include "dsm/net.h"

#define WORD_PAGES QUOIT_DSM_MARK_PAGES

static bool is_off(const struct quoit_dsm *dsm)
{
    return dsm->options.values[QUOIT_DSM_EXCLUSIVE_MODE] != 0;
}

static uint64_t bits_of(uint64_t first, uint64_t count)
{
    return (count < WORD_PAGES ? (1ull << count) - 1 : UINT64_MAX) << first;
}

void quoit_dsm_exclusive_end(struct quoit_dsm *dsm, uint64_t page, uint64_t count, int home)
{
    bool is_new = false;
    if (is_off(dsm))
        return;
    for (uint64_t end = page + count; page < end;) {
        uint64_t first = page % WORD_PAGES, n = end - page < WORD_PAGES - first ? end - page : WORD_PAGES - first;
        uint64_t word = page / WORD_PAGES, missing = bits_of(first, n) & ~dsm->marked[word];
        if (missing != 0)
            quoit_dsm_or(dsm, &dsm->marks[word], missing, home);
        is_new = is_new || missing != 0;
        dsm->marked[word] |= missing;
        page += n;
    }
    if (!is_new)
        return;
    quoit_dsm_fence(dsm);
    quoit_dsm_add(dsm, &dsm->words[QUOIT_DSM_MARK_COUNT], 1, home);
}

void quoit_dsm_exclusive_mark(struct quoit_dsm *dsm, uint64_t page)
{
    if (!quoit_dsm_exclusive_may(dsm, page))
        return;
    quoit_dsm_or(dsm, &dsm->marks[page / WORD_PAGES], 1ull << page % WORD_PAGES, dsm->me);
    quoit_dsm_fence(dsm);
    quoit_dsm_add(dsm, &dsm->words[QUOIT_DSM_MARK_COUNT], 1, dsm->me);
}

bool quoit_dsm_exclusive_may(const struct quoit_dsm *dsm, uint64_t page)
{
    return !is_off(dsm) &&
           (__atomic_load_n(&dsm->marks[page / WORD_PAGES], __ATOMIC_ACQUIRE) >> page % WORD_PAGES & 1) == 0;
}

static void leave(struct quoit_dsm *dsm, uint64_t page)
{
    struct quoit_dsm_move move =
        quoit_dsm_page_move(dsm->states[page], QUOIT_DSM_SHARE, true, dsm->detector->sees_writes);
    quoit_dsm_page_set(dsm, page, move.next);
    dsm->dirty[dsm->dirty_count++] = (uint32_t)page;
    dsm->stats.exclusive_ends++;
}

void quoit_dsm_exclusive_review(struct quoit_dsm *dsm)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with the atomics of exclusive_end, which the fetch follows */
    uint64_t count = __atomic_load_n(&dsm->words[QUOIT_DSM_MARK_COUNT], __ATOMIC_ACQUIRE);
    if (count == dsm->marks_seen || dsm->options.values[QUOIT_DSM_BREAK] == QUOIT_DSM_BREAK_EXCLUSIVE)
        return;
    dsm->marks_seen = count;
    for (uint64_t i = 0; i < dsm->mapped_count; i++) {
        int32_t slot = dsm->slot_of_chunk[dsm->mapped[i]] - 1;
        uint64_t first = quoit_dsm_page_of_slot(dsm, slot);
        for (uint64_t page = first; dsm->exclusive_in[slot] > 0 && page < first + dsm->chunk_pages; page++) {
            if (dsm->states[page] == QUOIT_DSM_EXCLUSIVE && !quoit_dsm_exclusive_may(dsm, page))
                leave(dsm, page);
        }
    }
}
