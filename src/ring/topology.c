/* SPDX-License-Identifier: BSD-3-Clause */
/* topology.c - states of link ends, merged by maximum. */
#include "ring/topology.h"

#include "base/assert.h"
#include "ring/route.h"

static uint32_t end_index(uint32_t host, enum quoit_side side)
{
    return 2 * host + (side == QUOIT_RIGHT ? 1 : 0);
}

static uint32_t own_state(const struct quoit_ring_links *links, enum quoit_side side)
{
    return links->ends[end_index(links->host_self, side)].state;
}

static uint32_t far_state(const struct quoit_ring_links *links, enum quoit_side side)
{
    uint32_t neighbour = quoit_ring_neighbour(links->host_count, side, links->host_self);
    return links->ends[end_index(neighbour, quoit_ring_opposite(side))].state;
}

static bool is_up(uint32_t state)
{
    return state % 2 == 0;
}

/* Link l joins host l, on its right, with host l + 1. It is up when both ends are, in the same epoch. */
static bool is_link_up(const struct quoit_ring_links *links, uint32_t link)
{
    uint32_t next = quoit_ring_neighbour(links->host_count, QUOIT_RIGHT, link);
    uint32_t state = links->ends[end_index(link, QUOIT_RIGHT)].state;
    return is_up(state) && state == links->ends[end_index(next, QUOIT_LEFT)].state;
}

static void measure_reach(struct quoit_ring_links *links)
{
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint32_t at = links->host_self;
        uint32_t reach = 0;
        for (; reach < links->host_count; reach++) {
            uint32_t next = quoit_ring_neighbour(links->host_count, (enum quoit_side)side, at);
            if (!is_link_up(links, side == QUOIT_RIGHT ? at : next))
                break;
            at = next;
        }
        links->links[side].reach = reach;
    }
}

/* Whether no outdated frame can land here any more. The neighbour lands only while we know it to be up in the
 * epoch that we are or were up in, because it waits until we advertise that. While both are up, it has to advertise
 * that it has adopted our topology version: then it drops what is older. When our end went down, its end has to go down
 * too.
 */
static bool is_side_quiesced(const struct quoit_ring_links *links, enum quoit_side side)
{
    uint32_t own = own_state(links, side);
    uint32_t far = far_state(links, side);
    if (far / 2 != own / 2 || !is_up(far))
        return true;
    return is_up(own) && links->links[side].adopted >= links->topology_version;
}

static void update_quiesced(struct quoit_ring_links *links)
{
    links->is_quiesced = is_side_quiesced(links, QUOIT_LEFT) && is_side_quiesced(links, QUOIT_RIGHT);
}

/* With the ring whole each side reaches all hosts, with one link down both together all others. */
static void update_cut(struct quoit_ring_links *links)
{
    uint32_t reach = links->links[QUOIT_LEFT].reach + links->links[QUOIT_RIGHT].reach;
    bool was_cut = links->is_cut;
    links->is_cut = reach + 1 < links->host_count;
    links->cut_count += links->is_cut && !was_cut;
}

static void mark_pending(struct quoit_ring_links *links, enum quoit_side side, uint32_t end)
{
    if (links->ends[end].is_pending[side] || !is_up(own_state(links, side)))
        return;
    links->ends[end].is_pending[side] = true;
    links->links[side].pending_count++;
}

/* A state has grown: the topology version grows, and the update is pending for both neighbours. */
static void change(struct quoit_ring_links *links, uint32_t end, uint32_t state)
{
    quoit_assert(state > links->ends[end].state);
    links->topology_version += state - links->ends[end].state;
    links->ends[end].state = state;
    measure_reach(links);
    mark_pending(links, QUOIT_LEFT, end);
    mark_pending(links, QUOIT_RIGHT, end);
    update_quiesced(links);
}

void quoit_ring_links_init(struct quoit_ring_links *links, struct quoit_ring_end *ends, uint32_t host_count,
                           uint32_t host_self)
{
    *links = (struct quoit_ring_links){.ends = ends, .host_count = host_count, .host_self = host_self};
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
        links->links[side].is_confirmed = true;
    measure_reach(links);
    update_quiesced(links);
}

void quoit_ring_links_down(struct quoit_ring_links *links, enum quoit_side side)
{
    uint32_t own = own_state(links, side);
    quoit_assert(is_up(own));
    for (uint32_t end = 0; end < 2 * links->host_count; end++)
        links->ends[end].is_pending[side] = false;
    links->links[side] = (struct quoit_ring_link){0};
    change(links, end_index(links->host_self, side), own + 1);
    update_cut(links);
}

