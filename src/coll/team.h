/* SPDX-License-Identifier: BSD-3-Clause */
/* team.h - a team's members by host, its workspace, and the building blocks of all collectives. Private to coll.
 *
 * The members on one host form a group, led by the one whose segment is first in the host's memory: only leaders
 * communicate with other hosts, and the group uses only the leader's workspace (but for `posted`). Hosts are numbered
 * 0..host_count-1 in order of rank; the ranks of a host are consecutive.
 *
 * Flags are counters that only grow, each with one writer at a time; a waiter waits for at least a value that all
 * members compute alike, since all call the same operations in the same order. Values begin at flag_base, above those
 * of all earlier teams on the same piece.
 *
 * Why nothing is overwritten too early:
 *   phase    All members of a group arrive, one of them works while the others wait, then all continue. What the worker
 *            writes into the leader's workspace was last read before its readers arrived, so the group needs no double
 *            buffering.
 *   round    Leaders send to both neighbours, then wait for both: a neighbour that sent round t had processed round
 *            t - 1. In round t a leader has seen its neighbours' round t - 1, so they are done with round t - 2: two
 *            halves (alternating by round, or by exchange, which is at least one round) suffice for neighbours' writes.
 *   exchange A leader that has all blocks of exchange t has seen all others in it, so they are done with t - 1: the two
 *            halves suffice for the writes of a dissemination too, which come from any leader.
 *   halving  Each round's blocks have a place of their own. The leader that writes there again has received, by
 * gathering, what this one sent after it had combined them. A leader that is done has a complete block of every other,
 * so all have combined what came, and what follows may use the buffers. slots    Small broadcasts use consecutive parts
 * of one buffer, as long as the data. When all of it was used since the last closed operation (one in which each member
 * waits for all), a sync comes first. So a closed operation, which the readers entered after reading, lies between two
 * uses of a byte. lent     Buffers that an alltoall lends: members write before they arrive, into the half that was
 * last read before its readers arrived at the phase in between.
 */
#ifndef QUOIT_COLL_TEAM_H
#define QUOIT_COLL_TEAM_H

#include "coll/choice.h"
#include "coll/coll.h"
#include "coll/schedule.h"

#define QUOIT_SLOT_COUNT           8 /* of the largest size */
#define QUOIT_SCRATCH_BYTES        16384u
#define QUOIT_DISSEMINATION_ROUNDS 10
#define QUOIT_ELEMENT_BYTES        32u /* the largest element of a reduction */

struct quoit_flag {
    _Alignas(64) _Atomic uint64_t value;
};

/* At the front of a piece. */
struct quoit_team_flags {
    /* of the group, in the leader's segment */
    struct quoit_flag arrived;           /* writers: the group. Counts arrivals at phases, from 0 in each team */
    struct quoit_flag released;          /* writer: the member that worked in the phase */
    struct quoit_flag published;         /* writer: the root on its host, the leader elsewhere */
    _Alignas(64) uint64_t collect_total; /* writer: the member that works in a collect's first phase */
    uint64_t collect_base;               /* where the group's bytes begin */
    /* of leaders */
    struct quoit_flag rounds[QUOIT_TRAVEL_COUNT];   /* writers: the neighbours' leaders; by direction of travel */
    struct quoit_flag stream[QUOIT_TRAVEL_COUNT];   /* likewise */
    struct quoit_flag arrivals[QUOIT_TRAVEL_COUNT]; /* likewise */
    struct quoit_flag disseminate[QUOIT_DISSEMINATION_ROUNDS]; /* writer: the leader that notifies in this round */
    struct quoit_flag tree[QUOIT_DISSEMINATION_ROUNDS];        /* likewise */
    struct quoit_flag posts[QUOIT_DISSEMINATION_ROUNDS];       /* likewise */
    struct quoit_flag halve[QUOIT_DISSEMINATION_ROUNDS];       /* writer: the leader whose blocks are combined */
    struct quoit_flag gather[QUOIT_DISSEMINATION_ROUNDS];      /* writer: the leader that combined this one's */
    /* of each member */
    _Alignas(64) uint64_t posted[8]; /* writer: the owner, before it arrives; read by the member that works */
    struct quoit_flag read;          /* writer: the owner. The last large broadcast that it copied */
};

/* A piece: flags, slots, then gather and table twice each, then an inbound buffer per direction and half. All offsets
 * are within the piece, but that of what a reduction by halving receives: in the world it has a place of its own. */
