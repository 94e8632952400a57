/* SPDX-License-Identifier: BSD-3-Clause */
/* team.h - a team's members by host, its workspace, and what all collectives are made of. Private to coll.
 *
 * Members of one host form a group; the one that lies first in the host's memory leads it: only leaders speak to other
 * hosts, and only the leader's workspace is used by the group (but for `posted`). Hosts are numbered 0..host_count-1 in
 * the order of the ranks, which are contiguous on each.
 *
 * Flags are counters that only grow, each with one writer at a time; a waiter waits for at least a value that all
 * compute alike, since all call the same operations in the same order. Values begin at flag_base, above
 * those of all teams before on the same piece.
 *
 * Why nothing is overwritten too early:
 *   phase    All members of a group arrive, one of them works while the others wait, then all go on. What the worker
 *            writes into the leader's workspace was last read before its readers arrived. So the group needs no halves.
 *   round    Leaders send to both neighbours, then wait for both: a neighbour that sent round t had processed round
 *            t - 1. In round t a leader has seen its neighbours' round t - 1, so they are done with round t - 2: two
 *            halves (by round, or by exchange, which is at least one round) suffice for what neighbours write.
 *   slots    Of small broadcasts, pieces of one buffer in turn, as long as the data. When all of it was used since the
 *            last closed operation (one in which each member waits for all) a sync comes first. Between two uses of a
 *            byte lies a closed operation, which its readers entered after they had read.
 *   lent     What an alltoall lends: members write before they arrive, into the half that was last read before its
 *            readers arrived at the phase between.
 */
#ifndef QUOIT_COLL_TEAM_H
#define QUOIT_COLL_TEAM_H

#include "coll/coll.h"
#include "coll/schedule.h"

#define QUOIT_SLOT_COUNT    8 /* of the largest size */
#define QUOIT_SCRATCH_BYTES 16384u
#define QUOIT_TELL_ROUNDS   10
#define QUOIT_ELEMENT_BYTES 32u /* the largest element of a reduction */

struct quoit_flag {
    _Alignas(64) _Atomic uint64_t value;
};

/* At the front of a piece. */
struct quoit_team_flags {
    /* of the group, in the leader's segment */
    struct quoit_flag arrived;           /* writers: the group. Counts arrivals at phases, from 0 in each team */
    struct quoit_flag released;          /* writer: who worked in the phase */
    struct quoit_flag published;         /* writer: the root on its host, the leader elsewhere */
    _Alignas(64) uint64_t collect_total; /* writer: who works in a collect's first phase */
    uint64_t collect_base;               /* where the group's bytes begin */
    /* of leaders */
    struct quoit_flag rounds[QUOIT_TRAVEL_COUNT]; /* writers: the neighbours' leaders; by the way messages travel */
    struct quoit_flag stream[QUOIT_TRAVEL_COUNT]; /* likewise */
    struct quoit_flag news[QUOIT_TRAVEL_COUNT];   /* likewise */
    struct quoit_flag tell[QUOIT_TELL_ROUNDS];    /* writer: the leader that tells in this round */
    /* of each member */
    _Alignas(64) uint64_t posted[8]; /* writer: the owner, before it arrives; read by who works */
    struct quoit_flag read;          /* writer: the owner. The last large broadcast that it has copied */
};

/* A piece: flags, slots, then twice gather and table, then inbound for each way and half. All offsets in the piece. */
struct quoit_team_space {
    uint64_t start; /* of the piece, a segment offset */
    uint64_t slot_bytes;
    uint64_t gather_bytes;
    uint64_t table_bytes;
    uint64_t inbound_bytes;
    uint64_t slots;
    uint64_t gather;
    uint64_t table;
    uint64_t inbound;
};

struct quoit_team_host {
    uint32_t first_rank;
    uint32_t member_count;
    uint32_t leader_pe;
};

struct quoit_team_state {
    struct quoit_fabric *fabric;
    struct quoit_context context;
    struct quoit_team_shape shape;
    struct quoit_team_space space;
    const char *call;     /* the API routine that is inside */
    uint64_t enter_count; /* of operations: the same on all members that are in the same one */
    uint64_t busy_ns;     /* for about so long the members of the group copy in it, all together */
    bool streams;         /* they write more than caches hold */
    uint32_t rank;
    uint32_t host_count;
    uint32_t host; /* own: index in hosts */
    struct quoit_team_host *hosts;
    uint32_t local_count; /* size of the own group */
    uint32_t local;       /* own: 0..local_count-1, in order of rank */
    bool is_leader;
    bool has_host_barrier; /* the world, whose hosts meet by a barrier of the engine that joins them */
    bool are_neighbours;   /* the team is on all hosts of the ring */
    char *leader_workspace;
    struct quoit_team_flags *flags; /* the leader's */
    uint64_t flag_base;
    /* How far the flags have been counted. On all members: */
    uint64_t phase;
    uint64_t publish_count;
    uint64_t slot_at;     /* where the next small broadcast's slot begins, in slots */
    uint64_t open_bytes;  /* of slots, taken since the last closed operation */
    uint32_t gather_turn; /* which half */
    /* On leaders: */
    uint64_t round;
    uint64_t tell_count;
    uint64_t news_count;                     /* of barriers by news */
    uint64_t sent_count[QUOIT_TRAVEL_COUNT]; /* of streams */
    uint64_t come_count[QUOIT_TRAVEL_COUNT];
    uint32_t table_turn;
    char *partials;   /* [host_count][gather_bytes]; NULL on others */
    uint64_t *starts; /* [host_count + 1], on all members */
    char *scratch;    /* QUOIT_SCRATCH_BYTES, aligned to a cache line */
};

