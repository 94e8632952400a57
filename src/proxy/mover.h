/* SPDX-License-Identifier: BSD-3-Clause */
/* mover.h - moves the payload of a lane by DMA where that is faster than programmed copy. Private to proxy.
 *
 * From which size on is found out at start: each proxy times both on its own ports, or it is told by an option. A
 * payload that the mover takes is under way until quoit_mover_next() says that it has arrived or is lost with its link;
 * then, and not before, may anything be written that announces it. A descriptor that the engine fails is made good by
 * programmed copy. So the source must stay unchanged until then.
 *
 * The lane does other work meanwhile and may sleep: a completion wakes it.
 *
 * Channels: a lane uses those whose number it has, modulo the lanes; where there are more lanes than channels, lanes
 * share one, and whoever polls it hands the others what is theirs.
 *
 * Threads: each mover belongs to its lane's thread, save `ended`. Why it is safe: docs/design/dma.md.
 */
#ifndef QUOIT_PROXY_MOVER_H
#define QUOIT_PROXY_MOVER_H

#include "lane/lane.h"
#include "port/port.h"

#define QUOIT_MOVES_MAX 64 /* of one lane under way */

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
    uint64_t dma_bytes[QUOIT_SIDE_COUNT]; /* payload of so many bytes and more goes by DMA; QUOIT_DMA_NEVER */
    uint32_t turn;                        /* moves started; spreads them over the lane's channels */
    uint64_t busy;                        /* bit per move under way */
    bool is_resting;                      /* starts nothing until all that is under way has ended */
    struct quoit_move moves[QUOIT_MOVES_MAX];
    /* 0: under way; else 1 + status. Writer: whichever lane polls the channel. release; pairs with acquire in
     * quoit_mover_next() */
    _Atomic uint32_t ended[QUOIT_MOVES_MAX];
};

/* Both links are up and the lanes do not run yet. Decides from which size on DMA is used, says so in the host's header,
 * and makes a mover for each lane. `movers` has room for all lanes. */
QUOIT_MUST_USE enum quoit_status quoit_movers_open(struct quoit_mover *movers, const struct quoit_lane_group *group);

/* True: it is under way as *index_out. False: the caller copies it himself; it is too small, or there is no room. */
bool quoit_mover_start(struct quoit_mover *mover, const struct quoit_move *move, uint32_t *index_out);
/* The next move that has ended: OK, it is at the neighbour; LINK_DOWN, it is lost. Other errors are final for the port.
 * False: none. */
bool quoit_mover_next(struct quoit_mover *mover, uint32_t *index_out, enum quoit_status *status_out);
/* True when nothing is under way. If not, nothing more is started until that is so. */
bool quoit_mover_rest(struct quoit_mover *mover);

#endif
