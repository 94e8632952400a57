/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/recent.h"

#include <assert.h>

#define LAP_BITS      18
#define LAP_MASK      ((1ull << LAP_BITS) - 1)
#define POSITION_BITS 36
#define POSITION_MASK ((1ull << POSITION_BITS) - 1)

static_assert(QUOIT_DSM_RECENT_WRITERS <= 1u << (64 - POSITION_BITS - LAP_BITS), "a record has room for the writer");

static uint64_t place_of(int writer, uint64_t position)
{
    return (uint64_t)writer << POSITION_BITS | (position & POSITION_MASK);
}

/* A lap is never 0, as a slot is that was never written. */
void quoit_dsm_recent_add(struct quoit_dsm_recent *recent, int writer, uint64_t position, uint64_t notice)
{
    struct quoit_dsm_record *slot = &recent->records[recent->added % QUOIT_DSM_RECENT];
    uint64_t lap = recent->added++ / QUOIT_DSM_RECENT % LAP_MASK + 1;
    __atomic_store_n(&slot->what, notice << LAP_BITS | lap, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->whose, place_of(writer, position) << LAP_BITS | lap, __ATOMIC_RELAXED);
}

bool quoit_dsm_recent_find(struct quoit_dsm_records records, int writer, uint64_t position, uint64_t *notice_out)
{
    for (uint32_t i = 0; i < records.count; i++) {
        uint64_t whose = __atomic_load_n(&records.items[i].whose, __ATOMIC_RELAXED);
        uint64_t what = __atomic_load_n(&records.items[i].what, __ATOMIC_RELAXED);
        if (whose >> LAP_BITS == place_of(writer, position) && (whose & LAP_MASK) != 0 &&
            (whose & LAP_MASK) == (what & LAP_MASK)) {
            *notice_out = what >> LAP_BITS;
            return true;
        }
    }
    return false;
}

/* How many notices of a writer the PE may lack: the last ones up to known. */
static uint64_t lack_of(const uint64_t *known, const uint64_t *seen, uint64_t writer, int pe)
{
    uint64_t from = __atomic_load_n(&seen[writer], __ATOMIC_RELAXED);
    return writer != (uint64_t)pe && known[writer] > from ? known[writer] - from : 0;
}

bool quoit_dsm_recent_hand(const struct quoit_dsm_recent *recent, const uint64_t *known, const uint64_t *seen,
                           int pe_count, int pe, struct quoit_dsm_handed *handed)
{
    uint32_t count = 0;
    for (uint64_t writer = 0; writer < (uint64_t)pe_count; writer++) {
        if (lack_of(known, seen, writer, pe) == 0)
            continue;
        if (count == QUOIT_DSM_HANDED_WRITERS)
            return false;
        handed->items[count++] = (struct quoit_dsm_record){known[writer], writer};
    }
    handed->writer_count = count;
    uint64_t end = count > 0 ? recent->added : 0;
    for (uint64_t at = end > QUOIT_DSM_RECENT ? end - QUOIT_DSM_RECENT : 0; at < end; at++) {
        struct quoit_dsm_record one = recent->records[at % QUOIT_DSM_RECENT];
        uint64_t place = one.whose >> LAP_BITS, writer = place >> POSITION_BITS;
        uint64_t before_known = (known[writer] - place) & POSITION_MASK; /* at least 1 */
        if (before_known <= lack_of(known, seen, writer, pe))
            handed->items[count++] = one;
    }
    handed->record_count = count - handed->writer_count;
    return true;
}
