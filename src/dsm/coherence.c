/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/coherence.h"

#include <string.h>

#include "base/assert.h"
#include "dsm/detect.h"
#include "dsm/diff.h"
#include "dsm/exclusive.h"
#include "dsm/home.h"
#include "dsm/load.h"
#include "dsm/net.h"
#include "dsm/notice.h"
#include "dsm/profile.h"
#include "dsm/races.h"
#include "dsm/service.h"
#include "dsm/space.h"
#include "dsm/stats.h"
#include "dsm/trace.h"

#define DIFF_BYTES      4096 /* diffs are made in pieces of at most this size */
#define RUNS_MAX        (DIFF_BYTES / 2)
#define VERSION_ROW_MAX QUOIT_DSM_PES_MAX
#define HOME_WINDOW     16

/* A release under way. */
struct interval {
    uint64_t start, position;
};

void quoit_dsm_lock(struct quoit_dsm *dsm)
{
    pthread_mutex_lock(&dsm->lock);
}

/* Content that came along with a home is of use only to the fault, or routine, that asked: it ages from now on. */
void quoit_dsm_unlock(struct quoit_dsm *dsm)
{
    dsm->arrived_page = UINT64_MAX;
    pthread_mutex_unlock(&dsm->lock);
}

/* Homes */

/* The PE that DSM_HOME makes the home of a page which this PE touches first. */
static int rule_of(const struct quoit_dsm *dsm, uint64_t page)
{
    uint64_t count = (uint64_t)dsm->pe_count;
    if (dsm->options.values[QUOIT_DSM_HOME] == QUOIT_DSM_HOME_CYCLIC)
        return (int)(page % count);
    if (dsm->options.values[QUOIT_DSM_HOME] == QUOIT_DSM_HOME_BLOCK)
        return (int)(page / 64 % count);
    return dsm->me;
}

/* The rule's choice becomes the home unless another PE was first: one compare-and-swap at the directory, which returns
 * the home that won. */
static uint64_t appoint(struct quoit_dsm *dsm, uint64_t page, int directory)
{
    int choice = rule_of(dsm, page);
    uint64_t word = 0, mark = choice == dsm->me ? 0 : QUOIT_DSM_UNTAKEN;
    while (quoit_dsm_home_in(word) == QUOIT_DSM_NO_HOME) { /* again if the block has a kind of its own */
        uint64_t expected = word, chosen = (word + (uint64_t)choice + 1) | mark;
        word = quoit_dsm_compare_swap(dsm, &dsm->homes[page], expected, chosen, directory);
        if (word == expected)
            word = chosen;
    }
    dsm->stats.lost_swaps += quoit_dsm_home_in(word) != choice;
    return word;
}

/* This PE may become the home, which others may then write to. */
int quoit_dsm_home_of(struct quoit_dsm *dsm, uint64_t page)
{
    if (quoit_dsm_home_known(dsm, page) != QUOIT_DSM_NO_HOME)
        return quoit_dsm_home_known(dsm, page);
    int directory = quoit_dsm_directory_of(dsm, page);
    bool is_by_service =
        quoit_dsm_fetches_by_service(dsm->protocol) && dsm->options.values[QUOIT_DSM_HOME] % 3 == QUOIT_DSM_HOME_FIRST;
    if (is_by_service || rule_of(dsm, page) == dsm->me)
        quoit_dsm_take(dsm, page, 1, dsm->me);
    uint64_t word = is_by_service ? quoit_dsm_service_resolve(dsm, page, directory) : appoint(dsm, page, directory);
    quoit_dsm_homes_learn(dsm, page, &word, 1);
    return quoit_dsm_home_known(dsm, page);
}

/* Learns the homes of the pages after one whose home another PE has: the directory keeps 64 of them together. */
static void learn_homes(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    uint64_t words[64], end = page / 64 * 64 + 64, known_end = page;
    if (end > page + count)
        end = page + count;
    while (known_end < end && quoit_dsm_home_known(dsm, known_end) != QUOIT_DSM_NO_HOME)
        known_end++;
    if (known_end == end)
        return;
    int directory = quoit_dsm_directory_of(dsm, page);
    if (directory != dsm->me)
        quoit_dsm_get(dsm, words, &dsm->homes[page], (end - page) * sizeof words[0], directory);
    for (uint64_t i = 0; i < end - page && directory == dsm->me; i++)
        words[i] = __atomic_load_n(&dsm->homes[page + i], __ATOMIC_ACQUIRE);
    quoit_dsm_homes_learn(dsm, page, words, end - page);
}

static bool is_home(const struct quoit_dsm *dsm, uint64_t page)
{
    return quoit_dsm_home_known(dsm, page) == dsm->me && !dsm->races;
}

/* Versions */

static uint64_t *version_at(const struct quoit_dsm *dsm, uint64_t page, int writer)
{
    return &dsm->version[page * (uint64_t)dsm->pe_count + (uint64_t)writer];
}

static uint64_t *peer_version_at(const struct quoit_dsm *dsm, int pe, uint64_t page, int writer)
{
    uint64_t *version = dsm->peers[pe].version;
    return version ? &version[page * (uint64_t)dsm->pe_count + (uint64_t)writer] : NULL;
}

