/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.h - collective operations over fabric, for any team of PEs.
 *
 * A team is an ordered set of PEs: start, stride, size. It owns a piece of the runtime region at the front of every
 * PE's segment (its workspace: flags and small buffers, at the same segment offsets on all members). Pieces are
 * numbered; piece 0 belongs to the world. All members call a team's operations in the same order with the same
 * arguments, except for the sizes of collect and the values of agree; nothing is needed between two operations.
 *
 * A later team may reuse a piece without clearing it, because its flags begin above all values that the piece has seen:
 * each PE remembers the largest quoit_team_next_flag() of its deleted teams, and a split takes quoit_coll_largest() of
 * that over the parent. Flags have 64 bits and grow by a few per operation, so they do not wrap. A team is deleted
 * after a quoit_coll_sync of it.
 *
 * Hierarchical: mapped memory inside a host, ring algorithms between hosts.
 *
 * Buffers: segment offsets, the same on all members (OpenSHMEM requires source and dest of a collective to be
 * symmetric); quoit_coll_address() gives this PE's address of one. A member's dest is written, and its source read,
 * only between its entry and its return. On return its own dest is complete and its own source may be changed. Source
 * and dest may be the same object where stated, and must not overlap otherwise. Elements are aligned to their size.
 * Zero sizes are allowed, and then no member waits.
 *
 * Threads: one collective of a team at a time. Errors: none; the launcher ends a job with a dead PE.
 */
#ifndef QUOIT_COLL_COLL_H
#define QUOIT_COLL_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/fabric.h"

struct quoit_team_state;

struct quoit_team_range {
    uint32_t start;
    uint32_t stride;
    uint32_t size;
};

/* Pieces of the runtime region, which limit the teams of a PE. Those of active sets follow the others. */
#define QUOIT_TEAM_PIECES 63
#define QUOIT_SET_PIECES  16

/* Flags of the n-th team, for teams that are numbered instead of counted: n << QUOIT_TEAM_FLAG_BITS. */
#define QUOIT_TEAM_FLAG_BITS 40

/* NULL when out of memory. The calling PE must be a member. `piece` is free on all members; first_flag, the same on
 * all, is above all its flags, or 0 if the piece was never used. Members may use the team at once. The caller deletes
 * it. */
struct quoit_team_state *quoit_team_new(struct quoit_fabric *fabric, const struct quoit_team_range *range,
                                        uint32_t piece, uint64_t first_flag);
/* A value above all flags that the team has set in this PE's workspace, once its members have synchronised. */
uint64_t quoit_team_next_flag(const struct quoit_team_state *team);
void quoit_team_delete(struct quoit_team_state *team);
/* Until all messages of its collectives were acknowledged. */
void quoit_team_quiet(struct quoit_team_state *team);

/* This PE's address of its own object at `offset`. */
static inline void *quoit_coll_address(const struct quoit_fabric *fabric, uint64_t offset)
{
    return fabric->self.segment + offset;
}

/* Operations of the team so far. Members of a correct program agree on it between two operations. */
uint64_t quoit_coll_count(const struct quoit_team_state *team);

/* Returns when all members have called it. Completes no memory updates: a barrier is quiet, then sync. */
void quoit_coll_sync(struct quoit_team_state *team, const char *call);

/* Copies `bytes` from the root's source to dest on every other member, and on the root too if has_root_copy. `root` is
 * a rank in the team. Source and dest may be the same. */
void quoit_coll_broadcast(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t bytes,
                          uint32_t root, bool has_root_copy, const char *call);

/* Concatenates the bytes of all members in order of rank into every dest. Sizes may differ (collect) or be equal
 * (fcollect: is_equal, and no sizes are exchanged). A member without bytes may pass QUOIT_COLL_NOWHERE as source, and
 * also as dest if no member has any; if some member has, false is returned at once, others may remain inside, and the
 * caller must end the job. */
#define QUOIT_COLL_NOWHERE UINT64_MAX
bool quoit_coll_collect(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t bytes,
                        bool is_equal, const char *call);

/* Copies block j of member i's source (at source + j * bytes) to member j, at dest + i * bytes. */
void quoit_coll_alltoall(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t bytes,
                         const char *call);

/* The same with strides: a block is `count` elements of element_bytes (1..16); its elements, and consecutive blocks,
 * lie dest_stride and source_stride elements (>= 1) apart. */
struct quoit_alltoalls {
    uint64_t offset_dest;
    uint64_t offset_source;
    ptrdiff_t dest_stride;
    ptrdiff_t source_stride;
    size_t count;
    uint32_t element_bytes;
};
void quoit_coll_alltoalls(struct quoit_team_state *team, const struct quoit_alltoalls *blocks, const char *call);

/* Combines elementwise: into[i] = into[i] op from[i] for `count` elements, which may be none: a host's part of few is
 * empty. The same function on all members. */
typedef void quoit_combine(void *into, const void *from, size_t count);

/* Writes the elementwise combination of all members' sources to every dest. In place (dest == source) is allowed.
 * element_bytes is 1..32. All members get the same bits. */
void quoit_coll_reduce(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t count,
                       size_t element_bytes, quoit_combine *combine, const char *call);

/* Writes the combination, in order, of the sources of members 0..i (is_inclusive) or 0..i-1 to member i's dest.
 * Exclusive: member 0's dest becomes zero bytes. In place is allowed. */
void quoit_coll_scan(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t count,
                     size_t element_bytes, quoit_combine *combine, bool is_inclusive, const char *call);

/* The OR, and the maximum, of a private value over all members (to agree on success, on a free piece, on a first flag).
 */
uint64_t quoit_coll_agree(struct quoit_team_state *team, uint64_t value, const char *call);
uint64_t quoit_coll_largest(struct quoit_team_state *team, uint64_t value, const char *call);

#endif
