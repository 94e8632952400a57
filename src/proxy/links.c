/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/links.h"
#include "base/assert.h"
#include "base/log.h"
#include "env/clock.h"
#include "proxy/engines.h"
#include "proxy/start.h"
#include "ring/ring.h"

#include <string.h>

#define POLL_NS        100000   /* between two looks at what the neighbour says; scratchpads wake nobody */
#define RECHECK_NS     10000000 /* while something is not as it should be */
#define IDLE_NS        500000000
#define WORD_DOWN      1u /* in the low bits of a word to the neighbour; the incarnation stands above */
#define WORD_CLEAN     2u
#define WORD_KIND(w)   ((w)&3u)
#define WORD_NUMBER(w) ((w) >> 2)

static struct quoit_host_header *header_of(const struct quoit_links *links)
{
    return (struct quoit_host_header *)links->config->memory;
}

/* PEs sleep for things that came through this link, and a doorbell may be lost with it; or they may put directly again.
 */
static void wake_pes(const struct quoit_links *links)
{
    const struct quoit_layout *layout = links->config->layout;
    for (uint32_t local = 0; local < layout->local_count; local++)
        quoit_park_wake(&quoit_memory_pe(layout, links->config->memory, local)->park);
}

static void tell_lanes(struct quoit_links *links, enum quoit_side side, uint32_t wanted)
{
    for (uint32_t i = 0; i < links->config->layout->job.lane_count && links->lanes; i++) {
        atomic_store_explicit(&links->lanes[i].wanted[side], wanted, memory_order_release);
        quoit_park_wake(&links->lanes[i].shared->park);
    }
}

static bool lanes_follow(const struct quoit_links *links, enum quoit_side side)
{
    for (uint32_t i = 0; i < links->config->layout->job.lane_count && links->lanes; i++) {
        const struct quoit_lane *lane = &links->lanes[i];
        if (atomic_load_explicit(&lane->reached[side], memory_order_acquire) !=
            atomic_load_explicit(&lane->wanted[side], memory_order_relaxed))
            return false;
    }
    return true;
}

static void tell_cut_off(struct quoit_links *links, uint32_t first_link, uint32_t second_link)
{
    if (!links->is_cut_off_told)
        links->config->on_cut_off(links->config->on_ready_arg, first_link, second_link);
    links->is_cut_off_told = true;
}

/* What was on the way is gone for good. */
static void lose(struct quoit_links *links, enum quoit_side side)
{
    const struct quoit_layout *layout = links->config->layout;
    uint32_t link = side == QUOIT_RIGHT ? layout->host : quoit_layout_neighbour(layout, side);
    atomic_fetch_add_explicit(&header_of(links)->down_count[side], 1, memory_order_relaxed);
    links->sides[side].phase = QUOIT_LINK_PHASE_LOST;
    tell_cut_off(links, link, link);
}

static void begin_down(struct quoit_links *links, enum quoit_side side)
{
    struct quoit_link *link = &links->sides[side];
    struct quoit_host_header *header = header_of(links);
    atomic_store(&header->direct_epoch[side], 0);
    atomic_fetch_add_explicit(&header->down_count[side], 1, memory_order_relaxed);
    link->phase = QUOIT_LINK_PHASE_STOPPING;
    link->incarnation++;
    tell_lanes(links, side, QUOIT_LANE_DOWN(link->incarnation));
    wake_pes(links);
    quoit_log(QUOIT_LOG_INFO, "the link to the %s went down", side == QUOIT_LEFT ? "left" : "right");
}

/* The neighbour is down too, so nobody writes here. */
static void clean(struct quoit_links *links, enum quoit_side side, uint32_t word)
{
    struct quoit_link *link = &links->sides[side];
    enum quoit_status status = quoit_proxy_check_neighbour(links->config->layout, side, link->port, link->epoch);
    if (status == QUOIT_OK) {
        if (WORD_NUMBER(word) > link->incarnation)
            link->incarnation = WORD_NUMBER(word);
        quoit_engine_of(&links->config->layout->job)->clean(links->config->layout, links->config->memory, side);
        status = quoit_proxy_offer_windows(links->config->layout, side, link->port);
    }
    if (status == QUOIT_LINK_DOWN)
        return;
    if (status != QUOIT_OK) {
        links->status = status;
        return;
    }
    quoit_proxy_tell_link(link->port, link->incarnation << 2 | WORD_CLEAN);
    link->phase = QUOIT_LINK_PHASE_CLEAN;
}

static void come_up(struct quoit_links *links, enum quoit_side side)
{
    struct quoit_link *link = &links->sides[side];
    link->phase = QUOIT_LINK_PHASE_UP;
    tell_lanes(links, side, QUOIT_LANE_UP(link->incarnation));
    atomic_store(&header_of(links)->direct_epoch[side], link->epoch);
    wake_pes(links);
    if (links->lanes)
        quoit_log(QUOIT_LOG_INFO, "the link to the %s is up again", side == QUOIT_LEFT ? "left" : "right");
}

static void approach(struct quoit_links *links, enum quoit_side side)
{
    struct quoit_link *link = &links->sides[side];
    link->epoch = quoit_port_link_epoch(link->port);
    if (quoit_port_bind(link->port, link->epoch) != QUOIT_OK)
        return;
    quoit_proxy_introduce(links->config->layout, link->port);
    quoit_proxy_tell_link(link->port, link->incarnation << 2 | WORD_DOWN);
    link->phase = QUOIT_LINK_PHASE_DOWN;
}

static bool has_lost(const struct quoit_link *link)
{
    return !quoit_port_link_is_up(link->port) || quoit_port_link_epoch(link->port) != link->epoch;
}