static void need(struct quoit_dsm *dsm, uint64_t page, int writer, uint64_t version)
{
    uint64_t *row = &dsm->needs[page * (uint64_t)dsm->pe_count];
    if (dsm->need_of[page] != dsm->epoch)
        memset(row, 0, (uint64_t)dsm->pe_count * sizeof *row);
    dsm->need_of[page] = dsm->epoch;
    if (row[writer] < version)
        row[writer] = version;
}

/* Whether the versions of a page at its home are those promised by the notices. */
static bool has_versions(struct quoit_dsm *dsm, uint64_t page, const uint64_t *now)
{
    if (dsm->need_of[page] != dsm->epoch || dsm->options.values[QUOIT_DSM_BREAK] == QUOIT_DSM_BREAK_VERSION)
        return true;
    const uint64_t *row = &dsm->needs[page * (uint64_t)dsm->pe_count];
    for (int writer = 0; writer < dsm->pe_count; writer++) {
        if (__atomic_load_n(&now[writer], __ATOMIC_ACQUIRE) < row[writer])
            return false;
    }
    dsm->need_of[page] = dsm->epoch - 1; /* every later fetch finds at least the home's current versions */
    return true;
}

/* Reads the versions before the page, repeatedly, until they are those promised by the notices: a page read afterwards
 * contains at least those diffs. */
static void await_version(struct quoit_dsm *dsm, uint64_t page, int home)
{
    if (dsm->need_of[page] != dsm->epoch || dsm->options.values[QUOIT_DSM_BREAK] == QUOIT_DSM_BREAK_VERSION)
        return;
    uint64_t local[VERSION_ROW_MAX];
    for (bool is_first = true;; is_first = false) {
        const uint64_t *now = peer_version_at(dsm, home, page, 0);
        if (!now) {
            quoit_dsm_get(dsm, local, version_at(dsm, page, 0), (size_t)dsm->pe_count * sizeof local[0], home);
            now = local;
        }
        if (has_versions(dsm, page, now))
            return;
        dsm->stats.version_retries++;
        if (!is_first)
            quoit_dsm_relax();
    }
}

/* At the home: waits for the diffs of notices that came before this PE knew that it is the home. */
static void await_diffs(struct quoit_dsm *dsm, uint64_t page)
{
    if (dsm->need_of[page] != dsm->epoch || dsm->options.values[QUOIT_DSM_BREAK] == QUOIT_DSM_BREAK_VERSION)
        return;
    const uint64_t *row = &dsm->needs[page * (uint64_t)dsm->pe_count];
    for (int writer = 0; writer < dsm->pe_count; writer++) {
        if (row[writer] != 0)
            quoit_dsm_wait_least(dsm, version_at(dsm, page, writer), row[writer]);
    }
    dsm->need_of[page] = dsm->epoch - 1;
}

/* Fetches */

/* The handler at the home responds with the page and its versions; it never waits, so a request that came too early is
 * repeated. A request for the home may have returned the page too. */
static void fetch_by_service(struct quoit_dsm *dsm, uint64_t page)
{
    bool is_here = dsm->arrived_page == page;
    dsm->arrived_page = UINT64_MAX;
    for (;;) {
        if (is_here && has_versions(dsm, page, quoit_dsm_service_versions(dsm)))
            return;
        dsm->stats.version_retries += is_here;
        if (is_here)
            quoit_dsm_relax();
        quoit_dsm_service_fetch(dsm, page, quoit_dsm_home_known(dsm, page));
        is_here = true;
    }
}

/* Pages of one home on their way to their frames. */
struct fetch {
    uint64_t begun;
    bool is_coming; /* the content is there after end_fetch */
};

/* Waits for the versions of the pages first. While they are coming nobody may read them. */
static struct fetch begin_fetch(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    int home = quoit_dsm_home_known(dsm, page);
    char *frame = quoit_dsm_frame(dsm, page);
    size_t bytes = count << dsm->page_shift;
    struct fetch fetch = {.begun = quoit_dsm_trace_begin("dsm fetch", bytes, home)};
    if (quoit_dsm_fetches_by_service(quoit_dsm_protocol_of(dsm, page))) {
        for (uint64_t i = 0; i < count; i++)
            fetch_by_service(dsm, page + i);
    } else {
        if (!dsm->races)
            quoit_dsm_exclusive_end(dsm, page, count, home);
        for (uint64_t i = 0; i < count; i++)
            await_version(dsm, page + i, home);
        if (dsm->peers[home].masters)
            memcpy(frame, dsm->peers[home].masters + (page << dsm->page_shift), bytes);
        else
            fetch.is_coming = quoit_dsm_get_begin(dsm, frame, quoit_dsm_master(dsm, page), bytes, home);
    }
    dsm->stats.fetched_pages += count;
    quoit_dsm_came_bytes += bytes;
    for (uint64_t i = 0; i < count; i++)
        dsm->page_stats[page + i].fetches++;
    return fetch;
}

static void end_fetch(struct quoit_dsm *dsm, const struct fetch *fetch)
{
    if (fetch->is_coming && dsm->options.values[QUOIT_DSM_BREAK] != QUOIT_DSM_BREAK_ARRIVAL)
        quoit_dsm_get_end(dsm);
    quoit_dsm_trace_end(fetch->begun);
}

