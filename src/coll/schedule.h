/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule.h - which host of a team sends what to which other in which round. Pure arithmetic.
 *
 * The hosts of a team form a circle in the order of the team's ranks: 0..host_count-1. A message travels NEXT (from
 * host h to h + 1) or PREVIOUS (to h - 1), wrapping around. In the schedules with rounds every host does the same in
 * each round: it sends one message in each direction, then waits for one from each side. Blocks (exchange) and chunks
 * (reduction) are named by the host that starts with them.
 *
 * Threads: any. Errors: none.
 */
#ifndef QUOIT_COLL_SCHEDULE_H
#define QUOIT_COLL_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum quoit_travel { QUOIT_NEXT, QUOIT_PREVIOUS };
#define QUOIT_TRAVEL_COUNT 2

/* Of a large broadcast round the hosts: large enough to hide the cost of a flag, small enough to fill the pipeline
 * early. */
#define QUOIT_SCHEDULE_CHUNK_BYTES 65536u

/* The host that a message from `host` reaches in that direction. */
uint32_t quoit_schedule_neighbour(uint32_t host_count, uint32_t host, enum quoit_travel travel);

/* What a host sends in a round, and what it receives in the same direction. */
struct quoit_step {
    uint32_t send;
    uint32_t receive;
};

/* Exchange: every block reaches all hosts in host_count / 2 rounds. In each round a host forwards the block that
 * arrived in the round before, beginning with its own. With an even number of hosts the last round needs one direction
 * only. Without blocks it is a barrier. */
uint32_t quoit_schedule_exchange_rounds(uint32_t host_count);
bool quoit_schedule_exchange_sends(uint32_t host_count, uint32_t round, enum quoit_travel travel);
struct quoit_step quoit_schedule_exchange(uint32_t host_count, uint32_t host, uint32_t round, enum quoit_travel travel);

/* Reduction (ring reduce-scatter, then allgather): in host_count - 1 rounds each host combines the arriving chunk with
 * its own, and then holds one complete chunk; in host_count - 1 further rounds all chunks reach all hosts. Each
 * direction does this with data of its own. */
struct quoit_step quoit_schedule_combine(uint32_t host_count, uint32_t host, uint32_t round, enum quoit_travel travel);
struct quoit_step quoit_schedule_gather(uint32_t host_count, uint32_t host, uint32_t round, enum quoit_travel travel);

/* Spread: one host's data reaches all others, half of them in each direction. */
struct quoit_spread {
    bool does_receive; /* all but the root */
    enum quoit_travel receive;
    bool sends[QUOIT_TRAVEL_COUNT];
};
struct quoit_spread quoit_schedule_spread(uint32_t host_count, uint32_t host, uint32_t root);

/* Circulation: of one host's large data, one half travels around the ring by NEXT and the other by PREVIOUS, so each
 * link carries half of it in each direction. */
struct quoit_circulation {
    bool receives;
    bool sends; /* all but the last host in that direction */
};
struct quoit_circulation quoit_schedule_circulate(uint32_t host_count, uint32_t host, uint32_t root,
                                                  enum quoit_travel travel);

/* Arrivals: a neighbour barrier that needs no message over one of the links, whichever it is. A host advertises its
 * arrival to both neighbours. Whenever the number of consecutive hosts known to have arrived on one side grows, it
 * advertises that number plus one to the other side. The barrier is complete when both sides together are all other
 * hosts; by then the host has advertised to each neighbour what that one still needs. */
struct quoit_arrivals {
    uint32_t known[QUOIT_TRAVEL_COUNT]; /* hosts known to have arrived, by the direction in which their advertisements
                                         * travel */
};
bool quoit_schedule_arrivals_are_all(uint32_t host_count, const struct quoit_arrivals *arrivals);
/* The number to advertise in that direction now: 1..host_count - 1. */
uint32_t quoit_schedule_arrivals_advertise(uint32_t host_count, const struct quoit_arrivals *arrivals,
                                           enum quoit_travel travel);

/* Dissemination: a barrier in log2(host_count) rounds, most of which cross several links. In a round a host notifies
 * `send` and waits for `receive`. With blocks it is Bruck's allgather: a message of a round has so many blocks, the
 * sender's own and those of the hosts before it, which it holds by then; after all rounds each host holds all. */
uint32_t quoit_schedule_dissemination_rounds(uint32_t host_count);
struct quoit_step quoit_schedule_disseminate(uint32_t host_count, uint32_t host, uint32_t round);
uint32_t quoit_schedule_dissemination_blocks(uint32_t host_count, uint32_t round);

/* Halving (reduce-scatter, then allgather, on a circulant graph): a reduction in log2(host_count) rounds each way,
 * which carries as few bytes as going round, for any number of hosts. A host counts blocks from its own: its block i is
 * that of host + i. In a round it sends its blocks first..end-1 to the host `first` further on and combines as many,
 * which come from the host `first` before it, with its blocks 0..end-first-1. After the last round its own block is
 * complete. Gathering goes back from the last round to the first: blocks 0..end-first-1 are complete by then, and go to
 * the host `first` before, whose blocks first..end-1 they are. */
struct quoit_halving {
    uint32_t first;
    uint32_t end;
};
struct quoit_halving quoit_schedule_halve(uint32_t host_count, uint32_t round);

/* Tree (binomial): one host's data reaches all others in the rounds of a dissemination. In each round the hosts that
 * have it send it to their `send` of that round: a host's message of a round has the same sender whatever the root. */
struct quoit_tree {
    bool does_receive; /* all but the root */
    uint32_t receive;  /* the round */
    uint32_t first;    /* the rounds in which it sends: first..end-1 */
    uint32_t end;
};
struct quoit_tree quoit_schedule_tree(uint32_t host_count, uint32_t host, uint32_t root);

/* Part `index` of `count` items divided into part_count parts that differ by at most one item. */
struct quoit_part {
    uint64_t start;
    uint64_t count;
};
struct quoit_part quoit_schedule_part(uint64_t count, uint32_t part_count, uint32_t index);

#endif