/* One move of one side; true when it moved. */
static bool step_side(struct quoit_links *links, enum quoit_side side)
{
    struct quoit_link *link = &links->sides[side];
    enum quoit_link_phase before = link->phase;
    uint32_t word;
    switch (link->phase) {
    case QUOIT_LINK_PHASE_UP:
        if (!has_lost(link)) /* asked once: the answer may change at any instant */
            break;
        if (quoit_job_config_has_failover(&links->config->layout->job))
            begin_down(links, side);
        else
            lose(links, side);
        break;
    case QUOIT_LINK_PHASE_STOPPING:
        if (lanes_follow(links, side))
            link->phase = QUOIT_LINK_PHASE_AWAY;
        break;
    case QUOIT_LINK_PHASE_AWAY:
        if (quoit_port_link_is_up(link->port))
            approach(links, side);
        break;
    case QUOIT_LINK_PHASE_DOWN:
        word = quoit_proxy_told_link(link->port);
        if (has_lost(link))
            link->phase = QUOIT_LINK_PHASE_AWAY;
        else if (WORD_KIND(word) == WORD_DOWN ||
                 (WORD_KIND(word) == WORD_CLEAN && WORD_NUMBER(word) >= link->incarnation))
            clean(links, side, word);
        break;
    case QUOIT_LINK_PHASE_CLEAN:
        word = quoit_proxy_told_link(link->port);
        if (has_lost(link))
            link->phase = QUOIT_LINK_PHASE_AWAY;
        else if (WORD_KIND(word) == WORD_CLEAN && WORD_NUMBER(word) == link->incarnation)
            come_up(links, side);
        break;
    case QUOIT_LINK_PHASE_LOST:
        break;
    }
    return link->phase != before;
}

static bool both_are_up(const struct quoit_links *links)
{
    return links->sides[QUOIT_LEFT].phase == QUOIT_LINK_PHASE_UP &&
           links->sides[QUOIT_RIGHT].phase == QUOIT_LINK_PHASE_UP;
}

enum quoit_status quoit_links_start(struct quoit_links *links, const struct quoit_proxy_config *config,
                                    struct quoit_port *const ports[QUOIT_SIDE_COUNT])
{
    uint64_t deadline_ns = quoit_clock_now_ns() + config->link_timeout_ns;
    *links = (struct quoit_links){.config = config};
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        links->sides[side] = (struct quoit_link){.phase = QUOIT_LINK_PHASE_AWAY, .port = ports[side]};
    while (!both_are_up(links) && links->status == QUOIT_OK) {
        bool has_moved = step_side(links, QUOIT_LEFT);
        has_moved |= step_side(links, QUOIT_RIGHT);
        if (!has_moved && quoit_clock_now_ns() > deadline_ns) {
            quoit_log(QUOIT_LOG_ERROR, "a neighbour of host %u did not come up in %llu ms", config->layout->host,
                      (unsigned long long)(config->link_timeout_ns / 1000000));
            return QUOIT_TIMEOUT;
        }
        if (!has_moved)
            quoit_clock_sleep_ns(POLL_NS);
    }
    return links->status;
}

void quoit_links_lead(struct quoit_links *links, struct quoit_lane *lanes)
{
    links->lanes = lanes;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint32_t incarnation = links->sides[side].incarnation;
        if (incarnation == 0)
            continue;
        /* It was lost before there were lanes. Those of the neighbour may have seen it, so ours begin where they are.
         */
        for (uint32_t i = 0; i < links->config->layout->job.lane_count; i++) {
            lanes[i].engine->begin_down(&lanes[i], side);
            atomic_store_explicit(&lanes[i].reached[side], QUOIT_LANE_DOWN(incarnation), memory_order_relaxed);
        }
        tell_lanes(links, side, QUOIT_LANE_UP(incarnation));
    }
}

/* Two dead links cut hosts off. News of one that is back may be late, so it has to stay so for a while. */
static void watch_cut_off(struct quoit_links *links, uint64_t now_ns)
{
    const struct quoit_lane *lane = &links->lanes[0];
    uint64_t dead = atomic_load_explicit(&lane->dead_links, memory_order_acquire);
    if (dead == 0) {
        links->cut_off_since_ns = 0;
        return;
    }
    if (links->cut_off_since_ns == 0)
        links->cut_off_since_ns = now_ns;
    if (now_ns - links->cut_off_since_ns >= links->config->link_limit_ns)
        tell_cut_off(links, (uint32_t)(dead >> 32) - 1, (uint32_t)dead - 1);
}

static uint64_t sleep_ns(const struct quoit_links *links)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        const struct quoit_link *link = &links->sides[side];
        if (link->phase == QUOIT_LINK_PHASE_DOWN || link->phase == QUOIT_LINK_PHASE_CLEAN)
            return POLL_NS;
    }
    return both_are_up(links) && links->cut_off_since_ns == 0 ? IDLE_NS : RECHECK_NS;
}

void quoit_links_run(struct quoit_links *links)
{
    struct quoit_host_header *header = header_of(links);
    while (links->status == QUOIT_OK && !atomic_load_explicit(&header->is_stopping, memory_order_relaxed)) {
        uint32_t key = quoit_park_prepare(&header->manager_park);
        bool has_moved = step_side(links, QUOIT_LEFT);
        has_moved |= step_side(links, QUOIT_RIGHT);
        watch_cut_off(links, quoit_clock_now_ns());
        if (has_moved || atomic_load_explicit(&header->is_stopping, memory_order_relaxed))
            quoit_park_cancel(&header->manager_park);
        else
            quoit_park_sleep(&header->manager_park, key, sleep_ns(links));
    }
}