static void make_twin(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    quoit_dsm_take_twins(dsm, page, count);
    for (uint64_t i = 0; i < count; i++) {
        if (!dsm->has_twin[page + i])
            memcpy(quoit_dsm_twin(dsm, page + i), quoit_dsm_frame(dsm, page + i), dsm->page_bytes);
        dsm->has_twin[page + i] = true;
    }
}

/* How many pages from `page` on can be fetched, or at home opened, together: invalid, in one chunk, of one home and
 * kind.
 */
static uint64_t span_of(struct quoit_dsm *dsm, uint64_t page, uint64_t count_max)
{
    uint64_t used = quoit_dsm_chunk_used(dsm, dsm->chunk_of_slot[page / dsm->chunk_pages]) >> dsm->page_shift;
    uint64_t to_end = used - page % dsm->chunk_pages, count = 1;
    if (count_max > to_end)
        count_max = to_end;
    while (count < count_max && dsm->states[page + count] == QUOIT_DSM_INVALID &&
           quoit_dsm_home_known(dsm, page + count) == quoit_dsm_home_known(dsm, page) &&
           dsm->kind_of[page + count] == dsm->kind_of[page])
        count++;
    return count;
}

/* The event that opens a page, and of `count` pages at home those to which it applies too. */
static enum quoit_dsm_event access_of(struct quoit_dsm *dsm, uint64_t page, uint64_t *count, bool is_write)
{
    enum quoit_dsm_event usual = is_write ? QUOIT_DSM_WRITE : QUOIT_DSM_READ;
    if (!is_home(dsm, page))
        return usual;
    bool is_alone = quoit_dsm_exclusive_may(dsm, page);
    uint64_t same = 1;
    while (same < *count && quoit_dsm_exclusive_may(dsm, page + same) == is_alone)
        same++;
    *count = same;
    return is_alone ? QUOIT_DSM_ALONE : usual;
}

/* The window doubles while each fault comes behind the pages that the last one opened, in this chunk or the next, and
 * restarts when it does not. A program that has come there has used those pages. */
static uint64_t window_of(struct quoit_dsm *dsm, uint64_t page)
{
    uint64_t most = dsm->options.values[QUOIT_DSM_PREFETCH], opened_bytes = dsm->opened_count << dsm->page_shift;
    bool is_next = opened_bytes > 0 &&
                   quoit_dsm_page_address(dsm, page) == quoit_dsm_page_address(dsm, dsm->opened_page) + opened_bytes;
    if (is_next)
        memset(&dsm->was_used[dsm->opened_page], true, dsm->opened_count);
    dsm->window = is_next ? (uint32_t)(dsm->window * 2 > most ? most : dsm->window * 2) : 1;
    return dsm->window;
}

/* What a chunk lacks of twins since its stores fault: all that is open there was not written since it was fetched. */
static void thaw(struct quoit_dsm *dsm, uint64_t page)
{
    if (!dsm->detector->is_frozen || !dsm->detector->is_frozen(dsm, page))
        return;
    uint64_t first = page / dsm->chunk_pages * dsm->chunk_pages;
    for (uint64_t at = first; at < first + dsm->chunk_pages; at++) {
        if (dsm->states[at] == QUOIT_DSM_CLEAN && !is_home(dsm, at))
            make_twin(dsm, at, 1);
    }
    dsm->detector->thaw(dsm, page);
}

/* Before copies are opened: their chunk may become one whose stores fault. */
static void choose_frozen(struct quoit_dsm *dsm, uint64_t page, bool is_write)
{
    if (!dsm->detector->sees_writes && !is_write && dsm->detector->freeze)
        dsm->detector->freeze(dsm, page);
}

/* Twins of pages that were just fetched; none where a store faults first. */
static void make_twins(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    const struct quoit_dsm_detector *detector = dsm->detector;
    if (!detector->is_frozen || !detector->is_frozen(dsm, page))
        make_twin(dsm, page, detector->sees_writes ? 1 : count);
}

/* Allows the access to pages, whose states are set. */
static void open_pages(struct quoit_dsm *dsm, uint64_t page, uint64_t count, enum quoit_dsm_event event,
                       const struct quoit_dsm_move *move)
{
    for (uint64_t i = 0; i < count; i++)
        quoit_dsm_page_set(dsm, page + i, event == QUOIT_DSM_ALONE ? QUOIT_DSM_EXCLUSIVE : QUOIT_DSM_CLEAN);
    if (move->effects & QUOIT_DSM_DO_OPEN_READ) {
        dsm->detector->open_read(dsm, page, count);
    } else if (event == QUOIT_DSM_ALONE) {
        dsm->detector->open_write(dsm, page, count, false);
    } else {
        dsm->detector->open_write(dsm, page, 1, false);
        dsm->dirty[dsm->dirty_count++] = (uint32_t)page;
        if (count > 1)
            dsm->detector->open_read(dsm, page + 1, count - 1);
    }
    quoit_dsm_page_set(dsm, page, move->next);
}

/* What needs the content of the pages. */
static void take_content(struct quoit_dsm *dsm, uint64_t page, uint64_t count, const struct quoit_dsm_move *move,
                         const struct fetch *fetch)
{
    if (move->effects & QUOIT_DSM_DO_FETCH)
        end_fetch(dsm, fetch);
    if (move->effects & QUOIT_DSM_DO_TWIN)
        make_twins(dsm, page, count);
}

