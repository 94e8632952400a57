/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy_process.h - the proxy of a host is a process of its own (program.h), `oshrun --proxy`, under every launcher.
 * The supervisor that starts it, oshrun or the agent of a host (agent.h), and the proxy exchange messages over its
 * socket, a struct quoit_proxy_message a packet:
 *
 *   supervisor               proxy
 *   LOAD driver          ->                     which library of a network it will need; only if there is one
 *   START + memory, ...  ->                     which host of which job, with the ends of its links
 *                        <-   JOINS             it joins its neighbours
 *                        <-   CONTACT           what the other hosts must know (lane/network.h)
 *   CONTACTS             ->                     those of all hosts stand in the board (board.h)
 *                        <-   READY             it serves the PEs of its host
 *                        <-   CUT_OFF links     two links are down for too long
 *                        <-   LOST host         that host is gone, or neither it nor its machine gave a sign for long
 *                        <-   SILENCE host      whether that host is silent, and its machine, too (net/net.h)
 *                        <-   FAILED status     it cannot serve, and has not reported why
 *
 * And where proxies carry the control protocol (control.h), since no other way leads to the other hosts:
 *
 *   FRAME host           ->                     to the supervisor of that host, or all others
 *                        <-   FRAME host        of the supervisor of that host
 *   FLUSH                ->                     have all frames arrived, at the hosts that are there?
 *                        <-   FLUSH             now they have
 *   PING                 ->                     do you hang?
 *                        <-   PING              no
 *
 * Frames arrive in order, exactly once, but those that were offered: these are dropped where a process is stopped, or
 * when more follows and the queue is full. The proxy of an agent ends after a FRAME that is the last.
 *
 * Descriptors with START, in this order: the memory; the board, if there is a network; those of the endpoints of LEFT
 * and of RIGHT, if the host has links. The proxy ends by quoit_proxy_stop(), or when who started it ends: it is a child
 * of that, and the kernel kills it then, also a stopped one. The other hosts see its connections end.
 */
#ifndef QUOIT_BOOT_PROXY_PROCESS_H
#define QUOIT_BOOT_PROXY_PROCESS_H

#include <stdint.h>

#include "base/status.h"
#include "boot/board.h"
#include "boot/boot.h"
#include "boot/control.h"
#include "boot/program.h"
#include "host/layout.h"
#include "lane/network.h"
#include "net/devices.h"
#include "port/port.h"

#define QUOIT_PROXY_OPTION     "--proxy"
#define QUOIT_PROXY_TEXT_BYTES 64
#define QUOIT_PROXY_FDS_MAX    (2 + QUOIT_SIDE_COUNT * QUOIT_PORT_ENDPOINT_FDS)

enum quoit_proxy_kind {
    QUOIT_PROXY_LOAD = 1,
    QUOIT_PROXY_START,
    QUOIT_PROXY_CONTACT,
    QUOIT_PROXY_CONTACTS,
    QUOIT_PROXY_JOINS,
    QUOIT_PROXY_READY,
    QUOIT_PROXY_CUT_OFF,
    QUOIT_PROXY_FAILED,
    QUOIT_PROXY_CLOSED, /* not of a proxy: an agent of oshrun saw its socket closed */
    QUOIT_PROXY_LOST,
    QUOIT_PROXY_PING,
    QUOIT_PROXY_SILENCE,
    QUOIT_PROXY_DISMISSED, /* not of a proxy: oshrun, or its agent, has ended it, since another host had lost it */
    QUOIT_PROXY_FRAME,
    QUOIT_PROXY_FLUSH,
};

enum quoit_proxy_how {
    QUOIT_PROXY_SURELY,  /* it arrives, unless the host is gone */
    QUOIT_PROXY_OFFERED, /* it may be lost */
    QUOIT_PROXY_LAST,    /* surely, within half a second, and the proxy ends */
};

struct quoit_proxy_message {
    uint32_t magic; /* QUOIT_BOOT_MAGIC */
    uint32_t kind;
    union {
        struct {
            struct quoit_job_config job;
            struct quoit_machine machine;
            uint32_t host;
            uint32_t log_level;
            uint64_t tag;
            uint64_t link_timeout_ns;
            uint64_t link_limit_ns;
            uint64_t network_limit_ns;
            char driver[QUOIT_PROXY_TEXT_BYTES];
            char provider[QUOIT_PROXY_TEXT_BYTES];
            char devices[QUOIT_DEVICES_BYTES];
            char network_ports[QUOIT_PROXY_TEXT_BYTES];
            int32_t starter;         /* the process whose child the proxy is */
            uint32_t carries_frames; /* it is of an agent of another launcher's job */
            uint32_t has_network;
            uint32_t unused;
            uint64_t dma_bytes;
            char ports[QUOIT_PROXY_TEXT_BYTES]; /* driver of the ports */
            uint32_t is_down[QUOIT_SIDE_COUNT]; /* links that are known to be down */
            struct quoit_port_endpoint ends[QUOIT_SIDE_COUNT];
        } start;
        char driver[QUOIT_PROXY_TEXT_BYTES]; /* LOAD */
        struct {
            uint32_t host;
            unsigned char bytes[QUOIT_NETWORK_CONTACT_BYTES];
        } contact;
        struct {
            uint32_t host;
            uint32_t is_silent; /* its connection is up */
        } lost;
        uint32_t dead_links[2]; /* CUT_OFF */
        int32_t status;         /* FAILED: enum quoit_status */
        struct quoit_control_silence silence;
        struct {
            uint32_t host; /* to which it goes, or of which it is */
            uint32_t how;  /* enum quoit_proxy_how */
            uint32_t kind; /* enum quoit_control_kind */
            uint32_t unused;
            union quoit_control_body body;
        } frame;
    } body;
};

/* Starts this program as the proxy of the host whose memory and layout are those of *host. board_fd: of the board. tag:
 * as in struct quoit_lane_network. The socket goes to *fd_out, its process, a child, to *pid_out. Errors have been
 * reported. Of agents. */
QUOIT_MUST_USE enum quoit_status quoit_proxy_process_start(const struct quoit_boot *host, int board_fd, uint64_t tag,
                                                           int *fd_out, pid_t *pid_out);
/* Sends one message of a kind without a body, or a whole one. The other side may have ended. */
void quoit_proxy_process_send(int fd, const struct quoit_proxy_message *message);
void quoit_proxy_process_send_kind(int fd, enum quoit_proxy_kind kind);
/* Sends one that may be lost: it is, rather than waited for, if the other side is stopped and much lies before it. */
void quoit_proxy_process_offer(int fd, const struct quoit_proxy_message *message);
/* Sends a frame to the supervisor of a host, or to QUOIT_CONTROL_TO_ALL others. body: of this kind; NULL if it has
 * none. */
void quoit_proxy_process_send_frame(int fd, uint32_t host, enum quoit_proxy_how how, enum quoit_control_kind kind,
                                    const union quoit_control_body *body);

#endif
