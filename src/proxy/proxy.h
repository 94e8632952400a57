/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy.h - the service threads of one host: they drive both ports, forward, and serve the host's PEs.
 *
 * One thread per lane. Each polls its inbound queues and its PEs' channels, passes what it finds to its ring, executes
 * the verdicts (copies to slots; puts, gets and atomics on its PEs' memory) and sleeps on its lane's park when there is
 * nothing to do. One more thread runs the ring service (link/service.h), of which the proxy is a client: traffic
 * travels in the other direction while a link is down, and nothing is lost (docs/design/failover.md). The proxy is a
 * process of its own on each host, so a PE that dies cannot damage it. With the protocol SCRATCHPAD the lanes work as
 * in the papers (papers/lane.h), and a link that goes down ends the job; its transfers overwrite the scratchpads of the
 * start-up, so no PE may submit a request before the proxies of all hosts are ready.
 *
 * Threads: quoit_proxy_run() blocks its caller; quoit_proxy_stop may be called from a signal handler or another thread.
 * Errors: what no correct peer or PE does (a malformed frame, a request beyond the memory) ends the proxy, with a log
 * line.
 */
#ifndef QUOIT_PROXY_PROXY_H
#define QUOIT_PROXY_PROXY_H

#include "host/layout.h"
#include "lane/network.h"
#include "env/wait.h"
#include "port/port.h"

struct quoit_proxy_config {
    const struct quoit_layout *layout;
    void *memory;                                     /* the host's memory, mapped whole */
    struct quoit_port_config ports[QUOIT_SIDE_COUNT]; /* the driver of each side */
    const struct quoit_lane_network *network;         /* with the protocol NETWORK, in place of ports; else NULL */
    struct quoit_machine machine;                     /* published to the PEs of the host */
    bool is_down[QUOIT_SIDE_COUNT];                   /* links that are known to be down at start */
    uint64_t link_timeout_ns;                         /* for the neighbours to appear at start */
    uint64_t link_limit_ns;                           /* how long two links may be down */
    uint64_t dma_bytes;          /* payload size from which on DMA is used; or QUOIT_DMA_MEASURED, QUOIT_DMA_NEVER */
    void (*on_ready)(void *arg); /* called once: both neighbours agree on the job */
    /* Called once, when two links have been down for longer than link_limit_ns, so that some hosts are unreachable; or
     * at once, with the same link twice, when a link goes down that this job does not survive
     * (quoit_job_config_has_failover()). Link l joins host l and the next. The caller ends the job, unless it is
     * already stopping the proxies: the link to a neighbour that stopped first is down too. */
    void (*on_cut_off)(void *arg, uint32_t first_link, uint32_t second_link);
    void *on_ready_arg; /* of both */
    /* A message of another host for `port` of this one arrived; payload is valid during the call, which must not block.
     * NULL: messages are dropped. */
    void (*on_message)(void *arg, uint32_t source_host, uint32_t port, const void *payload, uint32_t bytes);
    void *on_message_arg;
};

/* Serves until header.is_stopping. OK after an orderly stop. */
QUOIT_MUST_USE enum quoit_status quoit_proxy_run(const struct quoit_proxy_config *config);

/* The same in parts, for a caller that creates the threads of the lanes and of the manager: open (links, lanes; waits
 * for the neighbours, does not call on_ready), serve each lane and manage once, then close. */
struct quoit_proxy;
struct quoit_lane;
QUOIT_MUST_USE enum quoit_status quoit_proxy_open(const struct quoit_proxy_config *config,
                                                  struct quoit_proxy **proxy_out);
/* Serves until header.is_stopping or a failure of this lane, which stops the others too. OK after an orderly stop.
 * LINK_DOWN, which stops no other lane: a link was lost that the job does not survive, as the manager reports. */
QUOIT_MUST_USE enum quoit_status quoit_proxy_serve(struct quoit_proxy *proxy, uint32_t lane_index);
/* Manages the links until header.is_stopping. Without it a link that goes down stays down. */
QUOIT_MUST_USE enum quoit_status quoit_proxy_manage(struct quoit_proxy *proxy);
const struct quoit_lane *quoit_proxy_lane(const struct quoit_proxy *proxy, uint32_t lane_index);
/* Sends a message to another host: exactly once, in order per destination, at most a chunk, and over a network at most
 * QUOIT_NETWORK_FRAMED_BYTES. Any thread, while the lanes are served. FULL: too many are outstanding. OUT_OF_RANGE: no
 * such host or port, or too long. UNSUPPORTED: the job's protocol has no messages. */
QUOIT_MUST_USE enum quoit_status quoit_proxy_send(struct quoit_proxy *proxy, uint32_t dest_host, uint32_t port,
                                                  const void *payload, uint32_t bytes);
/* Whether all messages of quoit_proxy_send() have arrived, but those over a network to hosts that are gone. Any thread.
 */
bool quoit_proxy_has_sent(const struct quoit_proxy *proxy);
/* After all of them have ended. NULL is allowed. */
void quoit_proxy_close(struct quoit_proxy *proxy);

/* Asks the proxy of this memory to stop; returns at once. Any process of the host. */
void quoit_proxy_stop(const struct quoit_layout *layout, void *memory);

#endif