/* Opens pages that are INVALID here and have one home: page was touched, the others come with it. Pages that are still
 * coming are opened meanwhile, which only a PE of one thread can do: it does not go on before they are there. */
static void open_invalid(struct quoit_dsm *dsm, uint64_t page, uint64_t count, bool is_write)
{
    enum quoit_dsm_event event = access_of(dsm, page, &count, is_write);
    struct quoit_dsm_move move =
        quoit_dsm_page_move(QUOIT_DSM_INVALID, event, is_home(dsm, page), dsm->detector->sees_writes);
    struct fetch fetch = {0};
    if (move.effects & QUOIT_DSM_DO_FETCH)
        fetch = begin_fetch(dsm, page, count);
    for (uint64_t i = 0; i < count; i++) {
        if (is_home(dsm, page))
            await_diffs(dsm, page + i);
        dsm->was_used[page + i] = i == 0;
        dsm->has_twin[page + i] = false;
    }
    if (move.effects & QUOIT_DSM_DO_TWIN)
        choose_frozen(dsm, page, is_write);
    if (!fetch.is_coming)
        take_content(dsm, page, count, &move, &fetch);
    open_pages(dsm, page, count, event, &move);
    if (fetch.is_coming)
        take_content(dsm, page, count, &move, &fetch);
}

/* Under WP_ASYNC an open page faults only if another thread has just opened it or the kernel dropped its entry, for
 * example one of a huge page, and with it the record of writes. A copy without a twin cannot have been written. */
static void note_unmapped(struct quoit_dsm *dsm, uint64_t page)
{
    for (uint64_t i = 0; i < dsm->dirty_count; i++) {
        if (dsm->dirty[i] == page)
            return;
    }
    dsm->dirty[dsm->dirty_count++] = (uint32_t)page;
}

static void open_page(struct quoit_dsm *dsm, uint64_t page, bool is_write, uint64_t window)
{
    quoit_dsm_home_of(dsm, page);
    if (is_write)
        thaw(dsm, page);
    enum quoit_dsm_state state = dsm->states[page];
    if (state == QUOIT_DSM_INVALID) {
        if (!is_home(dsm, page) && window > 1)
            learn_homes(dsm, page, window);
        uint64_t count = span_of(dsm, page, is_home(dsm, page) ? HOME_WINDOW : window);
        if (!is_home(dsm, page))
            dsm->stats.prefetched_pages += count - 1;
        dsm->opened_page = page;
        dsm->opened_count = count;
        quoit_dsm_take(dsm, page, count, dsm->me);
        open_invalid(dsm, page, count, is_write);
        return;
    }
    struct quoit_dsm_move move = quoit_dsm_page_move(state, is_write ? QUOIT_DSM_WRITE : QUOIT_DSM_READ,
                                                     is_home(dsm, page), dsm->detector->sees_writes);
    if (move.effects & QUOIT_DSM_DO_TWIN)
        make_twin(dsm, page, 1);
    if (!dsm->detector->sees_writes && state != QUOIT_DSM_EXCLUSIVE && (is_home(dsm, page) || dsm->has_twin[page]))
        note_unmapped(dsm, page);
    if (move.effects & QUOIT_DSM_DO_OPEN_WRITE) { /* a writable page faults if the kernel dropped its entry */
        dsm->detector->open_write(dsm, page, 1, state == QUOIT_DSM_CLEAN);
        if (state == QUOIT_DSM_CLEAN)
            dsm->dirty[dsm->dirty_count++] = (uint32_t)page;
    } else if (move.effects & QUOIT_DSM_DO_OPEN_READ) {
        dsm->detector->open_read(dsm, page, 1);
    }
    quoit_dsm_page_set(dsm, page, move.next);
}

void quoit_dsm_fault(struct quoit_dsm *dsm, const void *address, bool is_write, const void *instruction)
{
    const char *name = dsm->is_direct ? "dsm chunk fault" : is_write ? "dsm write fault" : "dsm read fault";
    uint64_t begun = quoit_dsm_trace_begin(name, 0, -1);
    struct quoit_dsm_row call = quoit_dsm_row_begin(name, (const char *)instruction + 1, false);
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    quoit_dsm_lock(dsm);
    uint64_t page = quoit_dsm_space_page(dsm, address);
    if (!dsm->is_direct) {
        if (is_write) {
            dsm->stats.write_faults++;
            dsm->page_stats[page].write_faults++;
        } else {
            dsm->stats.read_faults++;
            dsm->page_stats[page].read_faults++;
        }
        if (is_write && dsm->races && dsm->states[page] != QUOIT_DSM_DIRTY)
            quoit_dsm_races_place(dsm, page, instruction);
        if (!is_write && quoit_dsm_races_reads(dsm))
            quoit_dsm_races_load(dsm, page, (uintptr_t)address & (dsm->page_bytes - 1),
                                 quoit_dsm_load_bytes(instruction), instruction);
        open_page(dsm, page, is_write, dsm->states[page] == QUOIT_DSM_INVALID ? window_of(dsm, page) : 1);
        if (quoit_dsm_races_reads(dsm))
            quoit_dsm_races_step(dsm, page);
    }
    quoit_dsm_unlock(dsm);
    quoit_dsm_span_end(dsm, QUOIT_DSM_FETCHING, timer);
    quoit_dsm_row_end(&call);
    quoit_dsm_trace_end(begun);
}