static inline uint32_t quoit_team_pe_of(const struct quoit_team_state *team, uint32_t rank)
{
    return team->shape.start + rank * team->shape.stride; /* a negative stride wraps round */
}
/* The segment of member `local` of the own group, as mapped here. */
static inline char *quoit_team_workspace(const struct quoit_team_state *team, uint32_t local)
{
    uint32_t rank = team->hosts[team->host].first_rank + local;
    return team->fabric->peers[quoit_team_pe_of(team, rank)].segment;
}
static inline struct quoit_team_flags *quoit_team_flags_of(const struct quoit_team_state *team, uint32_t local)
{
    return (struct quoit_team_flags *)(quoit_team_workspace(team, local) + team->space.start);
}
/* Segment offset of this operation's half of the gather buffer. */
static inline uint64_t quoit_team_gather(const struct quoit_team_state *team)
{
    return team->space.gather + team->gather_turn % 2 * team->space.gather_bytes;
}
/* On one host, where tables and inbound buffers are not needed for messages, they are lent: so much in each half. */
static inline uint64_t quoit_team_lent_bytes(const struct quoit_team_state *team)
{
    return team->space.table_bytes + QUOIT_TRAVEL_COUNT * team->space.inbound_bytes;
}
static inline char *quoit_team_lent(const struct quoit_team_state *team)
{
    return team->leader_workspace + team->space.table + team->gather_turn % 2 * quoit_team_lent_bytes(team);
}

/* A routine begins, in which the members of the group write so much all together. */
void quoit_team_enter(struct quoit_team_state *team, const char *call, uint64_t group_bytes);
/* A copy of what quoit_team_enter() was told of. */
void quoit_team_copy(const struct quoit_team_state *team, void *to, const void *from, size_t bytes);

/* Waits until *flag is at least `value`. */
void quoit_team_wait(struct quoit_team_state *team, const struct quoit_flag *flag, uint64_t value);
/* Wakes the other members of the group after a flag of the leader's was stored. */
void quoit_team_wake(struct quoit_team_state *team);

/* Waits until the flag at flag_offset of the own flags of each member of the group is at least `value`. */
void quoit_team_wait_all(struct quoit_team_state *team, size_t flag_offset, uint64_t value);

/* All members of the group arrive; then one runs work(team, arg) (NULL: nothing), the leader when there are several
 * hosts; then all go on. */
typedef void quoit_team_work(struct quoit_team_state *team, void *arg);
void quoit_team_phase(struct quoit_team_state *team, quoit_team_work *work, void *arg);

/* The functions below are for leaders. */
struct quoit_team_message {
    uint64_t offset; /* where it goes; bytes 0: the flag alone */
    const void *source;
    size_t bytes;
};
/* Sends each message with its flag to the neighbour that way, then waits for those that come the same ways. NULL: none.
 */
void quoit_team_round(struct quoit_team_state *team, const struct quoit_team_message *const messages[]);
/* Sends without waiting; the neighbour takes it by quoit_team_stream_wait(). */
void quoit_team_stream(struct quoit_team_state *team, const struct quoit_team_message *message,
                       enum quoit_travel travel);
void quoit_team_stream_wait(struct quoit_team_state *team, enum quoit_travel travel);
/* Waits for the next message of any of the ways that may come, takes it and returns its way. */
enum quoit_travel quoit_team_stream_wait_any(struct quoit_team_state *team, const bool may_come[QUOIT_TRAVEL_COUNT]);
/* Block j, at segment offset + team->starts[j] on the leader of host j, gets to the same place on all leaders. */
void quoit_team_exchange(struct quoit_team_state *team, uint64_t offset);
/* Blocks of `bytes` (<= gather_bytes) of all leaders get to team->partials, that of host j at j * bytes. In slices of
 * this many bytes, since of many hosts the table holds little of each. */
static inline uint64_t quoit_team_slice_bytes(const struct quoit_team_state *team)
{
    return team->space.table_bytes / team->host_count / 8 * 8;
}
void quoit_team_exchange_partials(struct quoit_team_state *team, const void *block, size_t bytes);
/* All leaders have come. A quoit_team_work; does nothing on one host. */
void quoit_team_sync_hosts(struct quoit_team_state *team, void *unused);

#endif
