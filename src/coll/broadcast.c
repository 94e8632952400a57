/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast. Small data: the root writes it into a slot of its leader and returns; slots travel from leader to leader,
 * round the ring or, over a network, along a tree.
 * Large data: from leader to leader in chunks, one half in each direction, each chunk directly into the leader's dest
 * and forwarded while the next one arrives, or, over a network, whole along the tree (choice.h says when); the members
 * of a group copy from the root's source or from their leader's dest. */
#include "base/assert.h"
#include "coll/team.h"

#include <string.h>

#define LINE_BYTES 64u

struct broadcast {
    uint64_t offset_dest;
    size_t bytes;
    const char *source; /* the root's, on its host; else NULL */
    bool is_root;       /* this member is the root */
    bool is_small;
    bool has_own_copy;  /* this member's dest is complete */
    uint32_t lender_pe; /* the PE from whose memory the members of the host copy */
    uint32_t root_host;
    struct quoit_spread spread; /* schedule of a small broadcast over links */
};

static void publish(struct quoit_team_state *team)
{
    atomic_store_explicit(&team->flags->published.value, team->flag_base + team->publish_count,
                          memory_order_release); /* pairs with acquire in quoit_team_wait() */
    quoit_team_wake(team);
}

static void await_published(struct quoit_team_state *team)
{
    quoit_team_wait(team, &team->flags->published, team->flag_base + team->publish_count);
}

static struct quoit_tree tree_of(const struct quoit_team_state *team, const struct broadcast *broadcast)
{
    return quoit_schedule_tree(team->host_count, team->host, broadcast->root_host);
}

static void send_on(struct quoit_team_state *team, const struct broadcast *broadcast,
                    const struct quoit_team_message *message)
{
    if (team->has_links) {
        for (int travel = 0; travel < QUOIT_TRAVEL_COUNT; travel++)
            if (broadcast->spread.sends[travel])
                quoit_team_stream(team, message, travel);
    } else {
        const struct quoit_tree tree = tree_of(team, broadcast);
        for (uint32_t round = tree.first; round < tree.end; round++)
            (broadcast->is_small ? quoit_team_post : quoit_team_tree_send)(team, message, round);
    }
}

static void receive(struct quoit_team_state *team, const struct broadcast *broadcast)
{
    if (team->has_links)
        quoit_team_stream_wait(team, broadcast->spread.receive);
    else
        (broadcast->is_small ? quoit_team_post_wait : quoit_team_tree_wait)(team, tree_of(team, broadcast).receive);
}

/* The segment offset of a slot: whole cache lines, not wrapping at the end of the buffer. The same on all members. */
static uint64_t take_slot(struct quoit_team_state *team, size_t bytes)
{
    uint64_t all_bytes = QUOIT_SLOT_COUNT * team->space.slot_bytes;
    uint64_t slot_bytes = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    uint64_t left = all_bytes - team->slot_at;
    bool wraps = left < slot_bytes;
    uint64_t skipped = wraps ? left : 0;
    if (team->open_bytes + skipped + slot_bytes > all_bytes)
        quoit_coll_sync(team, team->call); /* see team.h on reuse of slots */
    team->open_bytes += skipped + slot_bytes;
    uint64_t at = wraps ? 0 : team->slot_at;
    team->slot_at = at + slot_bytes;
    return team->space.slots + at;
}

static void broadcast_small(struct quoit_team_state *team, const struct broadcast *broadcast)
{
    uint64_t offset = take_slot(team, broadcast->bytes);
    char *slot = team->leader_workspace + offset;
    struct quoit_team_message message = {.offset = offset, .source = slot, .bytes = broadcast->bytes};
    bool speaks = team->is_leader && team->host_count > 1;

    if (broadcast->is_root) {
        quoit_assert(broadcast->source);
        memcpy(slot, broadcast->source, broadcast->bytes);
        if (speaks)
            send_on(team, broadcast, &message);
        publish(team);
    } else if (speaks && broadcast->spread.does_receive) {
        receive(team, broadcast);
        send_on(team, broadcast, &message);
        publish(team);
    } else {
        await_published(team);
        if (speaks)
            send_on(team, broadcast, &message);
    }
    if (broadcast->has_own_copy)
        memcpy(quoit_coll_address(team->fabric, broadcast->offset_dest), slot, broadcast->bytes);
}

/* One direction of a large broadcast: half of the data, in chunks. */
struct half {
    struct quoit_part part; /* this half's bytes */
    struct quoit_circulation circulation;
    size_t done_bytes;
};

/* Forwards the next chunk of a half, which has arrived or, at the root, was there from the start. */
static void pass_on(struct quoit_team_state *team, const struct broadcast *broadcast, const char *from,
                    struct half *half, enum quoit_travel travel)
{
    size_t at = half->part.start + half->done_bytes, left = half->part.count - half->done_bytes;
    struct quoit_team_message message = {.offset = broadcast->offset_dest + at,
                                         .source = from + at,
                                         .bytes =
                                             left < QUOIT_SCHEDULE_CHUNK_BYTES ? left : QUOIT_SCHEDULE_CHUNK_BYTES};
    if (half->circulation.sends)
        quoit_team_stream(team, &message, travel);
    half->done_bytes += message.bytes;
}

