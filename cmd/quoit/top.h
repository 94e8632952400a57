/* SPDX-License-Identifier: BSD-3-Clause */
/* top.h - snapshots of a job or a ring for quoit top, and its presentation. Private to top.
 *
 * A line of text may begin with a mark, which the screen turns into a style and other outputs drop.
 */
#ifndef QUOIT_TOP_H
#define QUOIT_TOP_H

#include <stdio.h>

#include "boot/survey.h"
#include "jobs.h"
#include "ring.h"

#define TOP_MARK_HEADING '\001'
#define TOP_MARK_TROUBLE '\002'

struct top_host {
    bool is_known;     /* else its machine did not answer, or only those of other machines are seen */
    uint64_t taken_ns; /* by the clock of its machine */
    struct quoit_host_survey survey;
};

struct top_sample {
    uint64_t now_ns;
    struct top_host *hosts;      /* [host_count] */
    struct quoit_pe_survey *pes; /* [pe_count]; of known hosts */
};

/* top_sample.c. _open: false: no memory. _take: false: the job has ended. */
bool top_sample_open(struct top_sample *sample, const struct job_view *job);
bool top_sample_take(struct top_sample *sample, struct job_view *job);
void top_sample_close(struct top_sample *sample);

/* top_print.c. Rates are those between the samples; the state is that of `now`. JSON is one object and a line end. */
void top_print_text(const struct job_view *job, const struct top_sample *before, const struct top_sample *now,
                    FILE *out);
void top_print_json(const struct job_view *job, const struct top_sample *before, const struct top_sample *now,
                    FILE *out);
/* The running jobs, to choose from. */
void top_print_list(const struct job_view *jobs, uint32_t job_count, bool is_json, FILE *out);

/* The name contains only printable characters, so quotes and backslashes are all that is escaped. */
void top_print_json_string(const char *text, FILE *out);

/* top_ring.c: a ring that stays. */
struct top_ring_job {
    uint32_t id;
    uint32_t uid;
    uint32_t pid;
    char program[QUOIT_SHARE_LABEL_BYTES];
    bool is_seen; /* the rest is known: it is a job of this user */
    uint32_t pe_count;
    uint64_t bytes[QUOIT_SIDE_COUNT * RING_HOSTS_MAX]; /* of each direction: 2 host + side */
    uint64_t messages[QUOIT_SIDE_COUNT * RING_HOSTS_MAX];
};
struct top_ring_sample {
    uint64_t now_ns;
    struct ring_reply ring;
    uint32_t job_count;
    struct top_ring_job jobs[QUOIT_SHARES_MAX];
};
/* What became of a sample. */
enum top_taken {
    TOP_TAKEN,
    TOP_AWAITED, /* who gives it does not answer now */
    TOP_ENDED,   /* there is nothing to watch any more */
};
/* Of the ring [USER:]NAME. AWAITED: its keeper is described by `by`. */
enum top_taken top_ring_take(const char *given, struct top_ring_sample *sample, struct ring_answerer *by);
/* As for a job. */
void top_ring_print_text(const struct top_ring_sample *before, const struct top_ring_sample *now, FILE *out);
void top_ring_print_json(const struct top_ring_sample *before, const struct top_ring_sample *now, FILE *out);

/* top_screen.c: the terminal. One screen a process. */
enum top_key { TOP_KEY_NONE, TOP_KEY_QUIT };

/* Blocks the signals that end or stop or resize. Where wanted, and if standard output and input are a terminal, takes
 * it over. */
void top_screen_open(bool is_wanted);
/* Shows the text: on a terminal in place of the previous one, else after it. */
void top_screen_show(const char *text);
/* Waits for a key, a signal, the end of the process behind pid_fd, or timeout_ns. */
enum top_key top_screen_wait(int pid_fd, uint64_t timeout_ns);
/* Restores the terminal. */
void top_screen_close(void);

#endif
