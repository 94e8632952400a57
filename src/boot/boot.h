/* SPDX-License-Identifier: BSD-3-Clause */
/* boot.h - who am I, who are the others, are all there, and how to end the job. launcher.h has the table of
 * launchers.
 *
 * Started by oshrun the answers come from it; started alone the process is a job of one PE with memory of its own.
 * Started by a launcher that Quoit does not know, quoit_boot_start says so and fails rather than run N jobs of one PE.
 *
 * Threads: one at a time, save quoit_boot_abort, which any thread may call.
 */
#ifndef QUOIT_BOOT_BOOT_H
#define QUOIT_BOOT_BOOT_H

#include "boot/protocol.h"

struct quoit_boot_ops; /* launcher.h */

struct quoit_boot {
    const struct quoit_boot_ops *ops; /* how this process was started; NULL before quoit_boot_start */
    int socket_fd;                    /* to oshrun; -1: another launcher, or none */
    uint64_t heap_bytes_alone; /* set by the caller before start: heap limit of a job without a launcher, 0: default */
    uint32_t pe;
    uint32_t host;
    struct quoit_layout layout; /* of the own host */
    void *memory;               /* the own host's memory, mapped whole, shared */
    int memory_fd;
    struct quoit_wait_policy policy;
    const struct quoit_port_driver *driver;            /* NULL: one host */
    struct quoit_port_endpoint ends[QUOIT_SIDE_COUNT]; /* of the own ports */
};

/* Whether a launcher has looked at the environment already, for the whole job. */
bool quoit_boot_has_launcher(void);
/* data_bytes: globals and statics that this program wants shared, whole pages. Blocks until every PE called it. */
QUOIT_MUST_USE enum quoit_status quoit_boot_start(uint64_t data_bytes, struct quoit_boot *boot_out);
/* A barrier of all PEs and proxies through the launcher, after which every window is there: once after start, and once
 * after each quoit_boot_finalized that is followed by another shmem_init. */
QUOIT_MUST_USE enum quoit_status quoit_boot_ready(struct quoit_boot *boot);
/* Tells the launcher that this PE begins shmem_finalize, before it meets the others there. meeting_count: collectives
 * of all PEs so far, by which the launcher finds one that met others elsewhere. is_exit: because the process exits with
 * status 0. */
void quoit_boot_leaving(struct quoit_boot *boot, uint64_t meeting_count, bool is_exit);
/* Tells the launcher that this PE is through shmem_finalize. */
void quoit_boot_finalized(struct quoit_boot *boot);
/* Ends the whole job with `status`; `text` (may be "") is what the user reads, printed by the launcher once. Does not
 * return. Before quoit_boot_start, or alone, prints the text itself. */
__attribute__((noreturn)) void quoit_boot_abort(struct quoit_boot *boot, int status, const char *text);
/* The same, with the place in the program that is wrong: the return address of a routine less the load address of the
 * program; 0: not known. Told as function and line below the text. */
__attribute__((noreturn)) void quoit_boot_abort_from(struct quoit_boot *boot, int status, const char *text,
                                                     uint64_t from);

#endif