void quoit_dsm_touch(struct quoit_dsm *dsm, const void *address, size_t bytes, bool is_write)
{
    const char *at = (const char *)((uintptr_t)address & ~(dsm->page_bytes - 1)), *end = (const char *)address + bytes;
    for (; at < end; at += dsm->page_bytes) {
        uint64_t page = quoit_dsm_space_page(dsm, at);
        uint64_t left = ((uint64_t)(end - at) + dsm->page_bytes - 1) >> dsm->page_shift;
        if (!dsm->is_direct && (dsm->states[page] == QUOIT_DSM_INVALID ||
                                (is_write && dsm->detector->sees_writes && dsm->states[page] == QUOIT_DSM_CLEAN)))
            open_page(dsm, page, is_write, is_write ? 1 : left);
    }
}

/* Diffs */

static void put_runs(struct quoit_dsm *dsm, char *master, const char *from, const uint64_t *masks, size_t bytes,
                     int home)
{
    struct quoit_dsm_run runs[RUNS_MAX];
    size_t count = quoit_dsm_diff_runs(masks, bytes, runs, RUNS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (dsm->options.values[QUOIT_DSM_BREAK] == QUOIT_DSM_BREAK_RUN && i == count - 1)
            runs[i].bytes--;
        dsm->stats.diff_bytes += runs[i].bytes;
        if (runs[i].bytes > 0)
            quoit_dsm_put(dsm, master + runs[i].offset, from + runs[i].offset, runs[i].bytes, home);
    }
    dsm->stats.diff_runs += count;
}

/* One piece of a page. What is sent is the twin, brought up to date first, so that a thread that writes meanwhile
 * cannot make the twin newer than what was sent: a write that the twin missed is found by the next diff. */
static bool send_piece(struct quoit_dsm *dsm, uint64_t page, size_t offset, size_t bytes)
{
    uint64_t masks[DIFF_BYTES / 64];
    char *frame = quoit_dsm_frame(dsm, page) + offset, *twin = quoit_dsm_twin(dsm, page) + offset;
    int home = quoit_dsm_home_known(dsm, page);
    char *there = dsm->peers[home].masters;
    bool is_by_service = quoit_dsm_diffs_by_service(quoit_dsm_protocol_of(dsm, page));
    if (there && !is_by_service && !dsm->races && dsm->options.values[QUOIT_DSM_BREAK] != QUOIT_DSM_BREAK_RUN) {
        size_t blocks,
            moved = quoit_dsm_diff_move(there + (page << dsm->page_shift) + offset, twin, frame, bytes, &blocks);
        dsm->stats.diff_bytes += moved;
        dsm->stats.diff_runs += blocks;
        return moved > 0;
    }
    if (!quoit_dsm_diff_masks(frame, twin, bytes, masks))
        return false;
    quoit_dsm_diff_store(twin, frame, bytes, masks);
    if (dsm->races)
        quoit_dsm_races_add(dsm, page, offset, masks, bytes);
    if (is_by_service) {
        quoit_dsm_service_diff(dsm, page, offset, twin, masks, bytes);
        return true;
    }
    quoit_dsm_diff_widen(masks, bytes, quoit_dsm_word_of(dsm, page));
    put_runs(dsm, quoit_dsm_master(dsm, page) + offset, twin, masks, bytes, home);
    return true;
}

static bool send_diff(struct quoit_dsm *dsm, uint64_t page)
{
    uint64_t bytes_before = dsm->stats.diff_bytes;
    uint64_t begun = quoit_dsm_trace_begin("dsm diff", dsm->page_bytes, quoit_dsm_home_known(dsm, page));
    bool is_changed = false;
    size_t piece = dsm->page_bytes < DIFF_BYTES ? dsm->page_bytes : DIFF_BYTES;
    for (size_t offset = 0; offset < dsm->page_bytes; offset += piece)
        is_changed = send_piece(dsm, page, offset, piece) || is_changed;
    dsm->stats.diff_pages += is_changed;
    dsm->page_stats[page].diffs += is_changed;
    dsm->page_stats[page].diff_bytes += (uint32_t)(dsm->stats.diff_bytes - bytes_before);
    quoit_dsm_trace_end(begun);
    return is_changed;
}

