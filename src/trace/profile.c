/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/profile.h"
#include "env/clock.h"

#include <sched.h>
#include <string.h>

#define SITES_USED_MAX (QUOIT_PROFILE_SITES / 4 * 3)

/* Timing a call costs about four times what reading the clock takes, and all sites together may spend a hundredth of
 * the time on it. One call in INTERVAL_MAX costs nothing that could be measured. */
#define GAP_CLOCKS   400u
#define INTERVAL_MAX 4096u
#define WINDOW_NS    10000000u

_Thread_local struct quoit_profile_thread quoit_profile_thread;

/* The call that a thread is in. */
static _Thread_local struct {
    const char *call; /* NULL: not counted */
    uint64_t from;
    struct quoit_profile_site *site; /* NULL: new */
    uint64_t bytes;
    uint64_t begin_ns; /* 0: it is not timed */
    uint64_t wait_ns;
    uint32_t pe; /* of a call that has a peer */
    enum quoit_profile_kind kind;
    bool has_peer;
    bool has_group;
    struct quoit_profile_group group;
} own;

static void lock(struct quoit_profile *profile)
{
    while (atomic_exchange_explicit(&profile->lock, 1, memory_order_acquire) != 0)
        sched_yield();
}

static void unlock(struct quoit_profile *profile)
{
    atomic_store_explicit(&profile->lock, 0, memory_order_release);
}

/* The least of several, since other processes may run between two readings. */
static uint64_t measure_clock(void)
{
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < 32; i++) {
        uint64_t begin_ns = quoit_clock_now_ns(), ns = quoit_clock_now_ns() - begin_ns;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    return least_ns;
}

void quoit_profile_begin(struct quoit_profile *profile, bool has_threads)
{
    uint64_t clock_ns = measure_clock();
    lock(profile);
    profile->has_threads |= has_threads;
    if (profile->begin_ns == 0) {
        profile->clock_ns = clock_ns;
        profile->begin_ns = profile->end_ns = profile->window_begin_ns = quoit_clock_now_ns();
        profile->window = 1;
        profile->bin_ns = QUOIT_PROFILE_BIN_NS;
        profile->meeting_step = 1;
        profile->object_count = 1;
    }
    unlock(profile);
}

bool quoit_profile_enter(struct quoit_profile *profile, const char *call, const void *from, uint64_t bytes)
{
    if (quoit_profile_thread.depth++ != 0)
        return false;
    own.call = call;
    own.from = quoit_profile_from(from);
    own.site = call ? quoit_profile_find(profile, call, own.from) : NULL;
    own.bytes = bytes;
    own.wait_ns = 0;
    own.has_peer = own.has_group = false;
    own.begin_ns = !own.site || quoit_profile_is_due(own.site) ? quoit_clock_now_ns() : 0;
    return true;
}

void quoit_profile_note_peer(enum quoit_profile_kind kind, uint32_t pe)
{
    own.has_peer = true;
    own.kind = kind;
    own.pe = pe;
}

void quoit_profile_note_group(uint32_t start, uint32_t stride, uint32_t size, uint64_t bytes)
{
    own.has_group = size != 0;
    own.group = (struct quoit_profile_group){.start = start, .stride = size > 1 ? stride : 1, .size = size};
    own.bytes = bytes;
    if (own.begin_ns == 0) /* collectives are timed each */
        own.begin_ns = quoit_clock_now_ns();
}

/* --- bins --- */

static void double_bins(struct quoit_profile *profile)
{
    struct quoit_profile_bin *bins = profile->bins;
    for (uint32_t i = 0; i < QUOIT_PROFILE_BINS / 2; i++) {
        bins[i].call_ns = bins[2 * i].call_ns + bins[2 * i + 1].call_ns;
        bins[i].wait_ns = bins[2 * i].wait_ns + bins[2 * i + 1].wait_ns;
    }
    memset(&bins[QUOIT_PROFILE_BINS / 2], 0, QUOIT_PROFILE_BINS / 2 * sizeof bins[0]);
    profile->bin_ns *= 2;
}

static void add_to_bins(struct quoit_profile *profile, uint64_t begin_ns, uint64_t end_ns, bool is_wait)
{
    if (begin_ns < profile->begin_ns || end_ns <= begin_ns)
        return;
    while ((end_ns - profile->begin_ns) / profile->bin_ns >= QUOIT_PROFILE_BINS)
        double_bins(profile);
    while (begin_ns < end_ns) {
        uint64_t index = (begin_ns - profile->begin_ns) / profile->bin_ns;
        uint64_t until_ns = profile->begin_ns + (index + 1) * profile->bin_ns;
        uint64_t part_ns = (until_ns < end_ns ? until_ns : end_ns) - begin_ns;
        if (is_wait)
            profile->bins[index].wait_ns += part_ns;
        else
            profile->bins[index].call_ns += part_ns;
        begin_ns += part_ns;
    }
}

