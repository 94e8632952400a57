/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/notice.h"

#include "base/assert.h"
#include "dsm/coherence.h"
#include "dsm/net.h"

#define ENTRIES_AT_ONCE 256
#define COUNT_BITS      16
#define LAP_BITS        18
#define COUNT_MAX       ((1u << COUNT_BITS) - 1)
#define SHOWN_AGE       (QUOIT_DSM_RECENT / 4) /* notices that another PE may believe are missing here */

static uint64_t lap_of(const struct quoit_dsm *dsm, uint64_t position)
{
    return (position / dsm->options.values[QUOIT_DSM_LOG] + 1) & ((1u << LAP_BITS) - 1);
}

/* page: 30 bits, count: 16, lap: 18. Without the lap it is the notice. */
static uint64_t entry_of(const struct quoit_dsm *dsm, uint64_t position, uint64_t page, uint64_t count)
{
    return page << (COUNT_BITS + LAP_BITS) | count << LAP_BITS | lap_of(dsm, position);
}

static uint64_t page_of(uint64_t entry)
{
    return entry >> (COUNT_BITS + LAP_BITS);
}

static uint64_t count_of(uint64_t entry)
{
    return entry >> LAP_BITS & COUNT_MAX;
}

static uint64_t *slot_at(const struct quoit_dsm *dsm, uint64_t *log, uint64_t position)
{
    return &log[position & (dsm->options.values[QUOIT_DSM_LOG] - 1)];
}

static void make_room(struct quoit_dsm *dsm, uint64_t position)
{
    if (position - dsm->settled < dsm->options.values[QUOIT_DSM_LOG] / 4)
        return;
    quoit_dsm_diffs_settle(dsm);
    dsm->settled = position;
}

uint64_t quoit_dsm_notice_add(struct quoit_dsm *dsm, uint64_t *position, uint64_t interval_start, uint64_t page)
{
    if (*position > interval_start) {
        uint64_t *last = slot_at(dsm, dsm->log, *position - 1);
        if (page - page_of(*last) < count_of(*last))
            return *position;
        if (page == page_of(*last) + count_of(*last) && count_of(*last) < COUNT_MAX) {
            __atomic_store_n(last, entry_of(dsm, *position - 1, page_of(*last), count_of(*last) + 1), __ATOMIC_RELAXED);
            return *position;
        }
    }
    make_room(dsm, *position);
    __atomic_store_n(slot_at(dsm, dsm->log, *position), entry_of(dsm, *position, page, 1), __ATOMIC_RELEASE);
    dsm->stats.notices_sent++;
    return ++*position;
}

void quoit_dsm_notice_add_empty(struct quoit_dsm *dsm, uint64_t *position)
{
    make_room(dsm, *position);
    __atomic_store_n(slot_at(dsm, dsm->log, *position), entry_of(dsm, *position, 0, 0), __ATOMIC_RELEASE);
    ++*position;
}

static uint64_t notice_of(uint64_t entry)
{
    return entry >> LAP_BITS;
}

/* The log has room for all records of the ring. */
void quoit_dsm_notice_publish(struct quoit_dsm *dsm, uint64_t position)
{
    uint64_t at = dsm->known[dsm->me];
    if (position - at > QUOIT_DSM_RECENT)
        at = position - QUOIT_DSM_RECENT;
    for (; at < position; at++)
        quoit_dsm_recent_add(&dsm->recent, dsm->me, at, notice_of(*slot_at(dsm, dsm->log, at)));
    __atomic_store_n(&dsm->known[dsm->me], position, __ATOMIC_RELEASE);
}

/* Up to ENTRIES_AT_ONCE entries, not beyond the end of the log: from memory if the log is mapped, else from the records
 * as far as they have them, else by a get. */