/* The version of a page follows its runs. `pages` were changed in this interval; their notices are added here. */
static void send_versions(struct quoit_dsm *dsm, const uint32_t *pages, uint64_t count, struct interval *interval)
{
    bool is_put = dsm->races != NULL; /* whose runs are puts in any case */
    for (uint64_t i = 0; i < count; i++)
        is_put = is_put || (!is_home(dsm, pages[i]) && !dsm->peers[quoit_dsm_home_known(dsm, pages[i])].masters &&
                            !quoit_dsm_diffs_by_service(quoit_dsm_protocol_of(dsm, pages[i])));
    if (is_put)
        quoit_dsm_fence(dsm);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t page = pages[i];
        int home = quoit_dsm_home_known(dsm, page);
        uint64_t version = quoit_dsm_notice_add(dsm, &interval->position, interval->start, page);
        if (home == dsm->me)
            __atomic_store_n(version_at(dsm, page, dsm->me), version, __ATOMIC_RELEASE);
        else if (quoit_dsm_diffs_by_service(quoit_dsm_protocol_of(dsm, page)))
            quoit_dsm_service_version(dsm, page, version);
        else
            quoit_dsm_store(dsm, version_at(dsm, page, dsm->me), peer_version_at(dsm, home, page, dsm->me), version,
                            home);
        if (home != dsm->me)
            need(dsm, page, dsm->me, version);
        quoit_dsm_written(dsm, page, dsm->me);
    }
}

void quoit_dsm_diffs_settle(struct quoit_dsm *dsm)
{
    if (dsm->service)
        quoit_dsm_service_settle(dsm);
    quoit_dsm_settle(dsm);
}

static struct interval begin_interval(const struct quoit_dsm *dsm)
{
    return (struct interval){dsm->known[dsm->me], dsm->known[dsm->me]};
}

static void end_interval(struct quoit_dsm *dsm, struct interval interval)
{
    if (dsm->options.values[QUOIT_DSM_BREAK] == QUOIT_DSM_BREAK_NOTICE && interval.position > interval.start)
        interval.position--;
    if (dsm->races)
        quoit_dsm_races_end(dsm, interval.position);
    quoit_dsm_notice_publish(dsm, interval.position);
}

/* Makes diffs of the dirty pages; the changed ones are gathered at the front of dsm->dirty. */
static uint64_t diff_dirty(struct quoit_dsm *dsm)
{
    uint64_t changed = 0;
    for (uint64_t i = 0; i < dsm->dirty_count; i++) {
        uint32_t page = dsm->dirty[i];
        struct quoit_dsm_move move =
            quoit_dsm_page_move(dsm->states[page], QUOIT_DSM_RELEASE, is_home(dsm, page), dsm->detector->sees_writes);
        quoit_dsm_page_set(dsm, page, move.next);
        bool is_changed =
            (move.effects & QUOIT_DSM_DO_LOG) != 0 && dsm->options.values[QUOIT_DSM_BREAK] != QUOIT_DSM_BREAK_HOME;
        if (move.effects & QUOIT_DSM_DO_DIFF) {
            quoit_assert(dsm->has_twin[page]);
            is_changed = send_diff(dsm, page);
        }
        if (is_changed)
            dsm->dirty[changed++] = page;
    }
    return changed;
}

void quoit_dsm_release(struct quoit_dsm *dsm)
{
    if (dsm->is_direct)
        return;
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    dsm->stats.releases++;
    quoit_dsm_exclusive_review(dsm);
    dsm->detector->collect(dsm);
    struct interval interval = begin_interval(dsm);
    uint64_t changed = diff_dirty(dsm);
    send_versions(dsm, dsm->dirty, changed, &interval);
    dsm->dirty_count = 0;
    send_versions(dsm, dsm->extra, dsm->extra_count, &interval);
    dsm->extra_count = 0;
    if (quoit_dsm_races_has_loads(dsm) && interval.position == interval.start)
        quoit_dsm_notice_add_empty(dsm, &interval.position);
    end_interval(dsm, interval);
    quoit_dsm_span_end(dsm, QUOIT_DSM_DIFFING, timer);
}

/* A closed page that other threads of this PE wrote since the release. */
static void send_late(struct quoit_dsm *dsm, uint64_t page)
{
    struct interval interval = begin_interval(dsm);
    uint32_t one = (uint32_t)page;
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    if (send_diff(dsm, page)) {
        send_versions(dsm, &one, 1, &interval);
        end_interval(dsm, interval);
    }
    quoit_dsm_span_end(dsm, QUOIT_DSM_DIFFING, timer);
}

static void forget_dirty(struct quoit_dsm *dsm, uint64_t page)
{
    for (uint64_t i = 0; i < dsm->dirty_count; i++) {
        if (dsm->dirty[i] == page) {
            dsm->dirty[i] = dsm->dirty[--dsm->dirty_count];
            return;
        }
    }
}

/* After its access was taken away. */
static void give_up(struct quoit_dsm *dsm, uint64_t page, const struct quoit_dsm_move *move)
{
    if (move->effects & QUOIT_DSM_DO_CLOSE) {
        dsm->stats.invalidations++;
        dsm->stats.useless_invalidations += !dsm->was_used[page];
        dsm->page_stats[page].invalidations++;
        dsm->page_stats[page].useless_invalidations += !dsm->was_used[page];
    }
    if ((move->effects & QUOIT_DSM_DO_DIFF) && dsm->has_twin[page])
        send_late(dsm, page);
    if (move->next == QUOIT_DSM_INVALID && dsm->dirty_count > 0)
        forget_dirty(dsm, page);
    if (move->next == QUOIT_DSM_INVALID)
        dsm->has_twin[page] = false;
    quoit_dsm_page_set(dsm, page, move->next);
}

