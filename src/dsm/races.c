/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/races.h"

#include <dlfcn.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "dsm/detect.h"
#include "dsm/heap.h"
#include "dsm/net.h"

#define RECORD_COUNT 8192 /* diffs of one PE between two barriers; more are not compared */
#define PIECE_BYTES  4096
#define PLACE_BYTES  96
#define REPORTS_MAX  20
#define STEPS_MAX    64 /* an instruction touches two pages or four, those of threads together */

/* What others compare first, and the rest. */
struct head {
    uint64_t page;
    uint32_t offset, interval : 31, is_load : 1;
    uint64_t position;
};

struct body {
    char place[PLACE_BYTES];
    uint64_t masks[PIECE_BYTES / 64];
};

/* A page that is open for one instruction of a thread. */
struct step {
    pthread_t thread;
    uint64_t page;
};

struct quoit_dsm_races {
    struct head *heads;     /* symmetric */
    struct body *bodies;    /* symmetric */
    uint64_t *vectors;      /* symmetric, [interval][PE] */
    uint64_t *record_count; /* symmetric */
    uint64_t interval_count, open_from, left_out;
    const void **places; /* [page] */
    uint32_t *newest;    /* [page] record + 1 of the latest */
    uint32_t *before;    /* [record] record + 1 of the one before of its page */
    uint64_t report_count;
    uint32_t *loads; /* [piece] record + 1 of the latest loads; of this interval if it is not before open_from */
    bool has_loads;
    struct step steps[STEPS_MAX];
    size_t step_count;
};

static void *take(size_t count, size_t bytes, bool is_symmetric)
{
    void *block = is_symmetric ? shmem_calloc(count, bytes) : calloc(count, bytes);
    if (!block)
        quoit_dsm_wrong("no memory for DSM_RACES (%zu KiB); a larger SHMEM_SYMMETRIC_SIZE helps", count * bytes >> 10);
    return block;
}

void quoit_dsm_races_start(struct quoit_dsm *dsm)
{
    struct quoit_dsm_races *races = take(1, sizeof *races, false);
    races->heads = take(RECORD_COUNT, sizeof *races->heads, true);
    races->bodies = take(RECORD_COUNT, sizeof *races->bodies, true);
    races->vectors = take(RECORD_COUNT * (size_t)dsm->pe_count, sizeof *races->vectors, true);
    races->record_count = take(1, sizeof *races->record_count, true);
    races->places = take(dsm->page_count, sizeof *races->places, false);
    races->newest = take(dsm->page_count, sizeof *races->newest, false);
    races->loads = take(dsm->page_count * (dsm->page_bytes / PIECE_BYTES), sizeof *races->loads, false);
    races->before = take(RECORD_COUNT, sizeof *races->before, false);
    dsm->races = races;
}

void quoit_dsm_races_stop(struct quoit_dsm *dsm)
{
    struct quoit_dsm_races *races = dsm->races;
    if (races->left_out > 0)
        quoit_say("dsm: PE %d: DSM_RACES did not compare %llu diffs, more than %d between two barriers", dsm->me,
                  (unsigned long long)races->left_out, RECORD_COUNT);
    shmem_free(races->heads);
    shmem_free(races->bodies);
    shmem_free(races->vectors);
    shmem_free(races->record_count);
    free(races->places);
    free(races->newest);
    free(races->loads);
    free(races->before);
    free(races);
    dsm->races = NULL;
}

void quoit_dsm_races_place(struct quoit_dsm *dsm, uint64_t page, const void *instruction)
{
    dsm->races->places[page] = instruction;
}

