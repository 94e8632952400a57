/* SPDX-License-Identifier: BSD-3-Clause */
/* mover.h - moves the payload of a lane by DMA where that is faster than programmed copy. Private to proxy.
 *
 * The size from which on it is faster is measured at start by each proxy on its own ports, or given by an option. It
 * is smaller for a lane that has more to move, since a copy occupies its processor and DMA does not. A payload that the
 * mover accepts is outstanding until quoit_mover_next() returns that it has arrived or was lost with its link; only
 * then may anything be written that announces it. A failed descriptor is repaired by programmed copy, so the source
 * must stay unchanged until then.
 *
 * The lane does other work meanwhile and may sleep: a completion wakes it.
 *
 * Channels: a lane uses those of its number, modulo the lanes; if there are more lanes than channels, a lane that polls
 * a shared channel forwards other lanes' completions.
 *
 * Threads: each mover belongs to its lane's thread, but for `ended`. Why it is safe: docs/design/dma.md.
 */
#ifndef QUOIT_PROXY_MOVER_H
#define QUOIT_PROXY_MOVER_H

#include "lane/lane.h"
#include "port/port.h"

#define QUOIT_MOVES_MAX 64 /* outstanding moves of one lane */

struct quoit_move {
    enum quoit_side side;
    enum quoit_window window;
    uint64_t offset; /* in the window */
    const char *source;
    size_t bytes;
};

struct quoit_mover {
    struct quoit_mover *all; /* of the proxy, by lane */
    struct quoit_park *park; /* where the lane sleeps */
    uint32_t lane_index;
    uint32_t lane_count;
    struct quoit_port *ports[QUOIT_SIDE_COUNT];
    uint32_t channel_count[QUOIT_SIDE_COUNT];
    uint64_t dma_bytes[QUOIT_SIDE_COUNT];    /* payload size from which on DMA is used; QUOIT_DMA_NEVER */
    uint64_t queued_bytes[QUOIT_SIDE_COUNT]; /* the same while the lane has more to move; not larger */
    uint32_t turn;                           /* moves started; spreads them over the lane's channels */
    uint64_t busy;                           /* a bit per outstanding move */
    bool has_copied;                         /* in this step of the lane a payload was too small */
    bool is_resting;                         /* starts nothing until all outstanding moves have ended */
    struct quoit_move moves[QUOIT_MOVES_MAX];
    /* 0: outstanding; else 1 + status. Writer: the lane that polls the channel. release; pairs with acquire in
     * quoit_mover_next() */
    _Atomic uint32_t ended[QUOIT_MOVES_MAX];
};

/* Both links are up and the lanes do not run yet. Decides from which size on DMA is used, publishes it in the host's
 * header, and makes a mover for each lane. `movers` has room for all lanes. */
QUOIT_MUST_USE enum quoit_status quoit_movers_open(struct quoit_mover *movers, const struct quoit_lane_group *group);

/* A lane that moves several payloads in a step, or while others are under way, has more to do than to copy. */
void quoit_mover_begin_step(struct quoit_mover *mover);
/* True: outstanding as *index_out. False: the caller copies it; it is too small, or there is no room. */
bool quoit_mover_start(struct quoit_mover *mover, const struct quoit_move *move, uint32_t *index_out);
/* The next move that has ended: OK, it is at the neighbour; LINK_DOWN, it is lost. Other errors are final for the port.
 * False: none. */
bool quoit_mover_next(struct quoit_mover *mover, uint32_t *index_out, enum quoit_status *status_out);
/* True when nothing is outstanding. If not, nothing more is started until that is so. */
bool quoit_mover_rest(struct quoit_mover *mover);

#endif