static uint64_t read_entries(struct quoit_dsm *dsm, int writer, uint64_t from, uint64_t to,
                             struct quoit_dsm_records records, uint64_t *entries)
{
    uint64_t log_count = dsm->options.values[QUOIT_DSM_LOG];
    uint64_t count = to - from, to_end = log_count - (from & (log_count - 1));
    if (count > to_end)
        count = to_end;
    if (count > ENTRIES_AT_ONCE)
        count = ENTRIES_AT_ONCE;
    if (dsm->peers[writer].log) {
        for (uint64_t i = 0; i < count; i++)
            entries[i] = __atomic_load_n(slot_at(dsm, dsm->peers[writer].log, from + i), __ATOMIC_ACQUIRE);
        return count;
    }
    uint64_t found = 0, notice;
    for (; found < count && quoit_dsm_recent_find(records, writer, from + found, &notice); found++)
        entries[found] = notice << LAP_BITS | lap_of(dsm, from + found);
    if (found > 0)
        return found;
    quoit_dsm_get(dsm, entries, slot_at(dsm, dsm->log, from), count * sizeof entries[0], writer);
    dsm->stats.log_reads++;
    return count;
}

void quoit_dsm_notice_apply(struct quoit_dsm *dsm, int writer, uint64_t to, struct quoit_dsm_records records,
                            bool is_settled)
{
    uint64_t from = dsm->known[writer], entries[ENTRIES_AT_ONCE];
    uint64_t log_count = dsm->options.values[QUOIT_DSM_LOG];
    bool is_overrun = to > from && to - from > log_count;
    dsm->applied_count += to - from;
    if (is_overrun)
        from = to - log_count;
    while (from < to) {
        uint64_t count = read_entries(dsm, writer, from, to, records, entries);
        for (uint64_t i = 0; i < count; i++, from++) {
            uint64_t page = page_of(entries[i]), page_count = count_of(entries[i]);
            if (entries[i] != entry_of(dsm, from, page, page_count)) {
                is_overrun = true;
                continue;
            }
            dsm->stats.notices_seen++;
            if (!is_settled) /* which every PE applies */
                quoit_dsm_recent_add(&dsm->recent, writer, from, notice_of(entries[i]));
            quoit_dsm_noticed(dsm, page, page_count, writer, from + 1, is_settled);
        }
    }
    if (is_overrun) {
        dsm->stats.log_overruns++;
        dsm->has_doubt = true;
        quoit_dsm_drop_all(dsm);
    }
    __atomic_store_n(&dsm->known[writer], to, __ATOMIC_RELEASE);
}

struct quoit_dsm_records quoit_dsm_notice_read(struct quoit_dsm *dsm, int pe, uint64_t *known)
{
    size_t count = (size_t)dsm->pe_count;
    const uint64_t *there = dsm->peers[pe].known;
    if (there) {
        for (size_t i = 0; i < count; i++)
            known[i] = __atomic_load_n(&there[i], __ATOMIC_ACQUIRE);
    } else {
        quoit_dsm_get(dsm, known, dsm->known, (count + QUOIT_DSM_RECENT_WORDS) * sizeof *known, pe);
        dsm->stats.known_reads++;
        there = known;
    }
    return (struct quoit_dsm_records){(const struct quoit_dsm_record *)(there + count), QUOIT_DSM_RECENT};
}

void quoit_dsm_notice_show(struct quoit_dsm *dsm, int pe)
{
    if (dsm->peers[pe].log || dsm->applied_count - dsm->shown[pe] <= SHOWN_AGE)
        return;
    size_t count = (size_t)dsm->pe_count;
    quoit_dsm_put(dsm, dsm->seen + (size_t)dsm->me * count, dsm->known, count * sizeof *dsm->known, pe);
    dsm->shown[pe] = dsm->applied_count;
}

bool quoit_dsm_notice_hand(struct quoit_dsm *dsm, int pe, struct quoit_dsm_handed *handed)
{
    const uint64_t *seen = dsm->seen + (size_t)pe * (size_t)dsm->pe_count;
    if (!quoit_dsm_recent_hand(&dsm->recent, dsm->known, seen, dsm->pe_count, pe, handed))
        return false;
    for (uint32_t i = 0; i < handed->writer_count; i++)
        handed->items[i].what -= dsm->options.values[QUOIT_DSM_BREAK] == QUOIT_DSM_BREAK_HANDED;
    return true;
}