struct quoit_team_space {
    uint64_t start; /* segment offset of the piece */
    uint64_t slot_bytes;
    uint64_t gather_bytes;
    uint64_t table_bytes;
    uint64_t inbound_bytes;
    uint64_t halving_bytes;
    uint64_t slots;
    uint64_t gather;
    uint64_t table;
    uint64_t inbound;
    uint64_t halving;
};

struct quoit_team_host {
    uint32_t first_rank;
    uint32_t member_count;
    uint32_t leader_pe;
    bool is_direct; /* of the own leader's messages to that one; see struct quoit_engine_ops */
};

struct quoit_team_state {
    struct quoit_fabric *fabric;
    struct quoit_context context;
    struct quoit_team_range range;
    struct quoit_team_space space;
    const char *call;     /* the API routine in progress */
    uint64_t enter_count; /* of operations: the same on all members that are in the same one */
    uint64_t busy_ns;     /* estimated time for which the members of the group copy in it, all together */
    bool streams;         /* they write more than the caches hold */
    uint32_t rank;
    uint32_t host_count;
    uint32_t host; /* own index in hosts */
    struct quoit_team_host *hosts;
    uint32_t local_count; /* size of this member's group */
    uint32_t local;       /* own: 0..local_count-1, in order of rank */
    bool is_leader;
    bool has_host_barrier; /* the world, whose hosts synchronise by a barrier of the engine that joins them */
    bool has_links;        /* between its hosts; else each is as near as any other */
    bool receives;         /* this leader takes messages of the others itself */
    bool are_neighbours;   /* the team is on all hosts of a ring of links */
    char *leader_workspace;
    struct quoit_team_flags *flags; /* the leader's */
    uint64_t flag_base;
    /* Values of the flags so far. On all members: */
    uint64_t phase;
    uint64_t publish_count;
    uint64_t slot_at;     /* where the next small broadcast's slot begins, within slots */
    uint64_t open_bytes;  /* of slots used since the last closed operation */
    uint32_t gather_turn; /* selects the half */
    /* On leaders: */
    uint64_t round;
    uint64_t dissemination_count;
    uint64_t halving_count;
    uint64_t arrivals_count;                 /* barriers by arrivals */
    uint64_t sent_count[QUOIT_TRAVEL_COUNT]; /* of streams */
    uint64_t come_count[QUOIT_TRAVEL_COUNT];
    uint64_t tree_sent_count[QUOIT_DISSEMINATION_ROUNDS];
    uint64_t tree_come_count[QUOIT_DISSEMINATION_ROUNDS];
    uint64_t post_sent_count[QUOIT_DISSEMINATION_ROUNDS];
    uint64_t post_come_count[QUOIT_DISSEMINATION_ROUNDS];
    uint32_t table_turn;
    char *partials;   /* [host_count][gather_bytes]; NULL on others */
    uint64_t *starts; /* [host_count + 1], on all members */
    char *scratch;    /* QUOIT_SCRATCH_BYTES, aligned to a cache line */
};

static inline uint32_t quoit_team_pe_of(const struct quoit_team_state *team, uint32_t rank)
{
    return team->range.start + rank * team->range.stride; /* unsigned arithmetic handles a negative stride */
}
/* This PE's mapping of the segment of member `local` of its group. */
static inline char *quoit_team_workspace(const struct quoit_team_state *team, uint32_t local)
{
    uint32_t rank = team->hosts[team->host].first_rank + local;
    return team->fabric->peers[quoit_team_pe_of(team, rank)].segment;
}
static inline struct quoit_team_flags *quoit_team_flags_of(const struct quoit_team_state *team, uint32_t local)
{
    return (struct quoit_team_flags *)(quoit_team_workspace(team, local) + team->space.start);
}
/* What the choice of a schedule between its hosts depends on. */
static inline struct quoit_choice quoit_team_choice(const struct quoit_team_state *team)
{
    const struct quoit_job_config *job = &team->fabric->self.layout.job;
    return (struct quoit_choice){.host_count = team->host_count,
                                 .has_links = team->has_links,
                                 .schedules = quoit_choice_table(job->schedules, job->host_count, team->host_count)};
}
/* Segment offset of this operation's half of the gather buffer. */
static inline uint64_t quoit_team_gather(const struct quoit_team_state *team)
{
    return team->space.gather + team->gather_turn % 2 * team->space.gather_bytes;
}
/* Bytes of each half that can be lent. On one host, tables and inbound buffers carry no messages and are lent instead.
 */