/* The leader's part of a large broadcast: takes chunks as they arrive from both sides and forwards them. */
static void relay(struct quoit_team_state *team, const struct broadcast *broadcast)
{
    const char *from = broadcast->source ? broadcast->source : quoit_coll_address(team->fabric, broadcast->offset_dest);
    struct half halves[QUOIT_TRAVEL_COUNT];
    for (enum quoit_travel travel = QUOIT_NEXT; travel < QUOIT_TRAVEL_COUNT; travel++)
        halves[travel] = (struct half){
            .part = quoit_schedule_part(broadcast->bytes, QUOIT_TRAVEL_COUNT, travel),
            .circulation = quoit_schedule_circulate(team->host_count, team->host, broadcast->root_host, travel)};
    for (enum quoit_travel travel = QUOIT_NEXT;; travel = 1 - travel) {
        const bool is_open[QUOIT_TRAVEL_COUNT] = {halves[QUOIT_NEXT].done_bytes < halves[QUOIT_NEXT].part.count,
                                                  halves[QUOIT_PREVIOUS].done_bytes <
                                                      halves[QUOIT_PREVIOUS].part.count};
        if (!is_open[QUOIT_NEXT] && !is_open[QUOIT_PREVIOUS])
            return;
        if (broadcast->spread.does_receive)
            travel = quoit_team_stream_wait_any(team, is_open);
        else if (!is_open[travel])
            continue;
        pass_on(team, broadcast, from, &halves[travel], travel);
    }
}

/* The leader's part of a large broadcast along the tree. */
static void pass_down(struct quoit_team_state *team, const struct broadcast *broadcast)
{
    const char *dest = quoit_coll_address(team->fabric, broadcast->offset_dest);
    const struct quoit_team_message message = {.offset = broadcast->offset_dest,
                                               .source = broadcast->source ? broadcast->source : dest,
                                               .bytes = broadcast->bytes};
    if (broadcast->spread.does_receive)
        receive(team, broadcast);
    send_on(team, broadcast, &message);
}

/* Only the member whose memory the group reads waits for the others: the root, on other hosts the leader. */
static void say_read(struct quoit_team_state *team, const struct broadcast *broadcast)
{
    uint64_t value = team->flag_base + team->publish_count;
    struct quoit_team_flags *own = quoit_team_flags_of(team, team->local);
    uint32_t lender_pe = broadcast->lender_pe;
    atomic_store_explicit(&own->read.value, value, memory_order_release); /* pairs with acquire in quoit_team_wait() */
    if (team->fabric->self.pe == lender_pe)
        quoit_team_wait_all(team, offsetof(struct quoit_team_flags, read), value);
    else
        quoit_park_wake(team->fabric->peers[lender_pe].park);
}

static void broadcast_large(struct quoit_team_state *team, const struct broadcast *broadcast)
{
    char *dest = quoit_coll_address(team->fabric, broadcast->offset_dest);
    const char *from = broadcast->source ? broadcast->source : team->leader_workspace + broadcast->offset_dest;
    if (broadcast->is_root)
        publish(team);
    if (team->is_leader && team->host_count > 1) {
        /* The leaders to whom this one sends are inside, so their dests may be written: its neighbours, or any along a
         * tree. */
        static const struct quoit_team_message nothing;
        const struct quoit_team_message *const ready[QUOIT_TRAVEL_COUNT] = {&nothing, &nothing};
        const struct quoit_choice choice = quoit_team_choice(team);
        bool is_tree = quoit_choice_takes_tree(&choice, broadcast->bytes);
        if (is_tree)
            quoit_team_sync_hosts(team, NULL);
        else
            quoit_team_round(team, ready);
        if (!broadcast->spread.does_receive)
            await_published(team);
        if (is_tree)
            pass_down(team, broadcast);
        else
            relay(team, broadcast);
        if (broadcast->spread.does_receive)
            publish(team);
    }
    await_published(team);
    if (broadcast->has_own_copy && dest != from)
        quoit_team_copy(team, dest, from, broadcast->bytes);
    say_read(team, broadcast);
}

void quoit_coll_broadcast(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t bytes,
                          uint32_t root, bool has_root_copy, const char *call)
{
    if (bytes == 0)
        return;
    quoit_assert(root < team->range.size);
    quoit_team_enter(team, call, bytes * team->local_count);
    team->publish_count++;
    const struct quoit_team_host *own = &team->hosts[team->host];
    uint32_t root_host = 0;
    while (root - team->hosts[root_host].first_rank >= team->hosts[root_host].member_count)
        root_host++;
    struct broadcast broadcast = {
        .offset_dest = offset_dest,
        .bytes = bytes,
        .is_root = root == team->rank,
        .is_small = bytes <= team->space.slot_bytes,
        .has_own_copy = root != team->rank || has_root_copy,
        .lender_pe = root_host == team->host ? quoit_team_pe_of(team, root) : own->leader_pe,
        .root_host = root_host,
        .spread = quoit_schedule_spread(team->host_count, team->host, root_host),
    };
    if (root_host == team->host)
        broadcast.source = quoit_team_workspace(team, root - own->first_rank) + offset_source;
    if (broadcast.is_small)
        broadcast_small(team, &broadcast);
    else
        broadcast_large(team, &broadcast);
}
