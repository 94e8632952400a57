/* SPDX-License-Identifier: BSD-3-Clause */
/* collectives.h - what the parts of the test of collectives share: the members, the buffers and their check.
 *
 * An operation is drawn by all members alike from the generator of their group. It begins by collective_begin(), which
 * chooses where source and dest lie and what they hold; the caller writes what dest must become into `model`, calls the
 * collective and ends by collective_end(), which compares every byte of dest and those around it.
 */
#ifndef QUOIT_TESTS_COLLECTIVES_H
#define QUOIT_TESTS_COLLECTIVES_H

#include "base/prng.h"

#include <shmem.h>
#include <stdbool.h>

#define BYTES_MAX (1u << 20) /* of source and of dest */

/* The members of a team, or of an active set. */
struct group {
    shmem_team_t team; /* SHMEM_TEAM_INVALID: an active set */
    int rank, size;
    int start, stride;      /* PEs of the world */
    int bank;               /* of pSyncs: one for the groups that can be at work at the same time on one PE */
    int set_count;          /* active sets made of members since they all met */
    int log_stride;         /* of an active set */
    long *sync;             /* likewise */
    void *work;             /* symmetric: pWrk of active sets */
    struct quoit_prng prng; /* the same on all members */
};

struct operation {
    const struct group *group;
    uint64_t key; /* of the contents */
    bool is_in_place;
    unsigned char *source, *dest;
    unsigned char *model;   /* what dest must become; as dest is at first */
    unsigned char *scratch; /* BYTES_MAX, private */
    size_t source_bytes, dest_bytes;
    size_t element_bytes;
    size_t value_bytes; /* of an element, those that are compared */
};

/* Which bytes there are, decided by the members alone. */
uint64_t collective_mix(uint64_t word);
void collective_fill(const struct operation *operation, int rank, size_t at, void *to, size_t bytes);

/* A number of elements, whose bytes are at most `most`: none, one, few, many. */
size_t collective_count(struct group *group, size_t element_bytes, size_t most);

/* is_in_place: source is dest, and dest_bytes are source_bytes. */
void collective_begin(struct operation *operation, struct group *group, size_t element_bytes, size_t source_bytes,
                      size_t dest_bytes, bool is_in_place);
/* `status` is what the collective returned. Then the source is anyone's again. */
void collective_end(const struct operation *operation, const char *name, const char *type, int status);

/* One operation on the members. */
void collective_broadcast(struct group *group);
void collective_collect(struct group *group);
void collective_alltoall(struct group *group);
void collective_alltoalls(struct group *group);
void collective_reduce(struct group *group);
void collective_scan(struct group *group); /* not for active sets */

#endif