void quoit_profile_wait(struct quoit_profile *profile, uint64_t begin_ns, uint64_t end_ns)
{
    if (quoit_profile_thread.depth == 0 || !own.call) /* in shmem_init, or not counted */
        return;
    own.wait_ns += end_ns - begin_ns;
    lock(profile);
    if (own.begin_ns == 0) { /* the call has no time of its own */
        add_to_bins(profile, begin_ns, end_ns, false);
        profile->end_ns = end_ns > profile->end_ns ? end_ns : profile->end_ns;
    }
    add_to_bins(profile, begin_ns, end_ns, true);
    unlock(profile);
}

/* Adds what calls that were not timed took, by estimate, between two that were, as late as there is room for it: a bin
 * has no more time than has passed in it. Returns what was added. */
static uint64_t estimate(struct quoit_profile *profile, uint64_t from_ns, uint64_t to_ns, uint64_t ns)
{
    uint64_t added_ns = 0;
    from_ns = from_ns > profile->begin_ns ? from_ns : profile->begin_ns;
    while (to_ns > from_ns && (to_ns - profile->begin_ns) / profile->bin_ns >= QUOIT_PROFILE_BINS)
        double_bins(profile);
    while (to_ns > from_ns && added_ns < ns) {
        uint64_t index = (to_ns - 1 - profile->begin_ns) / profile->bin_ns;
        uint64_t bin_ns = profile->begin_ns + index * profile->bin_ns, *call_ns = &profile->bins[index].call_ns;
        uint64_t part_ns = to_ns - (bin_ns > from_ns ? bin_ns : from_ns);
        uint64_t room_ns = to_ns - bin_ns > *call_ns ? to_ns - bin_ns - *call_ns : 0;
        part_ns = part_ns < room_ns ? part_ns : room_ns;
        part_ns = part_ns < ns - added_ns ? part_ns : ns - added_ns;
        *call_ns += part_ns;
        added_ns += part_ns;
        to_ns = bin_ns;
    }
    return added_ns;
}

/* --- sites --- */

uint32_t quoit_profile_object(struct quoit_profile *profile, const char *name)
{
    for (uint32_t i = 1; i < profile->object_count; i++)
        if (strncmp(profile->objects[i], name, QUOIT_PROFILE_OBJECT_BYTES - 1) == 0)
            return i;
    if (profile->object_count >= QUOIT_PROFILE_OBJECTS)
        return QUOIT_PROFILE_OBJECTS;
    strncpy(profile->objects[profile->object_count], name, QUOIT_PROFILE_OBJECT_BYTES - 1);
    return profile->object_count++;
}

uint32_t quoit_profile_file(struct quoit_profile *profile, const char *path)
{
    lock(profile);
    uint32_t file = quoit_profile_object(profile, path);
    unlock(profile);
    return file;
}

void quoit_profile_set_line(uint32_t file, uint32_t line)
{
    quoit_profile_thread.line = line == 0 ? 0 : QUOIT_PROFILE_LINE | (uint64_t)file << 32 | line;
}

/* Of the call that the thread is in; NULL: none is free. */
static struct quoit_profile_site *
place_site(struct quoit_profile *profile, void (*place)(struct quoit_profile *profile, struct quoit_profile_site *site))
{
    uint64_t call_id = (uintptr_t)own.call, from = own.from;
    struct quoit_profile_site *site = quoit_profile_find(profile, own.call, from);
    uint32_t at = quoit_profile_hash(call_id, from);
    if (site || profile->site_count >= SITES_USED_MAX)
        return site;
    while (profile->sites[at].call_id != 0)
        at = (at + 1) & (QUOIT_PROFILE_SITES - 1);
    site = &profile->sites[at];
    strncpy(site->call, own.call, sizeof site->call - 1);
    site->from = from;
    site->interval = 1;
    place(profile, site);
    __atomic_store_n(&site->call_id, call_id, __ATOMIC_RELEASE); /* pairs with acquire in quoit_profile_find() */
    profile->site_count++;
    return site;
}

/* --- times --- */

