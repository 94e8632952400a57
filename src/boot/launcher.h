/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher.h - what a launcher provides to a PE, as a table with a row for each way to start a PE.
 *
 * The environment selects a row; everything that the library knows about the job comes through it. The rows: oshrun
 * (protocol.h); member, for launchers that only give rank and size and exchange values (exchange.h); and none, a job of
 * one PE.
 *
 * Threads: one at a time, but abort may be called by any thread.
 */
#ifndef QUOIT_BOOT_LAUNCHER_H
#define QUOIT_BOOT_LAUNCHER_H

#include "boot/boot.h"

struct quoit_boot_ops {
    const char *name;
    /* Whether this launcher started the process; `launcher` as in struct quoit_boot. Rows are tried in order; the last
     * always matches. */
    bool (*is_here)(const char *launcher);
    /* Fills *boot with this PE's place in the job; blocks until every PE has joined. data_bytes as in quoit_boot_start.
     * Errors have been reported to the user. */
    enum quoit_status (*join)(struct quoit_boot *boot, uint64_t data_bytes);
    /* Returns when all PEs and proxies are ready and every window is usable. */
    enum quoit_status (*barrier)(struct quoit_boot *boot);
    /* See quoit_boot_leaving, quoit_boot_finalized, quoit_boot_exiting, quoit_boot_crashed. NULL: not needed. */
    void (*leaving)(struct quoit_boot *boot, uint64_t meeting_count, bool is_exit);
    void (*finalized)(struct quoit_boot *boot);
    void (*exiting)(struct quoit_boot *boot, int status);
    void (*crashed)(struct quoit_boot *boot);
    /* Ends the other PEs and prints the text once. False: no launcher did, and the caller prints it. */
    bool (*abort)(struct quoit_boot *boot, int status, const char *text, uint64_t from);
};

extern const struct quoit_boot_ops quoit_boot_oshrun;
extern const struct quoit_boot_ops quoit_boot_member;
extern const struct quoit_boot_ops quoit_boot_alone;

/* For rows: the config of a job of one host. */
struct quoit_job_config quoit_boot_one_host(uint32_t pe_count, uint64_t data_bytes, uint64_t heap_bytes);
/* For rows: makes boot->memory_fd and boot->layout of a host. Errors have been reported. */
enum quoit_status quoit_boot_make_memory(struct quoit_boot *boot, const struct quoit_job_config *job, uint32_t host);
/* For rows: maps boot->memory_fd as boot->layout says. NO_MEMORY: errno says why; nothing was reported yet. */
enum quoit_status quoit_boot_map(struct quoit_boot *boot);
/* Reports that the memory cannot be mapped, `error` being the errno; returns the status for it. */
enum quoit_status quoit_boot_report_unmapped(const struct quoit_boot *boot, int error);

/* oshrun.c: INVALID, with a message, if oshrun started this process as a PE and its environment does not show it. */
enum quoit_status quoit_boot_refuse_stripped(void);
/* mpi.c: whether MPI is linked with the program, or was opened by it; and whether it was initialized, which may have
 * been finalized since. */
bool quoit_boot_has_mpi(void);
bool quoit_boot_mpi_was_used(void);
/* Warns once, from PE 0 of a job with several PEs, if the process also links MPI, which would run as a one-process job
 * in each PE. */
void quoit_boot_warn_of_mpi(const struct quoit_boot *boot);

#endif
