/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.h - what carries the requests of a lane across its links: a lane engine.
 *
 * An engine is one protocol: our queues (proxy/queue.c), or the papers' scratchpads (papers/lane.c). The job config
 * names it, a table in proxy/engines.c finds it, and nothing else in the proxy depends on which one runs. What layers
 * above a lane must know of a protocol (its guarantees, its windows) is a row of host/protocol.h.
 *
 * Threads: group_open, open, close and group_close belong to one thread; the other functions of a lane to the lane's.
 * is_quiescent and check are called between two steps.
 */
#ifndef QUOIT_LANE_ENGINE_H
#define QUOIT_LANE_ENGINE_H

#include <stdbool.h>

#include "base/status.h"
#include "host/layout.h"
#include "port/port.h"
#include "wire/frame.h"

struct quoit_lane;
struct quoit_lane_group;

struct quoit_lane_engine {
    /* Creates what the lanes of a group share: group->shared. Both links are up and no lane is open. May be NULL. */
    enum quoit_status (*group_open)(struct quoit_lane_group *group);
    /* Also called after a group_open() that failed. The ports are closed. */
    void (*group_close)(struct quoit_lane_group *group);
    /* The lane is filled in, but for state, hint_bits and polled_bits, which the engine sets. */
    enum quoit_status (*open)(struct quoit_lane *lane);
    /* Also called after an open() that failed. */
    void (*close)(struct quoit_lane *lane);
    /* Processes pending work and returns the number of items. Sets lane->retry_at_ns if one had no resource and no
     * event will cause a retry. */
    uint32_t (*step)(struct quoit_lane *lane);
    /* Called before the lane sleeps, after it has announced it: what arrives from now on wakes its park. NULL:
     * doorbells do. */
    void (*arm)(struct quoit_lane *lane);
    /* A request was executed at this host; value: the old value of an AMO_FETCH. Called from within step(). */
    void (*respond)(struct quoit_lane *lane, const struct quoit_frame *request, uint64_t value);
    /* The link was lost before the lanes existed, and now has this epoch: begin with that side down. NULL: the protocol
     * does not survive the loss of a link. */
    void (*begin_down)(struct quoit_lane *lane, enum quoit_side side);
    /* Neither end of the link writes: resets the range of that side in the window SLOTS. */
    void (*clean)(const struct quoit_layout *layout, void *memory, enum quoit_side side);
    /* The vector of the index-th of the protocol's `count` doorbell bits (host/doorbells.h). */
    struct quoit_port_vector (*vector)(const struct quoit_layout *layout, uint32_t index, uint32_t count);
    bool (*is_quiescent)(const struct quoit_lane *lane);
    void (*check)(const struct quoit_lane *lane);
};

/* A barrier between hosts, in which lane 0 plays its host's part with any engine. */
struct quoit_lane_barrier {
    enum quoit_status (*open)(struct quoit_lane *lane); /* allocates lane->barrier_state, released by free() */
    uint32_t (*step)(struct quoit_lane *lane);          /* returns the number of moves */
    bool (*is_quiescent)(const struct quoit_lane *lane);
};

#endif
