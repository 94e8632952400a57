/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - the running job: everything oshrun knows of it hangs from struct job.
 *
 * Life of a job: spawn.c starts the PEs; service.c answers them on their boot sockets; when all said HELLO, hosts.c
 * makes the hosts' memories and links and starts the proxies; end.c notices who ended and how, and ends the rest;
 * report.c explains.
 */
#ifndef OSHRUN_JOB_H
#define OSHRUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "boot/protocol.h"
#include "guard.h"
#include "input.h"
#include "loop.h"
#include "output.h"
#include "plan.h"

enum pe_phase {
    PE_STARTED,   /* runs, and has not called shmem_init */
    PE_HELLO,     /* waits in shmem_init for the others */
    PE_LAID_OUT,  /* was told the config */
    PE_READY,     /* waits for the others and the proxies; again in each shmem_init after a shmem_finalize */
    PE_RUNNING,   /* shmem_init is through */
    PE_FINALIZED, /* shmem_finalize is through */
};

struct pe {
    struct job *job;
    uint32_t index;
    uint32_t host;
    pid_t pid;           /* what oshrun started; also its process group. 0 after it was reaped */
    pid_t program_pid;   /* who said HELLO: the same, or started by it */
    struct watch socket; /* oshrun's end of the boot socket */
    enum pe_phase phase;
    bool is_ended;
    int wait_status;  /* once is_ended */
    char *executable; /* of program_pid, for addresses; NULL before HELLO */
    char *abort_text; /* what it said when it ended the job; NULL: nothing */
    char *tag;
};

struct host {
    struct job *job;
    uint32_t index;
    struct quoit_layout layout;
    int memory_fd;
    int link_fd;              /* of the link to its right neighbour; -1 on a single host */
    void *front;              /* the memory up to the channels, mapped; NULL before the layout */
    pid_t proxy_pid;          /* 0: none, or ended */
    int proxy_wait_status;    /* once it has ended */
    struct watch proxy_ready; /* what the proxy says: first that it is ready */
    bool is_ready;
    struct quoit_port *fault_port; /* of the link to its right neighbour, for --fault; NULL before */
};

enum end_reason {
    END_NORMAL,      /* every PE ended well, or with a status of its own after shmem_finalize */
    END_PE_FAILED,   /* a signal, a status, or gone without shmem_finalize */
    END_NO_INIT,     /* some wait in shmem_init for one that ended without it */
    END_ABORTED,     /* a PE asked for it, with a text */
    END_GLOBAL_EXIT, /* a PE asked for it, without a word */
    END_PROXY_DIED,
    END_CUT_OFF,
    END_CANNOT_START,
    END_TIMEOUT,
    END_INTERRUPTED,
    END_OUTPUT_GONE,
};

enum end_phase {
    ENDING_NOT,
    ENDING_GRACE,  /* decided; what still runs may finish what it writes */
    ENDING_KILLED, /* everything was sent SIGKILL */
};

struct end {
    enum end_phase phase;
    enum end_reason reason;
    int status;
    uint32_t culprit;     /* PE; host for END_PROXY_DIED, errno for END_OUTPUT_GONE */
    uint64_t deadline_ns; /* of the phase */
    bool is_drained;      /* nothing more comes from the pipes that are open still */
    uint64_t told_by_ns;  /* the report: later, places are told by address */
};

/* Where a PE was when the job was ended. */
struct wait_note {
    bool is_alive;
    enum pe_phase phase;
    char call[QUOIT_CALL_NAME_BYTES]; /* "": running, in no call */
    uint64_t from;                    /* return address of that call less load address; 0: not known */
};

struct job {
    const struct plan *plan;
    char **environment;
    struct loop loop;
    struct output output;
    struct input input;
    struct guard guard;
    struct watch signals;
    struct rlimit old_files; /* given back to the PEs */
    struct quoit_job_config config;
    struct quoit_wait_policy policy;
    struct quoit_emulated_knobs knobs;
    struct pe *pes;
    struct host *hosts;
    struct fault_run *faults; /* [plan->fault_count]; NULL before the first PE runs */
    uint32_t dead_links[2];   /* for END_CUT_OFF */
    struct wait_note *notes;  /* [pe_count], taken when the job is ended; NULL before */
    uint32_t alive_count;
    uint32_t hello_count;
    uint32_t ready_count;
    uint32_t quiet_exit_count; /* ended well without shmem_init */
    bool has_layout;
    uint32_t through_count; /* ended after shmem_finalize */
    bool is_going;          /* GO was sent */
    uint64_t start_ns;
    struct trace *trace; /* see trace.h; NULL without --trace */
    uint64_t timeout_at_ns;
    uint64_t proxies_stop_ns; /* proxies were asked to stop: when they are killed; 0 before */
    struct end end;
    bool is_hurried; /* interrupted twice: nothing is waited for any more */
};

/* spawn.c: starts every PE. False if one could not be started; the job is being ended then. */
bool spawn_all(struct job *job);

/* service.c */
void service_watch(struct pe *pe, int socket_fd);
void service_drain(struct pe *pe);  /* takes what the PE said before it ended */
void service_step(struct job *job); /* LAYOUT and GO when it is time */

/* hosts.c */
bool hosts_start(struct job *job, uint64_t data_bytes); /* memories, links, proxies. False: told, the job must end */
void hosts_stop(struct job *job);                       /* asks the proxies to stop */
bool hosts_are_gone(const struct job *job);
int hosts_link_fd(const struct job *job, uint32_t host, enum quoit_side side);
uint32_t hosts_neighbour(const struct job *job, uint32_t host, enum quoit_side side);
struct quoit_pe_shared *hosts_pe_shared(const struct job *job, uint32_t pe); /* NULL before the layout */

/* end.c */
void end_begin(struct job *job, enum end_reason reason, int status, uint32_t culprit, uint64_t grace_ns);
void end_signal_all(struct job *job, int signal_number); /* to the process group of each PE */
void end_reap(struct job *job);                          /* after SIGCHLD */
uint64_t end_step(struct job *job, uint64_t now_ns);     /* returns the next deadline */
bool end_is_over(const struct job *job);
void end_sweep(struct job *job); /* kills and reaps whatever descends from this job and is left */

/* report.c: explains the end on standard error. */
void report_end(struct job *job);
/* stats.c: what the links carried, on standard error, and as JSON in a file. */
void stats_print(struct job *job);
void stats_write(const struct job *job, const char *path);

#endif
