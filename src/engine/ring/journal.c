/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/ring/journal.h"

#include <stddef.h>

#include "base/assert.h"

#define WORD_BYTES 8u
_Static_assert(sizeof(struct quoit_journal_entry) % WORD_BYTES == 0, "entries stay aligned");

static struct quoit_journal_entry *entry_at(struct quoit_journal *journal, uint64_t at)
{
    return (struct quoit_journal_entry *)(void *)(journal->bytes + at % QUOIT_JOURNAL_BYTES);
}

static void let_go(struct quoit_journal *journal, uint64_t known)
{
    while (journal->head != journal->tail) {
        const struct quoit_journal_entry *entry = entry_at(journal, journal->head);
        if (entry->bytes != 0 && (entry->sequence == 0 || entry->sequence > known))
            return;
        journal->head += entry->total_bytes;
    }
}

struct quoit_journal_entry *quoit_journal_reserve(struct quoit_journal *journal, uint32_t bytes, uint64_t known)
{
    quoit_assert(bytes != 0);
    quoit_assert(bytes <= QUOIT_JOURNAL_PUT_MAX);
    uint32_t total = (uint32_t)sizeof(struct quoit_journal_entry) + (bytes + WORD_BYTES - 1) / WORD_BYTES * WORD_BYTES;
    uint32_t to_end = QUOIT_JOURNAL_BYTES - (uint32_t)(journal->tail % QUOIT_JOURNAL_BYTES);
    uint32_t gap = to_end < total + sizeof(struct quoit_journal_entry) && to_end != total ? to_end : 0;
    if (QUOIT_JOURNAL_BYTES - (journal->tail - journal->head) < (uint64_t)gap + total) {
        let_go(journal, known);
        if (QUOIT_JOURNAL_BYTES - (journal->tail - journal->head) < (uint64_t)gap + total)
            return NULL;
    }
    if (__builtin_expect(gap != 0, 0)) {
        struct quoit_journal_entry *rest = entry_at(journal, journal->tail);
        rest->bytes = 0;
        rest->total_bytes = gap;
        journal->tail += gap;
    }
    struct quoit_journal_entry *entry = entry_at(journal, journal->tail);
    entry->sequence = 0;
    entry->bytes = (uint16_t)bytes;
    entry->total_bytes = total;
    journal->tail += total;
    return entry;
}

struct quoit_journal_entry *quoit_journal_next(struct quoit_journal *journal, const struct quoit_journal_entry *after,
                                               uint64_t arrived)
{
    uint64_t at = journal->head;
    if (after != NULL) { /* how far it stands behind the head */
        uint64_t from = (uint64_t)((const char *)after - journal->bytes);
        at += (from - journal->head % QUOIT_JOURNAL_BYTES + QUOIT_JOURNAL_BYTES) % QUOIT_JOURNAL_BYTES;
        at += after->total_bytes;
    }
    for (; at != journal->tail; at += entry_at(journal, at)->total_bytes) {
        struct quoit_journal_entry *entry = entry_at(journal, at);
        if (entry->bytes != 0 && entry->sequence > arrived)
            return entry;
    }
    return NULL;
}