/* How many sites share the time that may be spent on the clock. */
static uint32_t count_active(struct quoit_profile *profile, struct quoit_profile_site *site, uint64_t now_ns)
{
    if (now_ns - profile->window_begin_ns > WINDOW_NS) {
        profile->active_count_old = profile->active_count;
        profile->active_count = 0;
        profile->window_begin_ns = now_ns;
        profile->window++;
    }
    if (site->window != profile->window) {
        site->window = profile->window;
        profile->active_count++;
    }
    return profile->active_count > profile->active_count_old ? profile->active_count : profile->active_count_old;
}

/* When the site is timed again: the more seldom, the sooner this call came after the last one that was. At random,
 * since what a call takes may depend on its number. */
static void plan_next(struct quoit_profile *profile, struct quoit_profile_site *site, uint64_t count, uint64_t end_ns)
{
    uint64_t gap_ns = GAP_CLOCKS * profile->clock_ns * count_active(profile, site, end_ns);
    if (end_ns - site->timed_ns < gap_ns && site->interval < INTERVAL_MAX)
        site->interval *= 2;
    else if (end_ns - site->timed_ns > 4 * gap_ns && site->interval > 1)
        site->interval /= 2;
    uint64_t skipped = site->interval == 1 ? 0 : site->interval / 2 + quoit_prng_choose(&profile->prng, site->interval);
    site->timed_ns = end_ns;
    __atomic_store_n(&site->next_count, count + skipped, __ATOMIC_RELAXED);
}

/* A call was timed; is_due as in quoit_profile_timed(). */
static void add_timed(struct quoit_profile *profile, struct quoit_profile_site *site, uint64_t begin_ns,
                      uint64_t end_ns, uint64_t wait_ns, bool is_due)
{
    uint64_t count = __atomic_load_n(&site->count, __ATOMIC_RELAXED);
    uint64_t ns = end_ns - begin_ns > wait_ns ? end_ns - begin_ns : wait_ns, work_ns = ns - wait_ns;
    uint64_t others = count - site->covered_count - 1;
    work_ns = work_ns > profile->clock_ns ? work_ns - profile->clock_ns : 0;
    if (is_due && count > site->covered_count + 1)
        site->ns += estimate(profile, site->timed_ns, begin_ns, others * work_ns);
    site->covered_count = is_due ? count : site->covered_count + 1;
    site->timed_count++;
    site->ns += ns;
    site->wait_ns += wait_ns;
    if (ns > site->most_ns)
        site->most_ns = ns;
    if (is_due)
        plan_next(profile, site, count, end_ns);
    add_to_bins(profile, begin_ns, end_ns, false);
    if (end_ns > profile->end_ns)
        profile->end_ns = end_ns;
}

void quoit_profile_timed(struct quoit_profile *profile, struct quoit_profile_site *site, uint64_t begin_ns,
                         uint64_t end_ns, bool is_due)
{
    lock(profile);
    add_timed(profile, site, begin_ns, end_ns, 0, is_due);
    unlock(profile);
}

/* --- collectives --- */

static uint32_t find_group(struct quoit_profile *profile)
{
    for (uint32_t i = 0; i < profile->group_count; i++) {
        const struct quoit_profile_group *group = &profile->groups[i];
        if (group->start == own.group.start && group->stride == own.group.stride && group->size == own.group.size)
            return i;
    }
    if (profile->group_count == QUOIT_PROFILE_GROUPS)
        return QUOIT_PROFILE_GROUPS;
    profile->groups[profile->group_count] = own.group;
    return profile->group_count++;
}

static void add_meeting(struct quoit_profile *profile, uint32_t site, uint64_t end_ns)
{
    uint32_t group = find_group(profile), kept = 0;
    if (group == QUOIT_PROFILE_GROUPS)
        return;
    uint64_t number = profile->groups[group].count++;
    while (profile->meeting_count == QUOIT_PROFILE_MEETINGS) { /* each group keeps every second one that it had */
        profile->meeting_step *= 2;
        for (uint32_t i = 0; i < QUOIT_PROFILE_MEETINGS; i++)
            if (profile->meetings[i].number % profile->meeting_step == 0)
                profile->meetings[kept++] = profile->meetings[i];
        profile->meeting_count = kept;
        kept = 0;
        if (profile->meeting_step >= UINT32_MAX / 2)
            return;
    }
    if (number % profile->meeting_step == 0)
        profile->meetings[profile->meeting_count++] = (struct quoit_profile_meeting){
            .number = number, .begin_ns = own.begin_ns, .end_ns = end_ns, .group = group, .site = site};
}

