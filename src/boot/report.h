/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - what the user reads when a job ends or does not go on: one sentence for each code, whichever supervisor
 * prints it (oshrun, or the agent of a host).
 *
 * A report is a first line, "quoit: PE 3 on east exited with status 4 before shmem_finalize  [Q0202]", and indented
 * ones below it. It is written into memory, so that it comes out whole.
 *
 * Threads: one a report. Errors: a report that there is no memory for stays closed, and all calls for it do nothing.
 */
#ifndef QUOIT_BOOT_REPORT_H
#define QUOIT_BOOT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "host/pe_record.h"

#define QUOIT_REPORT_AWAITED_BYTES 320
/* Q0237, for who may not allocate: what is described with ", which", what its process does, "; and for 2 more" or "".
 */
#define QUOIT_REPORT_AWAITED     "still waiting for %s: %s%s"
#define QUOIT_REPORT_STATUS_NONE (-1) /* in place of a status of waitpid(): not known */

struct quoit_report {
    FILE *out; /* NULL: closed */
    const char *speaker;
    char *text; /* once it is closed; free() is the caller's. NULL: no memory */
    size_t bytes;
};

/* speaker: the program that prints it. False: no memory. */
bool quoit_report_open(struct quoit_report *report, const char *speaker);
/* Ends the text, which is made safe for a terminal: PEs can write control sequences into the names in it. */
void quoit_report_close(struct quoit_report *report);
/* Ends it and writes it to standard error. */
void quoit_report_print(struct quoit_report *report);

/* The first line of another sentence. */
void quoit_report_line(struct quoit_report *report, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The last line: the job was ended, with this status. */
void quoit_report_ended(const struct quoit_report *report, int status);

/* A PE, of which the supervisor knows: */
struct quoit_report_pe {
    uint32_t pe;
    const char *host;                     /* its name */
    int wait_status;                      /* of its process; QUOIT_REPORT_STATUS_NONE */
    bool has_begun;                       /* it had called shmem_init */
    const struct quoit_pe_shared *shared; /* its record; NULL: none */
    const char *executable;               /* NULL: not known */
};

/* Q0201, Q0202, Q0203: how a PE ended before shmem_finalize. until_ns: of quoit_clock_now_ns(), for finding the line in
 * the program. */
void quoit_report_failed(struct quoit_report *report, const struct quoit_report_pe *pe, uint64_t until_ns);
/* Q0201 alone. */
void quoit_report_killed(struct quoit_report *report, const struct quoit_report_pe *pe, int signal_number,
                         uint64_t until_ns);
/* Q0204. ended, waiting: "PE 3". */
void quoit_report_no_init(struct quoit_report *report, const char *ended, const char *waiting);

enum quoit_report_leaving {
    QUOIT_REPORT_LEFT_SOMEHOW, /* by one of: */
    QUOIT_REPORT_LEFT_BY_CALL, /* shmem_finalize */
    QUOIT_REPORT_LEFT_BY_EXIT, /* exit(0), or a return from main */
};
enum quoit_report_left {
    QUOIT_REPORT_LEFT_ELSEWHERE, /* Q0209: others were elsewhere */
    QUOIT_REPORT_LEFT_LOCK,      /* Q0242: with a lock */
    QUOIT_REPORT_LEFT_POLLED,    /* Q0244: the others poll in vain */
};
/* A PE that left the job too early, by which that ended. */
void quoit_report_left(struct quoit_report *report, enum quoit_report_left why, uint32_t pe, const char *host,
                       enum quoit_report_leaving how);
/* Q0220: a warning of the same before it is certain. has_polls: some PEs do not sleep, but poll. */
void quoit_report_leaver(struct quoit_report *report, uint32_t pe, const char *host, enum quoit_report_leaving how,
                         bool has_polls, uint64_t still_ns);

/* Where PEs are, "  PEs 0,1 were waiting in shmem_quiet (heat.c:7)", a line that the caller ends. call: "" for one that
 * runs. place: "" if it is not known. more: what it waits for, "" if it is not known. goes_on: the job does. */
void quoit_report_place(const struct quoit_report *report, const char *pes, bool is_one, bool goes_on, const char *call,
                        const char *place, const char *more);

/* What is late of those for whom all wait in shmem_init. */
#define QUOIT_REPORT_LATE_PE    "has not come through shmem_init"
#define QUOIT_REPORT_LATE_PROXY "does not serve its host"
/* "PE 1 on east (process 77), which has not called shmem_init after 9 s". process: 0 if it is not known. deed: what is
 * late. joint: between the two, ", which" or "". */
void quoit_report_describe_awaited(const char *who, int32_t process, const char *joint, const char *deed,
                                   uint64_t waited_ns, char text_out[QUOIT_REPORT_AWAITED_BYTES]);
/* Q0237: somebody is waited for, described with ", which". state: what its process does. more_count: others, too. */
void quoit_report_awaited(struct quoit_report *report, const char *awaited, const char *state, uint32_t more_count);
/* Q0238: somebody hangs, described with "". */
void quoit_report_hangs(struct quoit_report *report, const char *awaited);

#endif
