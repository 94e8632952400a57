/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - the state of the running job; each file of oshrun works on it. What may be done with it stands in the header
 * of the file that does it. The files have an order, and a file calls only what comes before it:
 *
 *   fault plan help                        what the user asked for
 *   loop output terminal children guard    the process's own surroundings
 *   job.h     the state
 *   hosts     the memories, links and proxies of the hosts
 *   end       the decision that the job must end, and why; signals to the PEs
 *   service   answers to what PEs say on their boot sockets
 *   spawn     starts the PEs
 *   reap      notices which child ended, and judges what it means
 *   inject stuck trace stats wish report    what is done to the job, and told of it
 *   main
 */
#ifndef OSHRUN_JOB_H
#define OSHRUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "boot/protocol.h"
#include "loop.h"
#include "output.h"
#include "plan.h"
#include "terminal.h"

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
    pid_t program_pid;   /* who said HELLO, by the kernel's word: the same, or started by it. 0 before */
    int program_fd;      /* pidfd of program_pid; -1: none */
    struct watch socket; /* oshrun's end of the boot socket */
    enum pe_phase phase;
    bool is_leaving;        /* came to shmem_finalize, */
    uint64_t meeting_count; /* collectives before that */
    bool leaves_by_exit;    /* by exit(0) or a return from main */
    bool is_ended;
    int wait_status;     /* once is_ended */
    char *executable;    /* of program_pid, for addresses; NULL before HELLO */
    char *abort_text;    /* what it said when it ended the job; NULL: nothing */
    uint64_t abort_from; /* and where in its program; 0: not known */
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
    bool is_cut_off;
    struct quoit_port *fault_port; /* of the link to its right neighbour, for --fault; NULL before */
};

enum end_reason {
    END_NORMAL,      /* every PE ended well, or with a status of its own after shmem_finalize */
    END_PE_FAILED,   /* a signal, a status, or gone without shmem_finalize */
    END_NO_INIT,     /* some wait in shmem_init for one that ended without it */
    END_ABORTED,     /* a PE asked for it, with a text */
    END_LEFT,        /* a PE finalized while others were elsewhere */
    END_GLOBAL_EXIT, /* a PE asked for it, without a word */
    END_PROXY_DIED,
    END_CUT_OFF,
    END_CANNOT_START,
    END_TIMEOUT,
    END_INTERRUPTED,
    END_GUARD_GONE,
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
    uint64_t begin_ns;    /* the decision */
    uint64_t deadline_ns; /* of the phase */
    bool is_drained;      /* nothing more comes from the pipes that are open still */
    uint64_t told_by_ns;  /* the report: later, places are told by address */
};

#define WISH_TEXT_BYTES 192

/* Where a PE was when the job was ended. */
struct wait_note {
    bool is_alive;
    bool is_stopped; /* by a signal, or a debugger */
    enum pe_phase phase;
    char call[QUOIT_CALL_NAME_BYTES]; /* "": running, in no call */
    struct quoit_wish wish;           /* for what */
    char wish_text[WISH_TEXT_BYTES];  /* the same in words, once the report is made */
    uint64_t from;                    /* return address of that call less load address; 0: not known */
};

/* What stuck.c has seen. */
struct stillness {
    uint64_t digest; /* 0: something moves */
    uint64_t since_ns;
    uint64_t next_ns;
    bool is_told;
};

struct job {
    const struct plan *plan;
    char **environment;
    struct loop loop;
    struct output output;
    struct terminal terminal;
    struct watch signals;
    int output_folder;       /* of --output */
    int *exec_errors;        /* [pe_count], shared with the PEs until exec: errno of the step that failed */
    struct rlimit old_files; /* given back to the PEs */
    struct quoit_job_config config;
    const struct quoit_port_driver *driver; /* of all ports */
    struct quoit_port_knobs knobs;
    struct pe *pes;
    struct host *hosts;
    struct fault_run *faults; /* [plan->fault_count]; NULL before the first PE runs */
    struct fault_log fault_log;
    struct stillness stillness;
    uint32_t dead_links[2];  /* for END_CUT_OFF */
    struct wait_note *notes; /* [pe_count], taken when the job is ended; NULL before */
    uint32_t alive_count;
    uint32_t hello_count;
    uint32_t ready_count;
    uint32_t leaving_count;
    const struct pe *finalized; /* the first one that is through shmem_finalize; NULL: none since GO */
    uint32_t quiet_exit_count;  /* ended well without shmem_init */
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

#endif
