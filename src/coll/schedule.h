/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule.h - who sends what to whom in which round, between the hosts of a team. Pure arithmetic.
 *
 * The hosts of a team stand in a circle, in the order of the team's ranks: 0..host_count-1. A message travels NEXT
 * (from host h to h + 1) or PREVIOUS (to h - 1), around the end too. In the schedules by rounds every host does the
 * same in each round: sends one message in each direction, then waits for one from each side. Blocks (exchange) and
 * chunks (reduction) are named by the host that begins with them.
 *
 * Threads: any. Errors: none.
 */
#ifndef QUOIT_COLL_SCHEDULE_H
#define QUOIT_COLL_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum quoit_travel { QUOIT_NEXT, QUOIT_PREVIOUS };
#define QUOIT_TRAVEL_COUNT 2

/* The host that a message travelling that way from `host` reaches. */
uint32_t quoit_schedule_neighbour(uint32_t host_count, uint32_t host, enum quoit_travel travel);

/* What a host sends in a round, and what arrives there travelling the same way. */
struct quoit_step {
    uint32_t send;
    uint32_t receive;
};

/* Exchange: every host's block gets to all, in host_count / 2 rounds. In a round a host sends on the block that came in
 * the round before, its own at first. The last round of an even number of hosts needs one direction only. Without
 * blocks it is a barrier. */
uint32_t quoit_schedule_exchange_rounds(uint32_t host_count);
bool quoit_schedule_exchange_sends(uint32_t host_count, uint32_t round, enum quoit_travel travel);
struct quoit_step quoit_schedule_exchange(uint32_t host_count, uint32_t host, uint32_t round, enum quoit_travel travel);

/* Reduction: host_count - 1 rounds in which each host combines the chunk that comes with its own; then each has one
 * complete chunk, and in host_count - 1 further rounds all chunks get to all. Each direction does it with data of its
 * own. */
struct quoit_step quoit_schedule_combine(uint32_t host_count, uint32_t host, uint32_t round, enum quoit_travel travel);
struct quoit_step quoit_schedule_gather(uint32_t host_count, uint32_t host, uint32_t round, enum quoit_travel travel);

/* Spread: data of one host gets to all, half of them each way. */
struct quoit_spread {
    bool does_receive; /* all but the root */
    enum quoit_travel receive;
    bool sends[QUOIT_TRAVEL_COUNT];
};
struct quoit_spread quoit_schedule_spread(uint32_t host_count, uint32_t host, uint32_t root);

/* Circulation: of much data of one host one half goes all the way round NEXT, the other PREVIOUS, so that each link
 * carries half of it each way. */
struct quoit_circulation {
    bool receives;
    bool sends; /* all but the last on that way */
};
struct quoit_circulation quoit_schedule_circulate(uint32_t host_count, uint32_t host, uint32_t root,
                                                  enum quoit_travel travel);

/* News: a barrier of neighbours that needs no message over one of the links, whichever that is. A host tells both
 * neighbours that it has come; and each time that it hears how many have come one after another on one side, it tells
 * the other side that they are one more. It knows enough when both sides together are all. By then it has told each
 * neighbour what that one still needs. */
struct quoit_news {
    uint32_t known[QUOIT_TRAVEL_COUNT]; /* hosts that are known to have come, by the way their news travel */
};
bool quoit_schedule_news_are_all(uint32_t host_count, const struct quoit_news *news);
/* What is told on that way now: 1..host_count - 1. */
uint32_t quoit_schedule_news_tell(uint32_t host_count, const struct quoit_news *news, enum quoit_travel travel);

/* Dissemination: a barrier in log2(host_count) rounds of which most go far. In a round a host tells `send` and waits
 * for `receive`. */
uint32_t quoit_schedule_tell_rounds(uint32_t host_count);
struct quoit_step quoit_schedule_tell(uint32_t host_count, uint32_t host, uint32_t round);

/* Part `index` of `count` items cut into part_count parts that differ by at most one item. */
struct quoit_part {
    uint64_t start;
    uint64_t count;
};
struct quoit_part quoit_schedule_part(uint64_t count, uint32_t part_count, uint32_t index);

#endif
