/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/profile.h"
#include "env/clock.h"

#include <sched.h>
#include <string.h>

#define SITES_USED_MAX (QUOIT_PROFILE_SITES / 4 * 3)

/* Instead of return addresses, a line of a file; 0: there is none. */
static _Thread_local uint64_t own_line;

/* The call that a thread is in. */
static _Thread_local struct {
    uint32_t depth; /* of routines inside one another */
    const char *call;
    uint64_t from;
    uint64_t bytes;
    uint64_t begin_ns;
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

void quoit_profile_begin(struct quoit_profile *profile, uint64_t now_ns)
{
    lock(profile);
    if (profile->begin_ns == 0) {
        profile->begin_ns = profile->end_ns = now_ns;
        profile->bin_ns = QUOIT_PROFILE_BIN_NS;
        profile->meeting_step = 1;
        profile->object_count = 1;
    }
    unlock(profile);
}

bool quoit_profile_enter(const char *call, const void *from, uint64_t bytes)
{
    if (own.depth++ != 0)
        return false;
    own.call = call;
    own.from = own_line == 0 ? (uintptr_t)from : own_line;
    own.bytes = bytes;
    own.wait_ns = 0;
    own.has_peer = own.has_group = false;
    own.begin_ns = quoit_clock_now_ns();
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
    if (own.depth == 0 || !own.call) /* in shmem_init, or not counted */
        return;
    own.wait_ns += end_ns - begin_ns;
    lock(profile);
    add_to_bins(profile, begin_ns, end_ns, true);
    unlock(profile);
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
    own_line = line == 0 ? 0 : QUOIT_PROFILE_LINE | (uint64_t)file << 32 | line;
}

/* NO_SITE: none is free. */
static uint32_t find_site(struct quoit_profile *profile,
                          void (*place)(struct quoit_profile *profile, struct quoit_profile_site *site))
{
    uint64_t call_id = (uintptr_t)own.call, from = own.from;
    uint32_t at =
        (uint32_t)((call_id * 0x9e3779b97f4a7c15u ^ from * 0xc2b2ae3d27d4eb4fu) >> 40) & (QUOIT_PROFILE_SITES - 1);
    for (;; at = (at + 1) & (QUOIT_PROFILE_SITES - 1)) {
        struct quoit_profile_site *site = &profile->sites[at];
        if (site->call_id == call_id && site->from == from)
            return at;
        if (site->call_id != 0)
            continue;
        if (profile->site_count >= SITES_USED_MAX)
            return QUOIT_PROFILE_NO_SITE;
        strncpy(site->call, own.call, sizeof site->call - 1);
        site->from = from;
        place(profile, site);
        site->call_id = call_id;
        profile->site_count++;
        return at;
    }
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

void quoit_profile_leave(struct quoit_profile *profile, uint32_t pe_count, bool is_outermost,
                         void (*place)(struct quoit_profile *profile, struct quoit_profile_site *site))
{
    own.depth--;
    if (!is_outermost || !own.call)
        return;
    uint64_t end_ns = quoit_clock_now_ns(), ns = end_ns - own.begin_ns;
    lock(profile);
    uint32_t index = find_site(profile, place);
    if (index == QUOIT_PROFILE_NO_SITE) {
        profile->unplaced_count++;
        profile->unplaced_ns += ns;
    } else {
        struct quoit_profile_site *site = &profile->sites[index];
        site->count++;
        site->bytes += own.bytes;
        site->ns += ns;
        site->wait_ns += own.wait_ns;
        if (ns > site->most_ns)
            site->most_ns = ns;
    }
    if (own.has_peer && own.pe < pe_count) {
        profile->peers[own.pe].count[own.kind]++;
        profile->peers[own.pe].bytes[own.kind] += own.bytes;
    }
    if (own.has_group)
        add_meeting(profile, index, end_ns);
    add_to_bins(profile, own.begin_ns, end_ns, false);
    if (end_ns > profile->end_ns)
        profile->end_ns = end_ns;
    unlock(profile);
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
    }
    for (uint32_t i = 0; i < profile->meeting_count; i++)
        if (!is_lost(profile, &profile->meetings[i]))
            profile->meetings[kept++] = profile->meetings[i];
    profile->meeting_count = kept;
}