static inline uint64_t quoit_team_lent_bytes(const struct quoit_team_state *team)
{
    return team->space.table_bytes + QUOIT_TRAVEL_COUNT * team->space.inbound_bytes;
}
static inline char *quoit_team_lent(const struct quoit_team_state *team)
{
    return team->leader_workspace + team->space.table + team->gather_turn % 2 * quoit_team_lent_bytes(team);
}

/* Begins a routine in which the members of the group write group_bytes all together. */
void quoit_team_enter(struct quoit_team_state *team, const char *call, uint64_t group_bytes);
/* Copies part of the bytes that quoit_team_enter() announced. */
void quoit_team_copy(const struct quoit_team_state *team, void *to, const void *from, size_t bytes);

/* Waits until *flag is at least `value`. */
void quoit_team_wait(struct quoit_team_state *team, const struct quoit_flag *flag, uint64_t value);
/* Wakes the other members of the group after a store to one of the leader's flags. */
void quoit_team_wake(struct quoit_team_state *team);

/* Waits until the flag at flag_offset in the flags of each member of the group is at least `value`. */
void quoit_team_wait_all(struct quoit_team_state *team, size_t flag_offset, uint64_t value);

/* All members of the group arrive; then one runs work(team, arg) (may be NULL), the leader if there are several hosts;
 * then all continue. */
typedef void quoit_team_work(struct quoit_team_state *team, void *arg);
void quoit_team_phase(struct quoit_team_state *team, quoit_team_work *work, void *arg);

/* The functions below are for leaders. */
struct quoit_team_message {
    uint64_t offset; /* its destination; bytes 0: the flag alone */
    const void *source;
    size_t bytes;
};
/* Sends each message with its flag to the neighbour in that direction, then waits for the messages that arrive in the
 * same directions. NULL: none.
 */
void quoit_team_round(struct quoit_team_state *team, const struct quoit_team_message *const messages[]);
/* Sends without waiting; the neighbour receives it with quoit_team_stream_wait(). */
void quoit_team_stream(struct quoit_team_state *team, const struct quoit_team_message *message,
                       enum quoit_travel travel);
void quoit_team_stream_wait(struct quoit_team_state *team, enum quoit_travel travel);
/* Waits for the next message in any direction in which one may come, takes it and returns the direction. */
enum quoit_travel quoit_team_stream_wait_any(struct quoit_team_state *team, const bool may_come[QUOIT_TRAVEL_COUNT]);
/* The same along a tree: the message of a round. */
void quoit_team_tree_send(struct quoit_team_state *team, const struct quoit_team_message *message, uint32_t round);
void quoit_team_tree_wait(struct quoit_team_state *team, uint32_t round);
/* The same for messages whose sender does not wait: they go by the proxy, which sends those of a row together. */
void quoit_team_post(struct quoit_team_state *team, const struct quoit_team_message *message, uint32_t round);
void quoit_team_post_wait(struct quoit_team_state *team, uint32_t round);
/* Blocks of a round of halving, in two parts if they go round from the last host to the first: to the leader that
 * combines them, or, gathering, to the one to whom they come complete. Waits for those that come to this one in the
 * same round. team->halving_count is that of the reductions' pieces, this one included. */
void quoit_team_halving_round(struct quoit_team_state *team, const struct quoit_team_message parts[2], uint32_t round,
                              bool is_gathering);
/* Waits until the leaders to whom this one sends in an exchange of the blocks of team->starts are inside, so that it
 * may write into their dests. */
void quoit_team_before_exchange(struct quoit_team_state *team);
/* Copies block j, at segment offset + team->starts[j] on the leader of host j, to the same place on all leaders. */
void quoit_team_exchange(struct quoit_team_state *team, uint64_t offset);
/* Gathers blocks of `bytes` (<= gather_bytes) of all leaders into team->partials, that of host j at j * bytes. Works in
 * slices of this many bytes, because the table has little room per host when there are many. */
static inline uint64_t quoit_team_slice_bytes(const struct quoit_team_state *team)
{
    return team->space.table_bytes / team->host_count / 8 * 8;
}
void quoit_team_exchange_partials(struct quoit_team_state *team, const void *block, size_t bytes);
/* Synchronises all leaders. A quoit_team_work; does nothing on one host. */
void quoit_team_sync_hosts(struct quoit_team_state *team, void *unused);

#endif