void quoit_ring_links_up(struct quoit_ring_links *links, enum quoit_side side, uint32_t epoch)
{
    uint32_t own = own_state(links, side);
    quoit_assert(!is_up(own));
    quoit_assert(epoch > own / 2);
    quoit_assert(epoch <= QUOIT_LINK_STATE_MAX / 2);
    change(links, end_index(links->host_self, side), 2 * epoch);
    for (uint32_t end = 0; end < 2 * links->host_count; end++)
        if (links->ends[end].state > 0)
            mark_pending(links, side, end);
    update_cut(links);
}

enum quoit_status quoit_ring_links_learn(struct quoit_ring_links *links, enum quoit_side side,
                                         const struct quoit_frame *frame, bool *is_new_out)
{
    struct quoit_ring_link *link = &links->links[side];
    *is_new_out = false;
    link->adopted = frame->topology_version; /* never less than before: a neighbour's frames come in order */
    for (uint32_t i = 0; i < frame->size; i++) {
        struct quoit_link_update update = quoit_frame_update(frame, i);
        uint32_t known = links->ends[update.end].state;
        if (update.state > known && update.end / 2 == links->host_self)
            return QUOIT_INVALID;
        if (update.end == end_index(links->host_self, side) && update.state == known)
            link->is_confirmed = true;
        if (update.state > known)
            change(links, update.end, update.state);
        *is_new_out |= update.state > known;
    }
    update_quiesced(links);
    update_cut(links); /* once for all updates of a frame, whose order has no meaning */
    return QUOIT_OK;
}

void quoit_ring_links_advertise(struct quoit_ring_links *links, enum quoit_side side, struct quoit_frame *frame_out)
{
    struct quoit_ring_link *link = &links->links[side];
    quoit_assert(link->pending_count > 0);
    for (; link->pending_count > 0 && frame_out->size < QUOIT_LINK_UPDATES_MAX; link->pending_count--) {
        while (!links->ends[link->pending_next].is_pending[side])
            link->pending_next = (link->pending_next + 1) % (2 * links->host_count);
        links->ends[link->pending_next].is_pending[side] = false;
        quoit_frame_add_update(frame_out, link->pending_next, links->ends[link->pending_next].state);
    }
}

void quoit_ring_links_describe(const struct quoit_ring_links *links, struct quoit_ring_topology *topology_out)
{
    *topology_out =
        (struct quoit_ring_topology){.topology_version = links->topology_version, .cut_count = links->cut_count};
    for (uint32_t link = 0; link < links->host_count; link++) {
        if (is_link_up(links, link))
            continue;
        if (topology_out->dead_count < 2)
            topology_out->dead_links[topology_out->dead_count] = link;
        topology_out->dead_count++;
    }
}

bool quoit_ring_links_is_up(const struct quoit_ring_links *links, enum quoit_side side)
{
    return is_up(own_state(links, side));
}

bool quoit_ring_links_is_open(const struct quoit_ring_links *links, enum quoit_side side)
{
    return links->links[side].reach > 0;
}

uint32_t quoit_ring_links_reach_on_line(const struct quoit_ring_links *links, enum quoit_side side)
{
    uint32_t reach = links->links[side].reach;
    return reach == links->host_count ? 0 : reach;
}

bool quoit_ring_links_may_land(const struct quoit_ring_links *links, enum quoit_side side)
{
    return links->links[side].is_confirmed;
}

bool quoit_ring_links_side_to(const struct quoit_ring_links *links, enum quoit_side preferred, uint32_t host,
                              enum quoit_side *side_out)
{
    enum quoit_side other = quoit_ring_opposite(preferred);
    bool is_clear =
        quoit_ring_hops(links->host_count, preferred, links->host_self, host) <= links->links[preferred].reach;
    bool is_other_clear =
        quoit_ring_hops(links->host_count, other, links->host_self, host) <= links->links[other].reach;
    *side_out = !is_clear && is_other_clear ? other : preferred;
    return is_clear || is_other_clear;
}

void quoit_ring_check_links(const struct quoit_ring_links *links)
{
    struct quoit_ring_topology topology;
    uint32_t sum = 0;
    quoit_ring_links_describe(links, &topology);
    quoit_assert(links->is_cut == (topology.dead_count >= 2));
    uint32_t pending_counts[QUOIT_SIDE_COUNT] = {0};
    for (uint32_t end = 0; end < 2 * links->host_count; end++) {
        sum += links->ends[end].state;
        for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
            pending_counts[side] += links->ends[end].is_pending[side];
    }
    quoit_assert(links->topology_version == sum);
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        bool is_own_up = quoit_ring_links_is_up(links, (enum quoit_side)side);
        quoit_assert(links->links[side].pending_count == pending_counts[side]);
        quoit_assert(is_own_up || pending_counts[side] == 0);
        quoit_assert(is_own_up || !links->links[side].is_confirmed);
        quoit_assert(is_own_up || links->links[side].reach == 0);
    }
}
