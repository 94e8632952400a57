/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy_process.h - the proxy of a host is a process of its own (program.h), `oshrun --proxy`, under every launcher.
 * Who starts it and the proxy exchange messages over its socket, a struct quoit_proxy_message a packet.
 *
 * With oshrun, which starts the proxies before the PEs:
 *
 *   oshrun                   proxy
 *   LOAD driver          ->                     which library of a network it will need; only if there is one
 *   START + memory, ...  ->                     which host of which job, with the ends of its links
 *                        <-   JOINS             it joins its neighbours
 *                        <-   CONTACT           what the other hosts must know (lane/network.h)
 *   CONTACTS             ->                     those of all hosts stand in the board
 *                        <-   READY             it serves the PEs of its host
 *                        <-   CUT_OFF links     two links are down for too long
 *                        <-   LOST host         that host is gone, or neither it nor its machine gave a sign for long
 *                        <-   SILENCE host      whether that host is silent, and its machine, too (net/net.h)
 *                        <-   FAILED status     it cannot serve, and has not reported why
 *
 * Descriptors with START, in this order: the memory; the board, if there is a network; those of the endpoints of LEFT
 * and of RIGHT, if the host has links. The proxy ends by quoit_proxy_stop(), or when oshrun ends.
 *
 * Under another launcher, where the agent of a host (agent.h) starts it if the job has several hosts:
 *
 *   agent                    proxy
 *   START + memory       ->                     which host of which job
 *                        <-   CONTACT           what the other hosts must know (lane/network.h)
 *   CONTACT host         ->                     of each host
 *   READY                ->                     all PEs of the host are ready
 *                        <-   GO                those of all hosts are
 *   FINALIZED            ->                     all PEs of the host have passed shmem_finalize
 *                        <-   FINALIZED         those of all hosts have
 *   END status           ->                     the job is ended from here, which was reported
 *                        <-   END status        it is ended from another host, which has reported it
 *                        <-   LOST host         that host is gone, or neither it nor its machine gave a sign for long
 *                        <-   SILENCE host      whether that host is silent, and its machine, too (net/net.h)
 *   SILENCE host         ->                     to the agent that reports it (silence.h)
 *   LAUNCHER_LOST        ->                     the launcher's process of this host has ended, and nobody may see what
 *                                               this host prints: another one is to report it, and end the job
 *                        <-   LAUNCHER_LOST     so it is on that host
 *   PING                 ->                     do you hang? Not while READY or FINALIZED wait for their answers
 *                        <-   PING              no
 *                        <-   ABSENT host       its PEs have ended, and those of this host wait for them in shmem_init
 *   LEAVING              ->                     to the agent of host 0: a PE of this host is in shmem_finalize
 *                        <-   HOST_FINALIZED    of the first host of which all have, and of one that has left earlier
 *   ELSEWHERE PEs        ->                     to the agent of host 0: those of this host are not in shmem_finalize,
 *                                               as they must be when another PE has passed it
 *   STILL question       ->                     to all others: what do your PEs wait for (rounds.h)?
 *   STILL_SEEN answer    ->                     to the agent of host 0
 *                        <-   LEAVING, ELSEWHERE, STILL, STILL_SEEN, SILENCE host, of another host
 *
 * READY to END, LAUNCHER_LOST, LEAVING, ELSEWHERE, STILL, STILL_SEEN and SILENCE also travel between proxies, as
 * messages of the network. The last five may be lost where a process is stopped, and are not sent while READY or
 * FINALIZED wait for their answers. Ends: the agent that loses the proxy, or gets no answer from one that is not
 * stopped for twice the limit of networks, ends its PEs.
 *
 * A proxy is a child of who starts it, and the kernel kills it when that ends, however: a stopped one too. The other
 * hosts see its connections end.
 */
