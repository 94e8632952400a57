/* SPDX-License-Identifier: BSD-3-Clause */
/* summary.h - what is known of all hosts of a job over several machines, in a memory of the oshrun that the user
 * started. `quoit top` finds and maps it there as it does the memories of hosts (docs/design/machines.md).
 *
 * It is as of the last round: when a process of the user, or of root, sends a QUOIT_SUMMARY_ASK to the socket that the
 * summary names, oshrun asks the agents, stores what they answer within QUOIT_SUMMARY_ROUND_NS, and then sends back a
 * uint64_t, the number of the round. A host whose last round is another one did not answer. Two processes that ask at
 * once may share a round, and oshrun may be writing while another reads: each number is whole, but two numbers may be
 * of different instants, as in the memory of a host.
 *
 * Trust: oshrun checks the answers, which other machines send; `quoit top` of root checks what it reads, which is
 * another user's.
 * Threads: one writer. Errors: none but those of the checks.
 */
#ifndef QUOIT_BOOT_SUMMARY_H
#define QUOIT_BOOT_SUMMARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/abstract.h"
#include "boot/survey.h"
#include "host/job_descriptor.h"

#define QUOIT_SUMMARY_NAME         "quoit-summary" /* of the memory, a memfd */
#define QUOIT_SUMMARY_ASK          UINT64_C(0x51756f6974746f70)
#define QUOIT_SUMMARY_ROUND_NS     UINT64_C(1000000000)
#define QUOIT_SUMMARY_PROGRAMS_MAX 16 /* of which variables can be named */
#define QUOIT_SUMMARY_PATH_BYTES   1024

/* Writer of all: oshrun. */
struct quoit_summary_host {
    _Atomic uint64_t round; /* of its last answer; 0: none. release; pairs with acquire in top_sample.c of quoit */
    uint64_t taken_ns;      /* when its agent looked, by the clock of its machine */
    char name[QUOIT_HOST_NAME_BYTES];
    struct quoit_host_survey survey;
};

struct quoit_summary_pe {
    uint32_t program; /* QUOIT_SUMMARY_PROGRAMS_MAX: none of them */
    struct quoit_pe_survey survey;
};

struct quoit_summary {
    struct quoit_job_descriptor descriptor; /* first. magic: release, when the rest is there */
    char socket[QUOIT_ABSTRACT_NAME_BYTES];
    char programs[QUOIT_SUMMARY_PROGRAMS_MAX][QUOIT_SUMMARY_PATH_BYTES];
    /* then: struct quoit_summary_host of each host, struct quoit_summary_pe of each PE */
};

/* What an agent answers. */
struct quoit_summary_answer {
    uint64_t round;
    uint64_t taken_ns;
    struct quoit_host_survey host;
    struct quoit_pe_survey pes[]; /* of the host */
};

size_t quoit_summary_bytes(const struct quoit_job_config *job);
/* `job` is that of the descriptor, as the caller has found it sound: another process may write the summary. */
struct quoit_summary_host *quoit_summary_host(const struct quoit_job_config *job, struct quoit_summary *summary,
                                              uint32_t host);
struct quoit_summary_pe *quoit_summary_pe(const struct quoit_job_config *job, struct quoit_summary *summary,
                                          uint32_t pe);
/* The place of a program's path, which may be NULL; QUOIT_SUMMARY_PROGRAMS_MAX: it has none. */
uint32_t quoit_summary_program(struct quoit_summary *summary, const char *path);
size_t quoit_summary_answer_bytes(const struct quoit_job_config *job, uint32_t host);
/* Stores the answer of a host. False: it is of another round, or no host of this version answers so. */
bool quoit_summary_take(struct quoit_summary *summary, uint32_t host, uint64_t round, const void *answer, size_t bytes);
/* Makes it safe to print what another process or machine says of a PE: text ends, and is ASCII. */
void quoit_summary_clean(struct quoit_pe_survey *pe);

#endif
