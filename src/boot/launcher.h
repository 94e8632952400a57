/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher.h - what a launcher must give a PE, as a table: one row for each way to be started.
 *
 * A row is chosen by what the environment says; all of the job that the library knows comes through it. The rows:
 * oshrun (protocol.h), and none, a job of one PE. A row for a launcher that only tells rank and size and exchanges
 * bytes fills the same functions: join learns who it is, exchanges data_bytes, and makes or is handed the memory of its
 * host.
 */
#ifndef QUOIT_BOOT_LAUNCHER_H
#define QUOIT_BOOT_LAUNCHER_H

#include "boot/boot.h"

struct quoit_boot_ops {
    const char *name;
    /* Whether this process was started so. The rows are asked in order, the last is always here. */
    bool (*is_here)(void);
    /* Who am I, who are the others: fills boot; blocks until every PE has come. data_bytes as in quoit_boot_start. An
     * error was told. */
    enum quoit_status (*join)(struct quoit_boot *boot, uint64_t data_bytes);
    /* All PEs and proxies are ready, and every window is there. */
    enum quoit_status (*barrier)(struct quoit_boot *boot);
    /* See quoit_boot_leaving, quoit_boot_finalized. NULL: nobody wants to know. */
    void (*leaving)(struct quoit_boot *boot, uint64_t meeting_count, bool is_exit);
    void (*finalized)(struct quoit_boot *boot);
    /* Ends the other PEs and has the text told once. False: nobody was told. */
    bool (*abort)(struct quoit_boot *boot, int status, const char *text, uint64_t from);
};

extern const struct quoit_boot_ops quoit_boot_oshrun;
extern const struct quoit_boot_ops quoit_boot_alone;

/* For rows: maps boot->memory_fd as boot->layout says. NO_MEMORY: errno says why, nothing was told. */
enum quoit_status quoit_boot_map(struct quoit_boot *boot);
/* Tells that the memory cannot be mapped. */
enum quoit_status quoit_boot_say_unmapped(const struct quoit_boot *boot, int error);

/* strangers.c: tells of a launcher that has started several processes and is none of the rows: UNSUPPORTED. */
enum quoit_status quoit_boot_refuse_strangers(void);
/* PE 0 of a job of several tells once that MPI is in the process too, and will be a job of one process in each PE. */
void quoit_boot_warn_of_mpi(const struct quoit_boot *boot);

#endif
