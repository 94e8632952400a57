/* SPDX-License-Identifier: BSD-3-Clause */
/* jobs.h - the running jobs of this user, or for root of all users, as seen from outside.
 *
 * A job is found by what its launcher holds open: every oshrun has the memories of its hosts as descriptors, which
 * /proc shows to the same user, and each memory begins with a descriptor that says what it is. So nothing is left
 * behind by a job that is killed, and a job on one machine does nothing for those who look. Of a job over several
 * machines the oshrun that the user started has a summary of all hosts instead, which it fills when asked
 * (boot/summary.h); elsewhere an agent has the memory of its own host, which is seen as a part of the job.
 *
 * Threads: one. Errors: a job that ends while it is looked at, or is of another version, is left out.
 */
#ifndef QUOIT_JOBS_H
#define QUOIT_JOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "boot/summary.h"
#include "host/layout.h"

struct job_host {
    struct quoit_layout layout;
    char name[QUOIT_HOST_NAME_BYTES];      /* "host3", or of its machine */
    const struct quoit_host_header *front; /* mapped for reading, up to layout.channels; NULL: of another machine */
    int memory_fd;                         /* while there is `front` */
};

struct job_view {
    pid_t pid;  /* of oshrun */
    int pid_fd; /* readable when it has ended */
    struct quoit_job_config config;
    uint64_t start_ns;
    char program[QUOIT_PROGRAM_NAME_BYTES];
    struct job_host *hosts; /* [config.host_count] */
    /* Over several machines: */
    uint64_t tag;                  /* of the job; 0: there is one machine */
    bool is_part;                  /* only the host of this machine is seen */
    struct quoit_summary *summary; /* mapped for reading; NULL: a part */
    uid_t owner;                   /* of that */
    int ask_fd;                    /* to oshrun; -1: none */
};

/* Opens the job of one launcher. False: it has none, or another user's, or its PEs have not started yet. */
bool job_open(struct job_view *view, pid_t pid);
/* Likewise, by the process that runs the job, which attached to a ring. */
bool job_open_runner(struct job_view *view, pid_t runner);
void job_close(struct job_view *view);

enum job_answer { JOB_ANSWERED, JOB_SILENT, JOB_ENDED };
/* Has the oshrun of a job with a summary fill it. ANSWERED: round_out is that of the hosts that answered. Waits for
 * some seconds at most. */
enum job_answer job_ask(struct job_view *view, uint64_t *round_out);

/* Opens all jobs of this user, by pid, each once: no parts of a job whose summary is here. The caller closes each of
 * *views_out and frees the array. */
uint32_t jobs_find(struct job_view **views_out);

#endif
