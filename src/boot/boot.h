/* SPDX-License-Identifier: BSD-3-Clause */
/* boot.h - bootstrap: this PE's place in the job, a barrier of all processes, and the job's end. launcher.h has the
 * table of launchers.
 *
 * Started by oshrun, a PE gets the answers from it; by a launcher with PMI or PMIx, from the agent of its host
 * (agent.h), and hosts are joined by a network. Started alone, the process is a job of one PE with memory of its own.
 * Started by a launcher that gives no way to find the other PEs, quoit_boot_start says so and fails, rather than run N
 * jobs of one PE.
 *
 * Threads: one at a time, but quoit_boot_abort may be called by any thread.
 */
#ifndef QUOIT_BOOT_BOOT_H
#define QUOIT_BOOT_BOOT_H

#include "boot/exchange.h"
#include "boot/protocol.h"

struct quoit_boot_ops; /* launcher.h */
struct quoit_hosts;    /* hosts.h */

/* How hosts join each other under a launcher that is not oshrun. Texts: "": the driver's choice. */
struct quoit_boot_network {
    const char *driver;
    const char *provider;
    const char *device;
    const char *ports;
    uint64_t link_timeout_ns;
    uint64_t network_limit_ns;
    uint32_t log_level;
    bool has_loopback; /* PEs of one host put and get through the network, too */
};

struct quoit_boot {
    const struct quoit_boot_ops *ops; /* how this process was started; NULL before quoit_boot_start */
    struct quoit_exchange exchange;   /* with a launcher that is not oshrun */
    int socket_fd;                    /* to oshrun, or the agent; -1: none */
    uint64_t socket_inode;            /* of socket_fd: the program may close it and get its number for another file */
    const char *launcher;             /* set by the caller before start: the value of QUOIT_LAUNCHER; NULL: auto */
    uint64_t heap_bytes_asked;        /* set by the caller before start: heap limit without oshrun, bytes; 0: default */
    struct quoit_boot_network network; /* set by the caller before start; the texts are valid until it returns */
    const struct quoit_hosts *hosts;   /* without oshrun, in the lowest PE of a host */
    uint32_t finalized_count;          /* how often this PE has passed shmem_finalize, without oshrun */
    uint32_t pe;
    uint32_t host;
    struct quoit_layout layout; /* of this PE's host */
    void *memory;               /* this host's memory, mapped whole, shared */
    int memory_fd;
    const struct quoit_port_driver *driver;            /* NULL: one host */
    struct quoit_port_endpoint ends[QUOIT_SIDE_COUNT]; /* of this host's ports */
    int watch_fd;                   /* the watching thread's connection, in its own descriptor table (watch.h) */
    pid_t agent;                    /* without oshrun, in the lowest PE of a host: the process that it started as */
    _Atomic bool needs_agent;       /* this PE is part of the job, and has not passed shmem_finalize */
    _Atomic bool has_records;       /* the watching thread may read the memory */
    _Atomic int32_t exiting_thread; /* the one in quoit_exit_job; 0: none */
    int exit_status;                /* its status */
};

/* Whether oshrun has started this process, and has checked the environment for the whole job. May be called before
 * quoit_boot_start. */
bool quoit_boot_has_oshrun(void);
/* Joins the job and fills *boot_out. data_bytes: globals and statics that this program wants shared, whole pages.
 * Blocks until every PE has called it. Errors are reported to the user before it returns. The mapping lasts as long as
 * the process. */
QUOIT_MUST_USE enum quoit_status quoit_boot_start(uint64_t data_bytes, struct quoit_boot *boot_out);
/* A barrier of all PEs and proxies through the launcher, after which every window is usable. Called once after start,
 * and once after each quoit_boot_finalized that is followed by another shmem_init. */
QUOIT_MUST_USE enum quoit_status quoit_boot_ready(struct quoit_boot *boot);
/* Informs the launcher that this PE begins shmem_finalize, before it synchronises there. meeting_count: collectives of
 * the world so far, by which the launcher detects PEs that wait in different ones. is_exit: the process exits with
 * status 0 instead of calling shmem_finalize. */
void quoit_boot_leaving(struct quoit_boot *boot, uint64_t meeting_count, bool is_exit);
/* Informs the launcher that this PE has completed shmem_finalize. */
void quoit_boot_finalized(struct quoit_boot *boot);
/* The process exits with this status, which is not 0, before shmem_finalize. */
void quoit_boot_exiting(struct quoit_boot *boot, int status);
/* A signal ends the process, and the PE's record says how (crash.h). `boot` is a struct quoit_boot. Async-signal-safe.
 */
void quoit_boot_crashed(void *boot);
/* Prints a warning of this process, and its place as quoit_boot_abort_from does. */
void quoit_boot_warn(const char *text, uint64_t from);
/* Ends the whole job with `status`; the launcher prints `text` (may be "") once. Does not return. Before
 * quoit_boot_start, or without a launcher, prints the text itself. */
__attribute__((noreturn)) void quoit_boot_abort(struct quoit_boot *boot, int status, const char *text);
/* The same, with the place of the mistake: a routine's return address relative to the program's load address, 0 if
 * unknown. Printed below the text as function and line. */
__attribute__((noreturn)) void quoit_boot_abort_from(struct quoit_boot *boot, int status, const char *text,
                                                     uint64_t from);

#endif
