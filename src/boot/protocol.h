/* SPDX-License-Identifier: BSD-3-Clause */
/* protocol.h - the messages between a PE and the launcher over the boot socket.
 *
 * oshrun starts each PE with QUOIT_BOOT_FD=<number>: one end of a SOCK_SEQPACKET socket pair, inherited across exec, so
 * a shell or debugger may stand in between. Under another launcher each host has an agent (agent.h), to
 * which the PEs connect. Every message is one packet, a struct quoit_boot_message.
 *
 *   PE                       launcher
 *   HELLO data_bytes    ->                    in shmem_init
 *                       <-   LAYOUT + fds     when every PE has sent HELLO: the job config, the PE's number, the memory
 *   READY               ->                    the PE's segment is mapped, globals are shared
 *                       <-   GO               when all PEs and all proxies are ready
 *   LEAVING             ->                    shmem_finalize begins
 *   FINALIZED           ->                    shmem_finalize has passed its last barrier; the process may run on alone
 *   READY               ->                    shmem_init after that: the memory is still mapped
 *                       <-   GO               when all PEs are ready again
 *   ABORT status text   ->                    misuse found, or shmem_global_exit: end the job with this status
 *
 * Wrappers may close that descriptor before the program starts (Python's subprocess, Go, Java). So oshrun also listens
 * on the abstract socket QUOIT_BOOT_SOCKET, and sends WELCOME to a process that connects there, is of the same user and
 * descends from a PE that has not sent HELLO, as the kernel says; others it drops. The messages above follow on that
 * connection.
 *
 * LEAVING, FINALIZED and ABORT of a PE that has closed its socket are left in its record (host/pe_record.h). To an
 * agent they are always left there, as is EXITED, and a second connection of each PE shows the agent when its process
 * ends:
 *
 *   CONTACT bytes       ->                    from the lowest PE of a host, one of each host, after
 *                       <-   CONTACT bytes    what the other hosts must know of this one's proxy
 *   FINALIZED           ->                    from the lowest PE: all PEs of its host have passed shmem_finalize
 *   CRASHED             ->                    a signal ends the PE, whose record says how; it waits until that was
 * reported WATCH               ->                    on a connection of its own, held open by a thread of the PE
 *                       <-   LIFE + fd        to be held until the process ends (life.h); two to the lowest PE
 *                       <-   END status       the job is ended: exit with this status
 *   START + fds         ->                    from the lowest PE, which starts the agent, on what serves as its WATCH
 *   PING                ->                    from the lowest PE: do you hang?
 *                       <-   PING pid         no; and once at the start
 *
 * fds with LAYOUT, in this order: the memory of the PE's host; then, if host_count > 1, those of the endpoints of LEFT
 * and of RIGHT, whose stored numbers are the launcher's. End of file on the socket: the other side died. When the
 * launcher is killed, its guard ends the PEs (cmd/oshrun/guard.h). The kernel identifies the sender of HELLO
 * (SCM_CREDENTIALS): a PE cannot name another process, and may be in a pid namespace of its own.
 */
#ifndef QUOIT_BOOT_PROTOCOL_H
#define QUOIT_BOOT_PROTOCOL_H

#include <stdint.h>

#include "base/version.h"
#include "env/wait.h"
#include "host/layout.h"
#include "lane/network.h"
#include "port/driver.h"

#define QUOIT_BOOT_FD_VARIABLE     "QUOIT_BOOT_FD"
#define QUOIT_BOOT_SOCKET_VARIABLE "QUOIT_BOOT_SOCKET"
#define QUOIT_PE_VARIABLE          "QUOIT_PE"     /* the number of the PE, for what stands between */
#define QUOIT_BOOT_SOCKET_NAME     "quoit-job-%d" /* of the process of oshrun, or its agent, that runs the job */
#define QUOIT_BOOT_JOB_PROCESS     "quoit-job"    /* the name of that process */
#define QUOIT_BOOT_MAGIC           0x51554f49u
#define QUOIT_BOOT_TEXT_BYTES      1024
#define QUOIT_BOOT_FDS_MAX         (1 + QUOIT_SIDE_COUNT * QUOIT_PORT_ENDPOINT_FDS)
#define QUOIT_BOOT_NAME_BYTES      32
#define QUOIT_BOOT_CORES_MAX       1024 /* higher ones are not told apart */

enum quoit_boot_kind {
    QUOIT_BOOT_HELLO = 1,
    QUOIT_BOOT_LAYOUT,
    QUOIT_BOOT_READY,
    QUOIT_BOOT_GO,
    QUOIT_BOOT_LEAVING,
    QUOIT_BOOT_FINALIZED,
    QUOIT_BOOT_ABORT,
    QUOIT_BOOT_WATCH,
    QUOIT_BOOT_END,
    QUOIT_BOOT_CRASHED,
    QUOIT_BOOT_EXITED, /* in a record only: exit with a status that is not 0 */
    QUOIT_BOOT_CONTACT,
    QUOIT_BOOT_WELCOME,
    QUOIT_BOOT_START,
    QUOIT_BOOT_PING,
    QUOIT_BOOT_LIFE,
};

struct quoit_boot_message {
    uint32_t magic;
    uint32_t kind;
    union {
        struct {
            struct quoit_version version; /* first in every version of Quoit */
            uint64_t data_bytes;          /* of globals and statics, whole pages */
            uint64_t heap_most_bytes;     /* of a default (heap_default.h) */
            /* For an agent, and of WATCH too: */
            uint32_t pe;
            uint32_t core_count;                       /* processors that the PE may use at once */
            uint64_t cores[QUOIT_BOOT_CORES_MAX / 64]; /* its affinity mask */
        } hello;
        struct {
            struct quoit_version version; /* first, as in hello */
            struct quoit_job_config job;
            uint32_t pe;
            uint32_t host;
            char driver[QUOIT_BOOT_NAME_BYTES]; /* of the ports */
            struct quoit_port_endpoint ends[QUOIT_SIDE_COUNT];
        } layout;
        struct {
            uint64_t meeting_count; /* collectives of the world before this one */
            uint32_t is_exit;       /* exit(0) or a return from main, not a call of shmem_finalize */
        } leaving;
        struct {
            int32_t status;
            uint64_t from;                    /* return address of the misused routine in the program; 0: unknown */
            char text[QUOIT_BOOT_TEXT_BYTES]; /* text for the user; "" for shmem_global_exit */
        } abort;
        struct {
            int32_t status;
            uint32_t has_to_ask; /* the launcher to end the job: PEs that have not connected are its alone */
        } end;
        int32_t pid; /* PING */
        struct {
            uint32_t host;
            unsigned char bytes[QUOIT_NETWORK_CONTACT_BYTES];
        } contact;
    } body;
};

#endif