#ifndef QUOIT_BOOT_PROXY_PROCESS_H
#define QUOIT_BOOT_PROXY_PROCESS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "boot/boot.h"
#include "boot/program.h"
#include "boot/rounds.h"
#include "host/layout.h"
#include "host/pe_record.h"
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
    QUOIT_PROXY_GO,
    QUOIT_PROXY_FINALIZED,
    QUOIT_PROXY_END,
    QUOIT_PROXY_CUT_OFF,
    QUOIT_PROXY_FAILED,
    QUOIT_PROXY_CLOSED, /* not of a proxy: an agent of oshrun saw its socket closed */
    QUOIT_PROXY_LOST,
    QUOIT_PROXY_ABSENT,
    QUOIT_PROXY_PING,
    QUOIT_PROXY_LEAVING,
    QUOIT_PROXY_STILL,
    QUOIT_PROXY_STILL_SEEN,
    QUOIT_PROXY_LAUNCHER_LOST,
    QUOIT_PROXY_HOST_FINALIZED,
    QUOIT_PROXY_ELSEWHERE,
    QUOIT_PROXY_SILENCE,
    QUOIT_PROXY_DISMISSED, /* not of a proxy: oshrun, or its agent, has ended it, since another host had lost it */
};

#define QUOIT_PROXY_ELSEWHERE_MAX 4 /* PEs that are named */

/* Of FINALIZED and HOST_FINALIZED: of the PEs of a host, which have passed shmem_finalize, the one that had taken part
 * in the fewest collectives of the world before. */
struct quoit_proxy_left {
    uint64_t meeting_count;
    uint32_t pe;
    uint32_t unused;
};

struct quoit_proxy_where {
    uint32_t pe;
    char call[QUOIT_CALL_NAME_BYTES];   /* in which it waits; "": none */
    char line[QUOIT_SOURCE_LINE_BYTES]; /* of a program in Python; "": not known */
};

/* PEs that are elsewhere, though `left` has passed shmem_finalize. */
struct quoit_proxy_elsewhere {
    uint32_t left;
    uint32_t count;
    struct quoit_proxy_where pes[QUOIT_PROXY_ELSEWHERE_MAX];
};

/* What a host finds of another one. */
struct quoit_proxy_silence {
    uint32_t host;
    uint32_t silence;   /* enum quoit_net_silence */
    uint64_t silent_ns; /* so far, or until it was heard again */
    uint64_t dark_ns;   /* since its machine gave a sign */
};

/* Of a proxy; or between agents, of a kind that has more than itself. */
union quoit_proxy_word {
    struct quoit_proxy_left left;
    struct quoit_proxy_elsewhere elsewhere;
    struct quoit_rounds_question question;
    struct quoit_rounds_answer answer;
    struct quoit_proxy_silence silence;
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
            int32_t starter; /* the process whose child the proxy is */
            /* Of oshrun alone: */
            uint32_t is_of_oshrun;
            uint32_t has_network;
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
            uint32_t is_silent; /* its connection is up; LOST to oshrun */
        } lost;                 /* LOST, ABSENT, LAUNCHER_LOST */
        uint32_t dead_links[2]; /* CUT_OFF */
        int32_t status;         /* END; FAILED: enum quoit_status */
        struct {
            uint32_t host; /* which one it is of, or was found by */
            uint32_t unused;
            union quoit_proxy_word is;
        } word;
    } body;
};

/* The board, which all proxies of a machine map and oshrun, or its agent, writes: the contacts of all hosts, before
 * CONTACTS; then for each host a time on the monotonic clock of this machine when its proxy was last seen to be there,
 * though it is stopped or waits for a disk, 0 if never. */
static inline size_t quoit_proxy_board_bytes(uint32_t host_count)
{
    return host_count * (QUOIT_NETWORK_CONTACT_BYTES + sizeof(_Atomic uint64_t));
}
static inline _Atomic uint64_t *quoit_proxy_board_signs(const void *board, uint32_t host_count)
{
    return (_Atomic uint64_t *)((uintptr_t)board + (size_t)host_count * QUOIT_NETWORK_CONTACT_BYTES);
}

/* Starts this program as the proxy of the host whose memory and layout are those of *host. tag: as in struct
 * quoit_lane_network. The socket goes to *fd_out, its process, a child, to *pid_out. Errors have been reported. Of
 * agents. */
QUOIT_MUST_USE enum quoit_status quoit_proxy_process_start(const struct quoit_boot *host, uint64_t tag, int *fd_out,
                                                           pid_t *pid_out);
/* Sends one message of a kind without a body, or a whole one. The other side may have ended. */
void quoit_proxy_process_say(int fd, const struct quoit_proxy_message *message);
void quoit_proxy_process_tell(int fd, enum quoit_proxy_kind kind);
/* Sends one that may be lost: it is, rather than waited for, if the other side is stopped and much lies before it. */
void quoit_proxy_process_offer(int fd, const struct quoit_proxy_message *message);

#endif
