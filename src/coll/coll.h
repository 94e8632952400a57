/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.h - collective operations over fabric, for any team of PEs.
 *
 * A team is an ordered set of PEs: start, stride, size. It owns a piece of the runtime region at the front of every
 * PE's segment (its workspace: flags and small buffers, the same segment offsets on all members); pieces are numbered,
 * and piece 0 is the world's. Operations of a team are called by all members in the same order with the same arguments
 * (but for the sizes of collect and the values of agree); nothing needs to stand between two operations.
 *
 * A piece may be used again by a later team, whose flags begin above all that the piece has seen, so the workspace is
 * never cleared: each PE keeps the largest quoit_team_next_flag() of the teams that it has deleted, and a split takes
 * quoit_coll_largest() of that over the parent. Flags have 64 bits and grow by a few an operation: they do not wrap. A
 * team is deleted after a quoit_coll_sync of it.
 *
 * Hierarchical: inside a host through mapped memory, between hosts in ways that suit a ring.
 *
 * Buffers: segment offsets, the same on all members (in OpenSHMEM source and dest of a collective are both symmetric);
 * quoit_coll_address() tells where this PE sees one. A member's dest is written, and its source read, only between its
 * entry and its return. At return the own dest is complete and the own source may be changed. Source and dest may be
 * the same object where that is said, and do not overlap otherwise. Elements are aligned to their size, as the
 * program's objects are; zero sizes are allowed, and then nothing is waited for.
 *
 * Threads: one collective of a team at a time. Errors: none; a job with a dead PE is ended by the launcher.
 */
#ifndef QUOIT_COLL_COLL_H
#define QUOIT_COLL_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/fabric.h"

struct quoit_team_state;

struct quoit_team_shape {
    uint32_t start;
    uint32_t stride;
    uint32_t size;
};

/* Pieces of the runtime region: so many teams can live at once on a PE. Those of active sets follow the others. */
#define QUOIT_TEAM_PIECES 63
#define QUOIT_SET_PIECES  16

/* Flags for the n-th team of something that is numbered and not counted: n << QUOIT_TEAM_FLAG_BITS. */
#define QUOIT_TEAM_FLAG_BITS 40

/* NULL when out of memory. The own PE must be a member. `piece` is free on all members, and first_flag, the same on
 * all, is above all its flags; 0: it was never used before. Members may use the team at once. */
struct quoit_team_state *quoit_team_new(struct quoit_fabric *fabric, const struct quoit_team_shape *shape,
                                        uint32_t piece, uint64_t first_flag);
/* Above all flags that the team has set in the workspace of this PE, once its members have come together. */
uint64_t quoit_team_next_flag(const struct quoit_team_state *team);
void quoit_team_delete(struct quoit_team_state *team);

/* Where this PE sees its own object at `offset`. */
static inline void *quoit_coll_address(const struct quoit_fabric *fabric, uint64_t offset)
{
    return fabric->self.segment + offset;
}

/* Operations of the team so far. Members of a correct program agree on it between two operations. */
uint64_t quoit_coll_count(const struct quoit_team_state *team);

/* All members have come. Does not complete memory updates: a barrier is quiet, then sync. */
void quoit_coll_sync(struct quoit_team_state *team, const char *call);

/* dest on every member but the root gets `bytes` from source of the root; on the root too when has_root_copy. `root` is
 * a rank in the team. Source and dest may be the same. */
void quoit_coll_broadcast(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t bytes,
                          uint32_t root, bool has_root_copy, const char *call);

/* The bytes of all members in order: member i's `bytes` at dest + sum of the earlier members' bytes. The sizes may
 * differ (collect) or be equal (fcollect: is_equal, no sizes are exchanged). A member without bytes may give
 * QUOIT_COLL_NOWHERE for source, and for dest too when nobody has any; if somebody has, false comes back at once,
 * others may be left inside, and the caller must end the job. */
#define QUOIT_COLL_NOWHERE UINT64_MAX
bool quoit_coll_collect(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t bytes,
                        bool is_equal, const char *call);

/* Member j gets, at dest + i * bytes, block j of member i's source (block j at source + j * bytes). */
void quoit_coll_alltoall(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t bytes,
                         const char *call);

/* The same with strides: a block is `count` elements of element_bytes (1..16); its elements, and the blocks after one
 * another, lie dest_stride and source_stride elements (>= 1) apart. */
struct quoit_alltoalls {
    uint64_t offset_dest;
    uint64_t offset_source;
    ptrdiff_t dest_stride;
    ptrdiff_t source_stride;
    size_t count;
    uint32_t element_bytes;
};
void quoit_coll_alltoalls(struct quoit_team_state *team, const struct quoit_alltoalls *blocks, const char *call);

/* accumulate: into[i] = into[i] op from[i] for `count` elements. The same function on all members. */
typedef void quoit_combine(void *into, const void *from, size_t count);

/* dest on every member = the elementwise combination of all members' sources. In place (dest == source) is allowed.
 * element_bytes is 1..32. All members get the same bits. */
void quoit_coll_reduce(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t count,
                       size_t element_bytes, quoit_combine *combine, const char *call);

/* dest of member i = the combination of the sources of members 0..i (is_inclusive) or 0..i-1, in order. Exclusive:
 * member 0's dest is filled with zero bytes. In place is allowed. */
void quoit_coll_scan(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t count,
                     size_t element_bytes, quoit_combine *combine, bool is_inclusive, const char *call);

/* The OR, and the largest, of a private value of all members (agreement on success, on a free piece, on a first flag).
 */
uint64_t quoit_coll_agree(struct quoit_team_state *team, uint64_t value, const char *call);
uint64_t quoit_coll_largest(struct quoit_team_state *team, uint64_t value, const char *call);

#endif
