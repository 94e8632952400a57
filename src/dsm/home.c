/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/home.h"

#include <shmem.h>

#include "dsm/coherence.h"
#include "dsm/exclusive.h"
#include "dsm/net.h"
#include "dsm/space.h"

#define SEVERAL (-1)
#define DOUBT   (1ull << 63) /* with a position */

/* Several PEs may take the same memory at the same time. Only then is the mark removed, so who does not find it need
 * not. */
static void take_at_home(struct quoit_dsm *dsm, uint64_t page, uint64_t count, int home)
{
    quoit_dsm_take(dsm, page, count, home);
    for (uint64_t at = page; at < page + count; at++)
        quoit_dsm_and(dsm, &dsm->homes[at], ~QUOIT_DSM_UNTAKEN, quoit_dsm_directory_of(dsm, at));
}

void quoit_dsm_homes_learn(struct quoit_dsm *dsm, uint64_t page, const uint64_t *words, uint64_t count)
{
    for (uint64_t i = 0, end; i < count; i = end) {
        end = i + 1;
        if (quoit_dsm_home_in(words[i]) == QUOIT_DSM_NO_HOME ||
            quoit_dsm_home_known(dsm, page + i) != QUOIT_DSM_NO_HOME)
            continue;
        while (end < count && words[end] == words[i] && quoit_dsm_home_known(dsm, page + end) == QUOIT_DSM_NO_HOME)
            end++;
        if (words[i] & QUOIT_DSM_UNTAKEN)
            take_at_home(dsm, page + i, end - i, quoit_dsm_home_in(words[i]));
        for (uint64_t at = i; at < end; at++)
            quoit_dsm_home_learn(dsm, page + at, words[at]);
    }
}

void quoit_dsm_written(struct quoit_dsm *dsm, uint64_t page, int writer)
{
    if (!dsm->writers)
        return;
    if (dsm->writers[page] == 0) {
        dsm->writers[page] = (int16_t)(writer + 1);
        dsm->written[dsm->written_count++] = (uint32_t)page;
    } else if (dsm->writers[page] != writer + 1) {
        dsm->writers[page] = SEVERAL;
    }
}

/* The new home fetches the page even if it has a copy, which may lack writes that this PE never had to see. The
 * directory is updated first; no other PE reads it before the next barrier. */
void quoit_dsm_home_move(struct quoit_dsm *dsm, uint64_t page, int from, int to)
{
    if (from == to)
        return;
    if (to == dsm->me) {
        quoit_dsm_exclusive_mark(dsm, page); /* there may be copies */
        if (dsm->states[page] != QUOIT_DSM_INVALID)
            quoit_dsm_drop(dsm, page);
        quoit_dsm_take(dsm, page, 1, dsm->me);
        char *master = quoit_dsm_master(dsm, page);
        quoit_dsm_get(dsm, master, master, dsm->page_bytes, from);
        quoit_dsm_set(dsm, &dsm->homes[page], quoit_dsm_home_word(to, dsm->kind_of[page]),
                      quoit_dsm_directory_of(dsm, page));
        dsm->stats.migrations++;
    } else if (from == dsm->me && dsm->states[page] != QUOIT_DSM_INVALID) {
        quoit_dsm_drop(dsm, page);
    }
    if (dsm->options.values[QUOIT_DSM_BREAK] != QUOIT_DSM_BREAK_MOVE || dsm->me != dsm->pe_count - 1 || to == dsm->me)
        quoit_dsm_home_set(dsm, page, to);
    if (dsm->streaks)
        dsm->streaks[page].age = dsm->streaks_age - 1;
    dsm->need_of[page] = dsm->epoch - 1; /* all its diffs are in the content, but their versions do not move */
}

/* The home of a page, read from its directory if this PE does not know it. */
static int home_now(struct quoit_dsm *dsm, uint64_t page)
{
    if (quoit_dsm_home_known(dsm, page) == QUOIT_DSM_NO_HOME) {
        uint64_t word = quoit_dsm_fetch(dsm, &dsm->homes[page], quoit_dsm_directory_of(dsm, page));
        quoit_dsm_homes_learn(dsm, page, &word, 1);
    }
    return quoit_dsm_home_known(dsm, page);
}

uint64_t quoit_dsm_homes_doubt(struct quoit_dsm *dsm)
{
    if (!dsm->writers || (!dsm->has_doubt && quoit_dsm_is_single_threaded()))
        return 0;
    dsm->has_doubt = !quoit_dsm_is_single_threaded(); /* for good: its threads' notices may belong to the next epoch */
    return DOUBT;
}

bool quoit_dsm_homes_sure(const struct quoit_dsm *dsm, uint64_t *heads)
{
    bool is_sure = true;
    for (int pe = 0; pe < dsm->pe_count; pe++) {
        is_sure = is_sure && (heads[pe] & DOUBT) == 0;
        heads[pe] &= ~DOUBT;
    }
    return is_sure;
}

/* Whether a PE wrote more notices in this epoch than its log holds: it has overwritten some that others had not seen.
 */
static bool is_overrun(struct quoit_dsm *dsm, const uint64_t *heads)
{
    bool is_overrun = false;
    for (int pe = 0; pe < dsm->pe_count; pe++) {
        is_overrun = is_overrun || heads[pe] - dsm->heads_before[pe] > dsm->options.values[QUOIT_DSM_LOG];
        dsm->heads_before[pe] = heads[pe];
    }
    return is_overrun;
}

/* Whether the streak of the page's writer of this epoch has now become long enough. A longer one says nothing new: the
 * home is there. */
static bool is_settled(struct quoit_dsm *dsm, uint64_t page)
{
    struct quoit_dsm_streak *streak = &dsm->streaks[page];
    int16_t writer = dsm->writers[page];
    if (writer == SEVERAL || streak->writer != writer || streak->age != dsm->streaks_age)
        *streak = (struct quoit_dsm_streak){dsm->streaks_age, writer, 0};
    if (writer == SEVERAL || streak->count == QUOIT_DSM_STREAK)
        return false;
    return ++streak->count == QUOIT_DSM_STREAK;
}

/* Two barriers: directories change after all PEs have read them, and no PE continues before all have moved. */
static void move(struct quoit_dsm *dsm, const uint32_t *pages, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        home_now(dsm, pages[i]);
    shmem_barrier_all();
    for (uint64_t i = 0; i < count; i++) {
        struct quoit_dsm_streak streak = dsm->streaks[pages[i]];
        if ((dsm->kind_of[pages[i]] & QUOIT_DSM_PLACED) == 0)
            quoit_dsm_home_move(dsm, pages[i], home_now(dsm, pages[i]), streak.writer - 1);
        dsm->streaks[pages[i]] = streak;
    }
    shmem_barrier_all();
}

/* A doubt of this PE that has come up in this barrier is about entries that their PE has overwritten since it left: so
 * at this barrier no page moves. */
void quoit_dsm_homes_move(struct quoit_dsm *dsm, const uint64_t *heads, bool is_sure)
{
    if (!dsm->writers)
        return;
    bool may_move = !is_overrun(dsm, heads) && is_sure && !dsm->has_doubt;
    if (!may_move)
        dsm->streaks_age++;
    uint64_t count = 0;
    for (uint64_t i = 0; i < dsm->written_count; i++) {
        uint32_t page = dsm->written[i];
        if (may_move && is_settled(dsm, page))
            dsm->written[count++] = page;
        dsm->writers[page] = 0;
    }
    dsm->written_count = 0;
    if (count > 0)
        move(dsm, dsm->written, count);
}