/* Whether acquires update or drop a copy as the program uses it: where an update is no more than a copy in memory. */
static bool is_adaptive(const struct quoit_dsm *dsm, uint64_t page)
{
    int home = quoit_dsm_home_known(dsm, page);
    return quoit_dsm_copies_of(dsm, page) == QUOIT_DSM_COPIES_AUTO && !dsm->races && home != QUOIT_DSM_NO_HOME &&
           home != dsm->me && dsm->peers[home].masters &&
           !quoit_dsm_fetches_by_service(quoit_dsm_protocol_of(dsm, page));
}

static enum quoit_dsm_event event_of(const struct quoit_dsm *dsm, uint64_t page)
{
    bool is_updated = quoit_dsm_copies_of(dsm, page) == QUOIT_DSM_COPIES_UPDATE;
    if (is_adaptive(dsm, page))
        is_updated = dsm->is_stale[page] || quoit_dsm_habit_updates(&dsm->habits[page], dsm->was_used[page]);
    return is_updated ? QUOIT_DSM_RENEW : QUOIT_DSM_NOTICE;
}

/* What the notice of a page says of the program's use of its copy. */
static void learn_use(struct quoit_dsm *dsm, uint64_t page, const struct quoit_dsm_move *move)
{
    struct quoit_dsm_habit *habit = &dsm->habits[page];
    if (move->effects & QUOIT_DSM_DO_CLOSE)
        quoit_dsm_habit_dropped(habit, dsm->was_used[page], dsm->acquires);
    else if ((move->effects & QUOIT_DSM_DO_UPDATE) == 0)
        quoit_dsm_habit_absent(habit, dsm->acquires);
    else if (!dsm->is_stale[page])
        quoit_dsm_habit_updated(habit);
}

/* Removes access from as many pages from the first on as must lose it and lie in one chunk: one system call for all.
 * Returns their number. */
static uint64_t close_run(struct quoit_dsm *dsm, uint64_t page, uint64_t count, bool is_drop)
{
    uint64_t n = 0;
    for (; n < count && (n == 0 || (page + n) % dsm->chunk_pages != 0); n++) {
        enum quoit_dsm_event event = is_drop ? QUOIT_DSM_DROP : event_of(dsm, page + n);
        struct quoit_dsm_move move =
            quoit_dsm_page_move(dsm->states[page + n], event, is_home(dsm, page + n), dsm->detector->sees_writes);
        if ((move.effects & QUOIT_DSM_DO_CLOSE) == 0)
            break;
    }
    if (n > 0)
        dsm->detector->close(dsm, page, n);
    return n;
}

static void noticed(struct quoit_dsm *dsm, uint64_t page, int writer, uint64_t version, bool is_settled)
{
    struct quoit_dsm_move move =
        quoit_dsm_page_move(dsm->states[page], event_of(dsm, page), is_home(dsm, page), dsm->detector->sees_writes);
    quoit_dsm_written(dsm, page, writer);
    if (dsm->need_of[page] == dsm->epoch && dsm->needs[page * (uint64_t)dsm->pe_count + (uint64_t)dsm->me] !=
                                                0) { /* both wrote it between two barriers, possibly different bytes */
        dsm->stats.false_sharing++;
        dsm->page_stats[page].false_sharing++;
    }
    give_up(dsm, page, &move);
    if (is_adaptive(dsm, page))
        learn_use(dsm, page, &move);
    if ((move.effects & QUOIT_DSM_DO_UPDATE) && !dsm->is_stale[page]) {
        dsm->stale[dsm->stale_count++] = (uint32_t)page;
        dsm->is_stale[page] = true;
    }
    if (is_settled)
        return;
    if (move.effects & QUOIT_DSM_DO_NEED)
        need(dsm, page, writer, version);
    if ((move.effects & QUOIT_DSM_DO_AWAIT) && dsm->options.values[QUOIT_DSM_BREAK] != QUOIT_DSM_BREAK_VERSION)
        quoit_dsm_wait_least(dsm, version_at(dsm, page, writer), version);
}

void quoit_dsm_noticed(struct quoit_dsm *dsm, uint64_t page, uint64_t count, int writer, uint64_t version,
                       bool is_settled)
{
    quoit_assert(page < dsm->page_count);
    quoit_assert(count <= dsm->page_count - page);
    for (uint64_t i = 0, closed_end = 0; i < count; i++) {
        if (i >= closed_end)
            closed_end = i + close_run(dsm, page + i, count - i, false);
        noticed(dsm, page + i, writer, version, is_settled);
    }
}

void quoit_dsm_drop(struct quoit_dsm *dsm, uint64_t page)
{
    close_run(dsm, page, 1, true);
    struct quoit_dsm_move move =
        quoit_dsm_page_move(dsm->states[page], QUOIT_DSM_DROP, is_home(dsm, page), dsm->detector->sees_writes);
    give_up(dsm, page, &move);
}

void quoit_dsm_drop_all(struct quoit_dsm *dsm)
{
    for (uint64_t i = 0; i < dsm->mapped_count; i++) {
        uint64_t first = quoit_dsm_page_of_slot(dsm, dsm->slot_of_chunk[dsm->mapped[i]] - 1);
        for (uint64_t page = first; page < first + dsm->chunk_pages; page++) {
            if (!is_home(dsm, page) && dsm->states[page] != QUOIT_DSM_INVALID)
                quoit_dsm_drop(dsm, page);
        }
    }
}