/* A call that was timed, or waited. */
static void leave_slowly(struct quoit_profile *profile, uint64_t end_ns,
                         void (*place)(struct quoit_profile *profile, struct quoit_profile_site *site))
{
    lock(profile);
    struct quoit_profile_site *site = own.site ? own.site : place_site(profile, place);
    if (site)
        quoit_profile_count(profile, site, own.bytes);
    if (!site) {
        profile->unplaced_count++;
        profile->unplaced_ns += end_ns - own.begin_ns;
        add_to_bins(profile, own.begin_ns, end_ns, false);
    } else if (own.begin_ns != 0) {
        add_timed(profile, site, own.begin_ns, end_ns, own.wait_ns, true);
        if (own.has_group)
            __atomic_store_n(&site->next_count, 0, __ATOMIC_RELAXED);
    } else {
        site->ns += own.wait_ns;
        site->wait_ns += own.wait_ns;
    }
    if (own.has_group)
        add_meeting(profile, site ? (uint32_t)(site - profile->sites) : QUOIT_PROFILE_NO_SITE, end_ns);
    if (end_ns > profile->end_ns)
        profile->end_ns = end_ns;
    unlock(profile);
}

void quoit_profile_leave(struct quoit_profile *profile, uint32_t pe_count, bool is_outermost,
                         void (*place)(struct quoit_profile *profile, struct quoit_profile_site *site))
{
    quoit_profile_thread.depth--;
    if (!is_outermost || !own.call)
        return;
    if (own.has_peer && own.pe < pe_count)
        quoit_profile_count_peer(profile, own.kind, own.pe, own.bytes);
    if (own.begin_ns == 0 && own.wait_ns == 0)
        quoit_profile_count(profile, own.site, own.bytes);
    else
        leave_slowly(profile, own.begin_ns ? quoit_clock_now_ns() : 0, place);
}

void quoit_profile_heap(struct quoit_profile *profile, uint64_t bytes)
{
    lock(profile);
    if (bytes > profile->heap_bytes_most)
        profile->heap_bytes_most = bytes;
    unlock(profile);
}

/* --- from outside --- */

static void limit(uint32_t *value, uint32_t most)
{
    if (*value > most)
        *value = most;
}

/* Its site or its group is none. */
static bool is_lost(const struct quoit_profile *profile, const struct quoit_profile_meeting *meeting)
{
    return meeting->group >= profile->group_count || meeting->site >= QUOIT_PROFILE_SITES ||
           profile->sites[meeting->site].call_id == 0;
}

/* The time of the calls after the last one that was timed, by the mean of those before. */
static void cover(struct quoit_profile *profile, struct quoit_profile_site *site)
{
    if (site->timed_count > site->count)
        site->timed_count = site->count;
    bool has_time = profile->bin_ns >= QUOIT_PROFILE_BIN_NS && site->timed_ns >= profile->begin_ns &&
                    profile->end_ns >= site->timed_ns &&
                    (profile->end_ns - profile->begin_ns) / profile->bin_ns < QUOIT_PROFILE_BINS;
    if (!has_time || site->covered_count == 0 || site->count <= site->covered_count || site->ns < site->wait_ns)
        return;
    uint64_t ns = (site->ns - site->wait_ns) / site->covered_count * (site->count - site->covered_count);
    site->ns += estimate(profile, site->timed_ns, profile->end_ns, ns);
    site->covered_count = site->count;
}

void quoit_profile_mend(struct quoit_profile *profile)
{
    uint32_t kept = 0;
    limit(&profile->object_count, QUOIT_PROFILE_OBJECTS);
    limit(&profile->group_count, QUOIT_PROFILE_GROUPS);
    limit(&profile->meeting_count, QUOIT_PROFILE_MEETINGS);
    for (uint32_t i = 0; i < QUOIT_PROFILE_OBJECTS; i++)
        profile->objects[i][QUOIT_PROFILE_OBJECT_BYTES - 1] = '\0';
    for (uint32_t i = 0; i < QUOIT_PROFILE_SITES; i++) {
        struct quoit_profile_site *site = &profile->sites[i];
        site->call[QUOIT_PROFILE_CALL_BYTES - 1] = '\0';
        if (site->object >= profile->object_count)
            site->object = 0, site->address = 0;
        if (site->call_id != 0)
            cover(profile, site);
    }
    for (uint32_t i = 0; i < profile->meeting_count; i++)
        if (!is_lost(profile, &profile->meetings[i]))
            profile->meetings[kept++] = profile->meetings[i];
    profile->meeting_count = kept;
}
