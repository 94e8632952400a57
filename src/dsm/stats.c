/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/stats.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dsm/heap.h"
#include "dsm/profile.h"

_Thread_local uint64_t quoit_dsm_inner_ns;
_Thread_local uint64_t quoit_dsm_came_bytes;

static const char *const span_names[] = {"compute", "page", "diff", "lock", "barrier"};

static void print_text(const struct quoit_dsm *dsm, uint64_t wall_ns)
{
    char text[2048];
    int length = snprintf(text, sizeof text, "dsm: PE %d wall %.6f s:", dsm->me, (double)wall_ns / 1e9);
    for (int i = 0; i < QUOIT_DSM_SPAN_COUNT; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, " %s %.6f", span_names[i],
                           (double)dsm->stats.span_ns[i] / 1e9);
    length +=
        snprintf(text + length, sizeof text - (size_t)length, " (service %.6f);", (double)dsm->stats.service_ns / 1e9);
#define X(name)                                                                                                        \
    if (dsm->stats.name != 0)                                                                                          \
        length += snprintf(text + length, sizeof text - (size_t)length, " " #name " %llu",                             \
                           (unsigned long long)dsm->stats.name);
    QUOIT_DSM_COUNTS(X)
#undef X
    length += snprintf(text + length, sizeof text - (size_t)length, "\n");
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        return;
}

static void print_json(const struct quoit_dsm *dsm, uint64_t wall_ns)
{
    char text[2048];
    int length = snprintf(text, sizeof text, "{\"pe\":%d,\"wall_ns\":%llu", dsm->me, (unsigned long long)wall_ns);
    for (int i = 0; i < QUOIT_DSM_SPAN_COUNT; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, ",\"%s_ns\":%llu", span_names[i],
                           (unsigned long long)dsm->stats.span_ns[i]);
    length += snprintf(text + length, sizeof text - (size_t)length, ",\"service_ns\":%llu",
                       (unsigned long long)dsm->stats.service_ns);
#define X(name)                                                                                                        \
    length += snprintf(text + length, sizeof text - (size_t)length, ",\"" #name "\":%llu",                             \
                       (unsigned long long)dsm->stats.name);
    QUOIT_DSM_COUNTS(X)
#undef X
    length += snprintf(text + length, sizeof text - (size_t)length, "}\n");
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        return;
}

static bool is_touched(const struct quoit_dsm_page_stats *stats)
{
    static const struct quoit_dsm_page_stats none;
    return memcmp(stats, &none, sizeof none) != 0;
}

static void print_place(const struct quoit_dsm *dsm, const char *kind, const char *start, uint64_t bytes,
                        const struct quoit_dsm_page_stats *stats)
{
    char text[512];
    int length = snprintf(text, sizeof text, "{\"pe\":%d,\"%s\":\"%p\",\"bytes\":%llu", dsm->me, kind,
                          (const void *)start, (unsigned long long)bytes);
#define X(name) length += snprintf(text + length, sizeof text - (size_t)length, ",\"" #name "\":%u", stats->name);
    QUOIT_DSM_PAGE_COUNTS(X)
#undef X
    length += snprintf(text + length, sizeof text - (size_t)length, "}\n");
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        return;
}

/* The block that contains the first byte of a page; the page itself if small blocks share it. */
static struct quoit_dsm_block owner_of(struct quoit_dsm *dsm, uint64_t page)
{
    char *start = quoit_dsm_page_address(dsm, page);
    struct quoit_dsm_block block = {start, dsm->page_bytes};
    if (quoit_dsm_offset_of(dsm, start) >= dsm->heap_bytes)
        return (struct quoit_dsm_block){dsm->globals, dsm->globals_bytes};
    quoit_dsm_heap_block(dsm, start, &block);
    return block;
}

/* Pages in the order of addresses, so those of a block follow each other. */
static void print_places(struct quoit_dsm *dsm, bool is_by_block)
{
    struct quoit_dsm_block block = {NULL, 0};
    struct quoit_dsm_page_stats sum = {0};
    for (uint64_t i = 0; i < dsm->mapped_count; i++) {
        uint64_t first = quoit_dsm_page_of_slot(dsm, dsm->slot_of_chunk[dsm->mapped[i]] - 1);
        for (uint64_t page = first; page < first + dsm->chunk_pages; page++) {
            const struct quoit_dsm_page_stats *stats = &dsm->page_stats[page];
            if (!is_touched(stats))
                continue;
            if (!is_by_block) {
                print_place(dsm, "page", quoit_dsm_page_address(dsm, page), dsm->page_bytes, stats);
                continue;
            }
            struct quoit_dsm_block owner = owner_of(dsm, page);
            if (owner.start != block.start && block.start)
                print_place(dsm, "block", block.start, block.bytes, &sum);
            if (owner.start != block.start)
                sum = (struct quoit_dsm_page_stats){0};
            block = owner;
#define X(name) sum.name += stats->name;
            QUOIT_DSM_PAGE_COUNTS(X)
#undef X
        }
    }
    if (block.start)
        print_place(dsm, "block", block.start, block.bytes, &sum);
}

void quoit_dsm_stats_print(struct quoit_dsm *dsm)
{
    uint64_t wall_ns = quoit_dsm_now_ns() - dsm->started_ns, other_ns = 0;
    for (int i = QUOIT_DSM_COMPUTE + 1; i < QUOIT_DSM_SPAN_COUNT; i++)
        other_ns += dsm->stats.span_ns[i];
    dsm->stats.span_ns[QUOIT_DSM_COMPUTE] = wall_ns > other_ns ? wall_ns - other_ns : 0;
    if (dsm->options.values[QUOIT_DSM_STATS] == 1)
        print_text(dsm, wall_ns);
    else if (dsm->options.values[QUOIT_DSM_STATS] == 2)
        print_json(dsm, wall_ns);
    else if (dsm->options.values[QUOIT_DSM_STATS] > 2)
        print_places(dsm, dsm->options.values[QUOIT_DSM_STATS] == 3);
}