/* Acquires */

/* What others wrote since the page was fetched is what differs from the twin, or from the copy where this PE has not
 * written; what this PE has written and not yet sent stays as it is. Pages come by gets under every protocol: a handler
 * would put a whole page over the copy. */
static void bring_up_to_date(struct quoit_dsm *dsm, uint64_t page)
{
    int home = quoit_dsm_home_known(dsm, page);
    char *frame = quoit_dsm_frame(dsm, page), *twin = dsm->has_twin[page] ? quoit_dsm_twin(dsm, page) : frame;
    const char *there = dsm->peers[home].masters;
    char piece[DIFF_BYTES];
    uint64_t begun = quoit_dsm_trace_begin("dsm update", dsm->page_bytes, home);
    await_version(dsm, page, home);
    for (size_t at = 0, blocks; at < dsm->page_bytes; at += sizeof piece) {
        const char *from = there ? there + (page << dsm->page_shift) + at : piece;
        if (!there)
            quoit_dsm_get(dsm, piece, quoit_dsm_master(dsm, page) + at, sizeof piece, home);
        quoit_dsm_diff_move(frame + at, twin + at, from, sizeof piece, &blocks);
    }
    dsm->stats.updated_pages++;
    quoit_dsm_came_bytes += dsm->page_bytes;
    dsm->page_stats[page].fetches++;
    quoit_dsm_trace_end(begun);
}

/* The end of an acquire. */
static void bring_all_up_to_date(struct quoit_dsm *dsm)
{
    if (dsm->stale_count == 0)
        return;
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    for (uint64_t i = 0; i < dsm->stale_count; i++) {
        uint32_t page = dsm->stale[i];
        dsm->is_stale[page] = false;
        if (dsm->states[page] != QUOIT_DSM_INVALID && dsm->options.values[QUOIT_DSM_BREAK] != QUOIT_DSM_BREAK_UPDATE)
            bring_up_to_date(dsm, page);
    }
    dsm->stale_count = 0;
    quoit_dsm_span_end(dsm, QUOIT_DSM_FETCHING, timer);
}

/* Applies the notices up to `to`, which come from `pe`. */
static void acquire(struct quoit_dsm *dsm, int pe, const uint64_t *to, struct quoit_dsm_records records)
{
    dsm->acquires++;
    bool is_released = false;
    for (int writer = 0; writer < dsm->pe_count; writer++) {
        if (writer == dsm->me || to[writer] <= dsm->known[writer] ||
            (writer != pe && dsm->options.values[QUOIT_DSM_BREAK] == QUOIT_DSM_BREAK_CAUSALITY))
            continue;
        if (!is_released)
            quoit_dsm_release(dsm);
        is_released = true;
        quoit_dsm_notice_apply(dsm, writer, to[writer], records, false);
    }
    bring_all_up_to_date(dsm);
}

void quoit_dsm_acquire_from(struct quoit_dsm *dsm, int pe)
{
    uint64_t known[QUOIT_DSM_PES_MAX + QUOIT_DSM_RECENT_WORDS];
    if (dsm->is_direct || pe == dsm->me)
        return;
    struct quoit_dsm_records records = quoit_dsm_notice_read(dsm, pe, known);
    acquire(dsm, pe, known, records);
}

void quoit_dsm_acquire_handed(struct quoit_dsm *dsm, int pe, const struct quoit_dsm_record *items,
                              uint32_t writer_count, uint32_t record_count)
{
    uint64_t known[QUOIT_DSM_PES_MAX], reads_before = dsm->stats.log_reads;
    memcpy(known, dsm->known, (size_t)dsm->pe_count * sizeof known[0]);
    for (uint32_t i = 0; i < writer_count; i++) {
        quoit_assert(items[i].whose < (uint64_t)dsm->pe_count);
        known[items[i].whose] = items[i].what;
    }
    acquire(dsm, pe, known, (struct quoit_dsm_records){items + writer_count, record_count});
    dsm->stats.locks_handed += dsm->stats.log_reads == reads_before;
}

/* Other threads of this PE may have released and acquired since the barrier's diffs were complete, and a copy given up
 * just now may have sent one: the needs of such diffs stay, and with them the others, which are met. */
void quoit_dsm_acquire_all(struct quoit_dsm *dsm, const uint64_t *heads)
{
    dsm->acquires++;
    for (int writer = 0; writer < dsm->pe_count; writer++) {
        if (writer != dsm->me && heads[writer] > dsm->known[writer])
            quoit_dsm_notice_apply(dsm, writer, heads[writer], (struct quoit_dsm_records){NULL, 0}, true);
    }
    bring_all_up_to_date(dsm);
    if (memcmp(dsm->known, heads, (size_t)dsm->pe_count * sizeof *heads) == 0)
        dsm->epoch++;
}

void quoit_dsm_add_extra(struct quoit_dsm *dsm, uint64_t page)
{
    for (uint64_t i = 0; i < dsm->extra_count; i++) {
        if (dsm->extra[i] == page)
            return;
    }
    if (dsm->extra_count == dsm->extra_room)
        quoit_dsm_release(dsm);
    dsm->extra[dsm->extra_count++] = (uint32_t)page;
}
