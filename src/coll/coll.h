/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.h - collective operations over fabric, for any team of PEs.
 *
 * A team is an ordered set of PEs: start, stride, size. It owns a piece of the runtime region at the front of every
 * PE's area (its workspace: flags and small buffers, the same area offsets on all members); pieces are numbered, and
 * piece 0 is the world's. Fresh workspace is zero. Operations of a team are called by all members in the same order; a
 * workspace is reused without a barrier between two operations (generation counters, alternating halves).
 *
 * Hierarchical: inside a host through mapped memory, between hosts in ways that suit a ring.
 * Buffers are given as area offsets (symmetric) or private pointers as each function says.
 *
 * Threads: one collective of a team at a time. Errors: none; a job with a dead PE is ended by the launcher.
 */
#ifndef QUOIT_COLL_COLL_H
#define QUOIT_COLL_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct quoit_fabric;
struct quoit_team_state;

struct quoit_team_shape {
    uint32_t start;
    uint32_t stride;
    uint32_t size;
};

/* How many teams can live at once: pieces of the runtime region. */
uint32_t quoit_team_pieces_max(void);

/* NULL when out of memory. The own PE must be a member. Local: members use it after a sync of the parent. */
struct quoit_team_state *quoit_team_new(struct quoit_fabric *fabric, const struct quoit_team_shape *shape,
                                        uint32_t piece);
void quoit_team_delete(struct quoit_team_state *team);

/* All members have come. Does not complete memory updates: a barrier is quiet, then sync. */
void quoit_coll_sync(struct quoit_team_state *team, const char *call);

/* offset_dest on every member but the root gets `bytes` from source of the root; on the root too when has_root_copy.
 * `source` is read on the root only. Done locally at return: dest holds the data, source may be reused. */
void quoit_coll_broadcast(struct quoit_team_state *team, uint64_t offset_dest, const void *source, size_t bytes,
                          uint32_t root, bool has_root_copy, const char *call);

/* The bytes of all members in order: member i's `bytes` at dest + sum of the earlier members' bytes. The sizes may
 * differ (collect) or be equal (fcollect: is_equal, no sizes are exchanged). */
void quoit_coll_collect(struct quoit_team_state *team, uint64_t offset_dest, const void *source, size_t bytes,
                        bool is_equal, const char *call);

/* Member j gets, at dest + i * bytes, block j of member i's source (block j at source + j * bytes). */
void quoit_coll_alltoall(struct quoit_team_state *team, uint64_t offset_dest, const void *source, size_t bytes,
                         const char *call);

/* accumulate: into[i] = into[i] op from[i] for `count` elements. The same function on all members. */
typedef void quoit_combine(void *into, const void *from, size_t count);

/* dest on every member = the elementwise combination of all members' sources. In place (dest == source) is allowed.
 * The order of combination is the same for all members, so all get the same bits. */
void quoit_coll_reduce(struct quoit_team_state *team, uint64_t offset_dest, const void *source, size_t count,
                       size_t element_bytes, quoit_combine *combine, const char *call);

/* The OR of a small value of all members (agreement on success). */
uint64_t quoit_coll_agree(struct quoit_team_state *team, uint64_t value, const char *call);

#endif