/* File and offset, as addr2line(1) takes them; the name of the function too where the file exports it. */
static void name_place(char *text, const void *instruction)
{
    Dl_info info;
    if (!instruction || !dladdr(instruction, &info) || !info.dli_fname) {
        snprintf(text, PLACE_BYTES, "an unknown place");
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(text, PLACE_BYTES, "%.40s+0x%zx%s%.32s", slash ? slash + 1 : info.dli_fname,
             (size_t)((const char *)instruction - (const char *)info.dli_fbase), info.dli_sname ? " in " : "",
             info.dli_sname ? info.dli_sname : "");
}

/* A new record of a piece, without bytes yet; NULL: there is no room. */
static struct body *add_record(struct quoit_dsm *dsm, uint64_t page, size_t offset, bool is_load, const void *place)
{
    struct quoit_dsm_races *races = dsm->races;
    uint64_t at = *races->record_count;
    if (at == RECORD_COUNT) {
        races->left_out++;
        return NULL;
    }
    races->heads[at] = (struct head){page, (uint32_t)offset, (uint32_t)races->interval_count & 0x7fffffff, is_load, 0};
    memset(races->bodies[at].masks, 0, sizeof races->bodies[at].masks);
    name_place(races->bodies[at].place, place);
    races->before[at] = races->newest[page];
    races->newest[page] = (uint32_t)at + 1;
    ++*races->record_count;
    return &races->bodies[at];
}

void quoit_dsm_races_add(struct quoit_dsm *dsm, uint64_t page, size_t offset, const uint64_t *masks, size_t bytes)
{
    struct body *body = add_record(dsm, page, offset, false, dsm->races->places[page]);
    if (body)
        memcpy(body->masks, masks, bytes / 64 * sizeof *masks);
}

/* Loads */

bool quoit_dsm_races_reads(const struct quoit_dsm *dsm)
{
    return dsm->races && dsm->options.values[QUOIT_DSM_RACES] == 2;
}

bool quoit_dsm_races_has_loads(const struct quoit_dsm *dsm)
{
    return dsm->races && dsm->races->has_loads;
}

/* The part of a load on the next page faults there. */
void quoit_dsm_races_load(struct quoit_dsm *dsm, uint64_t page, size_t offset, size_t bytes, const void *instruction)
{
    struct quoit_dsm_races *races = dsm->races;
    uint64_t piece = page * (dsm->page_bytes / PIECE_BYTES) + offset / PIECE_BYTES;
    size_t at = offset % PIECE_BYTES, end = at + bytes < PIECE_BYTES ? at + bytes : PIECE_BYTES;
    uint32_t record = races->loads[piece];
    if (record <= races->open_from || record > *races->record_count || !races->heads[record - 1].is_load ||
        races->heads[record - 1].page != page) {
        if (!add_record(dsm, page, offset / PIECE_BYTES * PIECE_BYTES, true, instruction))
            return;
        record = races->loads[piece] = (uint32_t)*races->record_count;
    }
    for (; at < end; at++)
        races->bodies[record - 1].masks[at / 64] |= 1ull << at % 64;
    races->has_loads = true;
}

void quoit_dsm_races_step(struct quoit_dsm *dsm, uint64_t page)
{
    struct quoit_dsm_races *races = dsm->races;
    if (races->step_count == STEPS_MAX)
        quoit_dsm_wrong("DSM_RACES=reads: more than %d pages are open for single instructions", STEPS_MAX);
    races->steps[races->step_count++] = (struct step){pthread_self(), page};
}

/* A page that several threads have open is closed by the last of them. */
bool quoit_dsm_races_stepped(struct quoit_dsm *dsm)
{
    struct quoit_dsm_races *races = dsm->races;
    bool has_any = false;
    for (size_t i = races->step_count; i-- > 0;) {
        struct step step = races->steps[i];
        if (!pthread_equal(step.thread, pthread_self()))
            continue;
        races->steps[i] = races->steps[--races->step_count];
        has_any = true;
        bool is_open_elsewhere = false;
        for (size_t k = 0; k < races->step_count; k++)
            is_open_elsewhere = is_open_elsewhere || races->steps[k].page == step.page;
        if (!is_open_elsewhere && dsm->states[step.page] != QUOIT_DSM_INVALID)
            dsm->detector->close(dsm, step.page, 1);
    }
    return has_any;
}

/* Intervals */

void quoit_dsm_races_end(struct quoit_dsm *dsm, uint64_t position)
{
    struct quoit_dsm_races *races = dsm->races;
    races->has_loads = false;
    if (races->open_from == *races->record_count)
        return;
    for (; races->open_from < *races->record_count; races->open_from++)
        races->heads[races->open_from].position = position;
    memcpy(races->vectors + races->interval_count * (uint64_t)dsm->pe_count, dsm->known,
           (size_t)dsm->pe_count * sizeof(uint64_t));
    races->interval_count++;
}

/* Comparing */

static void report(struct quoit_dsm *dsm, uint64_t own, int pe, bool is_load, const struct body *theirs)
{
    const struct quoit_dsm_races *races = dsm->races;
    const struct head *head = &races->heads[own];
    const struct body *body = &races->bodies[own];
    size_t first = 0, count = 0;
    for (size_t block = 0; block < PIECE_BYTES / 64; block++) {
        uint64_t both = body->masks[block] & theirs->masks[block];
        if (both != 0 && count == 0)
            first = head->offset + block * 64 + (size_t)__builtin_ctzll(both);
        count += (size_t)__builtin_popcountll(both);
    }
    if (count == 0)
        return;
    dsm->stats.races++;
    if (dsm->races->report_count++ >= REPORTS_MAX)
        return;
    char where[256];
    quoit_dsm_heap_name(dsm, quoit_dsm_page_address(dsm, head->page) + first, where, sizeof where);
    const char *more = count > 1 ? ", and others" : "";
    if (head->is_load || is_load)
        quoit_say(
            "dsm: race: PE %d (first store to the page at %s) changed what PE %d (first load at %s) read, %s%s, and no "
            "lock, flag or barrier orders them",
            is_load ? dsm->me : pe, is_load ? body->place : theirs->place, is_load ? pe : dsm->me,
            is_load ? theirs->place : body->place, where, more);
    else
        quoit_say(
            "dsm: race: PE %d (first store to the page at %s) and PE %d (%s) both changed %s%s, and no lock, flag or "
            "barrier orders them",
            dsm->me, body->place, pe, theirs->place, where, more);
    if (races->report_count == REPORTS_MAX)
        quoit_say("dsm: race: PE %d reports no more of them; DSM_STATS counts", dsm->me);
}

/* Whether neither interval precedes the other. */
static bool is_concurrent(struct quoit_dsm *dsm, const struct head *own, int pe, const struct head *theirs)
{
    const uint64_t *vectors = dsm->races->vectors;
    uint64_t count = (uint64_t)dsm->pe_count, known;
    if (vectors[own->interval * count + (uint64_t)pe] >= theirs->position)
        return false;
    quoit_dsm_get(dsm, &known, &vectors[theirs->interval * count + (uint64_t)dsm->me], sizeof known, pe);
    return known < own->position;
}

static void compare_with(struct quoit_dsm *dsm, int pe)
{
    struct quoit_dsm_races *races = dsm->races;
    uint64_t count = quoit_dsm_fetch(dsm, races->record_count, pe);
    struct head heads[64];
    for (uint64_t i = 0; i < count; i++) {
        if (i % 64 == 0)
            quoit_dsm_get(dsm, heads, &races->heads[i], (count - i < 64 ? count - i : 64) * sizeof heads[0], pe);
        const struct head *theirs = &heads[i % 64];
        for (uint32_t own = races->newest[theirs->page]; own != 0; own = races->before[own - 1]) {
            if (races->heads[own - 1].offset != theirs->offset || (races->heads[own - 1].is_load && theirs->is_load) ||
                !is_concurrent(dsm, &races->heads[own - 1], pe, theirs))
                continue;
            struct body body;
            quoit_dsm_get(dsm, &body, &races->bodies[i], sizeof body, pe);
            report(dsm, own - 1, pe, theirs->is_load, &body);
        }
    }
}

void quoit_dsm_races_compare(struct quoit_dsm *dsm)
{
    struct quoit_dsm_races *races = dsm->races;
    for (int pe = dsm->me + 1; pe < dsm->pe_count; pe++)
        compare_with(dsm, pe);
    shmem_barrier_all(); /* all have read the records, which are dropped now */
    for (uint64_t i = 0; i < *races->record_count; i++)
        races->newest[races->heads[i].page] = 0;
    *races->record_count = races->interval_count = races->open_from = 0;
    shmem_barrier_all();
}
