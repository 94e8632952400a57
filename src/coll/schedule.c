/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/schedule.h"
#include "ring/route.h"

/* The host whose message, travelling in that direction, reaches `host` after `distance` (less than host_count) hops. */
static uint32_t upstream(uint32_t host_count, uint32_t host, uint32_t distance, enum quoit_travel travel)
{
    return (travel == QUOIT_NEXT ? host + host_count - distance : host + distance) % host_count;
}

uint32_t quoit_schedule_neighbour(uint32_t host_count, uint32_t host, enum quoit_travel travel)
{
    return quoit_ring_neighbour(host_count, travel == QUOIT_NEXT ? QUOIT_RIGHT : QUOIT_LEFT, host);
}

uint32_t quoit_schedule_exchange_rounds(uint32_t host_count)
{
    return host_count / 2;
}

bool quoit_schedule_exchange_sends(uint32_t host_count, uint32_t round, enum quoit_travel travel)
{
    bool is_last_of_even = host_count % 2 == 0 && round + 1 == host_count / 2;
    return travel == QUOIT_NEXT || !is_last_of_even;
}

struct quoit_step quoit_schedule_exchange(uint32_t host_count, uint32_t host, uint32_t round, enum quoit_travel travel)
{
    return (struct quoit_step){.send = upstream(host_count, host, round, travel),
                               .receive = upstream(host_count, host, round + 1, travel)};
}

struct quoit_step quoit_schedule_combine(uint32_t host_count, uint32_t host, uint32_t round, enum quoit_travel travel)
{
    return (struct quoit_step){.send = upstream(host_count, host, round, travel),
                               .receive = upstream(host_count, host, round + 1, travel)};
}

/* After the combining rounds the chunk of the downstream host is complete. */
struct quoit_step quoit_schedule_gather(uint32_t host_count, uint32_t host, uint32_t round, enum quoit_travel travel)
{
    uint32_t downstream = quoit_schedule_neighbour(host_count, host, travel);
    return (struct quoit_step){.send = upstream(host_count, downstream, round, travel),
                               .receive = upstream(host_count, host, round, travel)};
}

struct quoit_spread quoit_schedule_spread(uint32_t host_count, uint32_t host, uint32_t root)
{
    uint32_t reach_next = host_count / 2; /* hosts reached travelling NEXT; the others travelling PREVIOUS */
    uint32_t reach_previous = host_count - 1 - reach_next;
    uint32_t distance = (host + host_count - root) % host_count;
    struct quoit_spread spread = {.does_receive = distance > 0};
    if (distance == 0) {
        spread.sends[QUOIT_NEXT] = reach_next > 0;
        spread.sends[QUOIT_PREVIOUS] = reach_previous > 0;
    } else if (distance <= reach_next) {
        spread.receive = QUOIT_NEXT;
        spread.sends[QUOIT_NEXT] = distance < reach_next;
    } else {
        spread.receive = QUOIT_PREVIOUS;
        spread.sends[QUOIT_PREVIOUS] = host_count - distance < reach_previous;
    }
    return spread;
}

struct quoit_circulation quoit_schedule_circulate(uint32_t host_count, uint32_t host, uint32_t root,
                                                  enum quoit_travel travel)
{
    return (struct quoit_circulation){.receives = host != root,
                                      .sends = quoit_schedule_neighbour(host_count, host, travel) != root};
}

bool quoit_schedule_arrivals_are_all(uint32_t host_count, const struct quoit_arrivals *arrivals)
{
    return arrivals->known[QUOIT_NEXT] + arrivals->known[QUOIT_PREVIOUS] >= host_count - 1;
}

uint32_t quoit_schedule_arrivals_advertise(uint32_t host_count, const struct quoit_arrivals *arrivals,
                                           enum quoit_travel travel)
{
    uint32_t count = arrivals->known[travel] + 1;
    return count < host_count ? count : host_count - 1;
}

uint32_t quoit_schedule_dissemination_rounds(uint32_t host_count)
{
    uint32_t rounds = 0;
    while ((1u << rounds) < host_count)
        rounds++;
    return rounds;
}

struct quoit_step quoit_schedule_disseminate(uint32_t host_count, uint32_t host, uint32_t round)
{
    uint32_t distance = (1u << round) % host_count;
    return (struct quoit_step){.send = upstream(host_count, host, distance, QUOIT_PREVIOUS),
                               .receive = upstream(host_count, host, distance, QUOIT_NEXT)};
}

uint32_t quoit_schedule_dissemination_blocks(uint32_t host_count, uint32_t round)
{
    uint32_t held = 1u << round, missing = host_count - held;
    return held < missing ? held : missing;
}

struct quoit_halving quoit_schedule_halve(uint32_t host_count, uint32_t round)
{
    uint32_t end = host_count;
    for (uint32_t i = 0; i < round; i++)
        end -= end / 2;
    return (struct quoit_halving){.first = end - end / 2, .end = end};
}

struct quoit_tree quoit_schedule_tree(uint32_t host_count, uint32_t host, uint32_t root)
{
    uint32_t distance = (host + host_count - root) % host_count;
    struct quoit_tree tree = {.does_receive = distance != 0};
    while ((distance >> tree.first) != 0)
        tree.first++;
    tree.receive = tree.does_receive ? tree.first - 1 : 0;
    tree.end = tree.first;
    while (distance + (1u << tree.end) < host_count)
        tree.end++;
    return tree;
}

struct quoit_part quoit_schedule_part(uint64_t count, uint32_t part_count, uint32_t index)
{
    uint64_t few = count / part_count, larger_count = count % part_count;
    return (struct quoit_part){.start = index * few + (index < larger_count ? index : larger_count),
                               .count = few + (index < larger_count ? 1 : 0)};
}
