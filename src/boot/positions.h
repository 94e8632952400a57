/* SPDX-License-Identifier: BSD-3-Clause */
/* positions.h - where the PEs of a job, or of a host, are, as a report has it: those at one place in one line.
 *
 * A supervisor notes positions before it ends the PEs, and writes them when it has the time.
 *
 * Threads: one. Errors: none; what is not known is left out.
 */
#ifndef QUOIT_BOOT_POSITIONS_H
#define QUOIT_BOOT_POSITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "boot/report.h"
#include "boot/wait_desc.h"

#define QUOIT_POSITIONS_LIST_BYTES 64
#define QUOIT_POSITIONS_NOBODY     UINT32_MAX

/* How far a PE is, by its messages. */
enum quoit_phase {
    QUOIT_PHASE_STARTED,  /* runs, and has not called shmem_init */
    QUOIT_PHASE_HELLO,    /* waits in shmem_init for the others */
    QUOIT_PHASE_LAID_OUT, /* has received the job config */
    QUOIT_PHASE_READY,    /* waits for the other PEs and the proxies; again in each shmem_init after a shmem_finalize */
    QUOIT_PHASE_RUNNING,  /* shmem_init has returned */
    QUOIT_PHASE_FINALIZED, /* shmem_finalize has returned */
};

/* Of one PE. */
struct quoit_position {
    bool is_alive;
    bool is_stopped; /* by a signal, or by a debugger */
    enum quoit_phase phase;
    char call[QUOIT_CALL_NAME_BYTES]; /* "": running, not in a call */
    struct quoit_wait_desc wait_desc; /* what it waits for */
    uint32_t holder;                  /* of the lock that it waits for, or QUOIT_WAIT_DESC_NO_HOLDER, and */
    char wait_desc_text[QUOIT_WAIT_DESC_TEXT_BYTES]; /* all of that as text, by quoit_position_describe() */
    uint64_t from;                                   /* return address of that call less load address; 0: not known */
    char line[QUOIT_SOURCE_LINE_BYTES];              /* of a program in Python; "": not known */
};

/* Of PEs first..first+count-1. */
struct quoit_positions {
    const struct quoit_position *list; /* [count]; NULL: none were noted */
    uint32_t first;
    uint32_t count;
    bool goes_on;      /* the job does: "are", not "were" */
    uint64_t until_ns; /* of quoit_clock_now_ns(), for finding lines in programs */
    /* Of a PE, in the order of the list: its record and the file of its program, NULL where they are not known. */
    const struct quoit_pe_shared *(*shared_of)(const void *arg, uint32_t index);
    const char *(*executable_of)(const void *arg, uint32_t index);
    const void *arg;
};

/* Fills in what the record of a PE that runs has: call, wait descriptor and return address. */
void quoit_position_note(struct quoit_position *position, const struct quoit_pe_shared *shared);
/* Fills in what it waits for, with the names of its program's variables. */
void quoit_position_describe(struct quoit_position *position, const struct quoit_wait_desc_job *job, uint32_t pe,
                             const char *executable);
/* Writes them all, but that of the PE `except`, in a few lines. includes_ended: including those that had ended. Returns
 * whether some had not. */
bool quoit_positions_write(const struct quoit_report *report, const struct quoit_positions *positions, uint32_t except,
                           bool includes_ended);
/* Q0140, Q0141 or Q0142: all PEs of a job wait, and why none goes on. begin: of the sentence, such as
 * quoit_positions_describe_hang() writes. False: no cause is known, and nothing was written. */
bool quoit_positions_report_hang(struct quoit_report *report, const struct quoit_positions *positions,
                                 const char *begin);
void quoit_positions_describe_hang(uint64_t still_ns, char begin_out[96]);

/* "PE 3", or "PEs 0-2,5,7", of those of first..first+count-1 for which is_member is true; cut short by ",...". Returns
 * their number. */
uint32_t quoit_positions_list(uint32_t first, uint32_t count, bool (*is_member)(const void *arg, uint32_t pe),
                              const void *arg, char text_out[QUOIT_POSITIONS_LIST_BYTES]);

#endif
