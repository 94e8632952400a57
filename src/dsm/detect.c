/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/detect.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "dsm/races.h"

static void protect(struct quoit_dsm *dsm, uint64_t page, uint64_t count, int access)
{
    if (mprotect(quoit_dsm_page_address(dsm, page), count << dsm->page_shift, access) == 0)
        return;
    if (errno == ENOMEM)
        quoit_dsm_wrong(
            "the kernel has no room for another mapping (vm.max_map_count); DSM_DETECT=async or wp splits no "
            "mappings, a larger DSM_PAGE makes fewer");
    quoit_dsm_wrong("mprotect of a page failed: %s", strerror(errno));
}

static bool start_segv(struct quoit_dsm *dsm)
{
    (void)dsm;
    return true;
}

static void stop_segv(struct quoit_dsm *dsm)
{
    (void)dsm;
}

static void watch_segv(struct quoit_dsm *dsm, char *chunk, uint64_t bytes)
{
    (void)dsm;
    (void)chunk;
    (void)bytes;
}

static void close_segv(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    protect(dsm, page, count, PROT_NONE);
}

static void open_read_segv(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    protect(dsm, page, count, PROT_READ);
}

static void open_write_segv(struct quoit_dsm *dsm, uint64_t page, uint64_t count, bool was_readable)
{
    (void)was_readable;
    protect(dsm, page, count, PROT_READ | PROT_WRITE);
}

/* Runs of consecutive dirty pages are watched again by one call each. */
static void collect_segv(struct quoit_dsm *dsm)
{
    int access = quoit_dsm_races_reads(dsm) ? PROT_NONE : PROT_READ;
    for (uint64_t i = 0; i < dsm->dirty_count;) {
        uint64_t page = dsm->dirty[i], count = 1;
        while (i + count < dsm->dirty_count && dsm->dirty[i + count] == page + count &&
               (page + count) % dsm->chunk_pages != 0)
            count++;
        protect(dsm, page, count, access);
        i += count;
    }
}

const struct quoit_dsm_detector quoit_dsm_detect_segv = {.name = "segv",
                                                         .sees_writes = true,
                                                         .start = start_segv,
                                                         .stop = stop_segv,
                                                         .watch = watch_segv,
                                                         .close = close_segv,
                                                         .open_read = open_read_segv,
                                                         .open_write = open_write_segv,
                                                         .collect = collect_segv};

void quoit_dsm_detect_start(struct quoit_dsm *dsm)
{
    static const struct quoit_dsm_detector *const all[] = {&quoit_dsm_detect_async, &quoit_dsm_detect_wp,
                                                           &quoit_dsm_detect_segv};
    uint64_t forced = dsm->options.values[QUOIT_DSM_DETECT];
    if (dsm->races && forced == QUOIT_DSM_DETECT_ASYNC)
        quoit_dsm_wrong("DSM_RACES needs the place of a store, which DSM_DETECT=async does not see; wp and segv do");
    if (quoit_dsm_races_reads(dsm)) {
        if (forced != QUOIT_DSM_DETECT_AUTO && forced != QUOIT_DSM_DETECT_SEGV)
            quoit_dsm_wrong("DSM_RACES=reads closes pages for each instruction, which DSM_DETECT=segv does alone");
        forced = QUOIT_DSM_DETECT_SEGV;
    }
    for (uint64_t i = 0; i < 3; i++) {
        if ((forced != QUOIT_DSM_DETECT_AUTO && forced != i + 1) || (dsm->races && !all[i]->sees_writes))
            continue;
        if (all[i]->start(dsm)) {
            dsm->detector = all[i];
            return;
        }
        if (forced != QUOIT_DSM_DETECT_AUTO)
            quoit_dsm_wrong("DSM_DETECT is %s, but the kernel refuses what it needs (%s); auto takes what there is",
                            all[i]->name, strerror(errno));
    }
}
