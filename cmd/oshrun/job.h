/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - the state of the running job, shared by the files of oshrun; the header of each file documents its part. The
 * files are ordered, and a file calls only those before it:
 *
 *   fault foreign machines allocation plan help         the command line
 *   loop control output terminal stopping children front guard   the environment of the process
 *   job.h     the state
 *   network   how hosts find each other that a network joins
 *   hosts     the memories, links and proxies of the hosts
 *   silence   hosts and agents that give no sign
 *   end       the decision to end the job, and its reason; signals to the PEs
 *   clock     the virtual time of --virtual
 *   suspend   the job is stopped, or goes on
 *   service   messages of PEs on their boot sockets
 *   attach    the second way of a PE to them
 *   input     standard input of a PE on another machine
 *   spawn     starts the PEs
 *   reap      children that ended, and the effect on the job
 *   inject awaited report stuck meetings trace stats   faults, reports and observation
 *   tree      the agents that this process starts
 *   top       what quoit top shows of several machines
 *   head      what they send
 *   agent     one of them
 *   proxy serve    the process of a proxy, which has no job
 *   main
 *
 * With --host the same program runs in two roles. The HEAD, which the user started, decides everything and holds no
 * process of the job; each PE and proxy belongs to the AGENT of its host, which does what the head orders (control.h).
 */
#ifndef OSHRUN_JOB_H
#define OSHRUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "boot/abstract.h"
#include "env/await.h"
#include "boot/positions.h"
#include "boot/protocol.h"
#include "boot/silence.h"
#include "boot/still.h"
#include "guard.h"
#include "loop.h"
#include "output.h"
#include "plan.h"
#include "boot/looks.h"
#include "virtual/clock.h"
#include "stopping.h"
#include "control.h"
#include "terminal.h"

#define HOST_NOT_BELOW UINT32_MAX
#define HOST_NONE      UINT32_MAX

enum role { ROLE_ALONE, ROLE_HEAD, ROLE_AGENT };

/* A process, as awaited.c saw it; of the head: as an agent did. */
struct seen {
    struct quoit_process process;
    uint64_t before_ns; /* its busy_ns at the look before */
    pid_t pid;          /* on its machine; 0: not seen yet */
};

struct pe {
    struct job *job;
    uint32_t index;
    uint32_t host;
    pid_t pid; /* the process started by oshrun; also its process group. 0 after it was reaped */
    pid_t
        program_pid; /* the sender of HELLO, as identified by the kernel: the same process, or a descendant. 0 before */
    struct watch program; /* pidfd of program_pid, if it is not pid; watched once is_exiting. -1: none */
    struct watch socket;  /* oshrun's end of the boot socket */
    struct watch second;  /* of a program that has attached (attach.h), until its HELLO; fd -1: none */
    enum quoit_phase phase;
    bool is_leaving;        /* has entered shmem_finalize, */
    uint64_t meeting_count; /* collectives before that */
    bool leaves_by_exit;    /* by exit(0) or a return from main */
    bool is_ended;
    int wait_status;     /* once is_ended */
    char *executable;    /* of program_pid, for symbolizing addresses; NULL before HELLO */
    char *abort_text;    /* its message when it ended the job; NULL: none */
    bool has_left_abort; /* of an agent: the ABORT in the PE's record was passed on */
    bool is_exiting;     /* runs its exit handlers after shmem_global_exit */
    uint64_t abort_from; /* and the address of that call in its program; 0: unknown */
    char *tag;
    struct seen seen;
};

/* How far a proxy is, by its messages. */
enum proxy_stage {
    PROXY_STARTS,
    PROXY_JOINS,  /* waits for its neighbours */
    PROXY_MEETS,  /* has sent its contact, and waits for those of the others */
    PROXY_SERVES, /* is ready */
};

struct host {
    struct job *job;
    uint32_t index;
    struct quoit_layout layout;
    int memory_fd;
    int link_fd;         /* of the link to its right neighbour; -1 on a single host */
    bool has_namespaces; /* with --ring, in which its PEs run; false: in those of oshrun */
    struct quoit_share_namespaces namespaces;
    void *front;            /* the memory up to the channels, mapped; NULL before the layout */
    bool has_proxy;         /* which has not ended */
    pid_t proxy_pid;        /* 0: none, ended, or on another machine */
    int proxy_wait_status;  /* once it has ended */
    uint32_t proxy_failure; /* enum quoit_status: why it cannot serve, as it reported */
    struct watch attach;    /* for attach.h, in the host's namespaces */
    struct watch proxy;     /* the socket of the proxy */
    bool has_begun;         /* it was sent its START */
    bool has_closed;        /* its socket, and ran on */
    struct seen seen;       /* the proxy */
    enum proxy_stage stage;
    bool is_cut_off;
    uint32_t missed_by;            /* whose proxy has lost this one's; HOST_NONE */
    bool is_silent;                /* from which nothing came any more; else the connection broke */
    bool is_dismissed;             /* its proxy, which lived still, was ended for that */
    struct quoit_port *fault_port; /* of the link to its right neighbour, for --fault; NULL before */
    /* Where it is below this process in the tree of agents: */
    uint32_t via;               /* the host, next below, whose agent leads to it; HOST_NOT_BELOW: it is not below */
    struct control control;     /* of a host next below: with its agent */
    pid_t rsh_pid;              /* and the remote shell; 0: ended */
    bool is_gone;               /* its agent has ended or was lost */
    bool is_agent_silent;       /* of the head, and of an agent as it has reported */
    uint8_t reported_silence;   /* of an agent: what its proxy finds of this host, as it has reported */
    uint64_t agent_received_ns; /* when, while it is silent */
    /* Of the head: */
    bool has_answered;
    char problem[CONTROL_PROBLEM_BYTES]; /* why it is gone; */
    int rsh_wait_status;                 /* once the remote shell has ended */
    bool has_rsh_status;
    uint32_t pending_bytes; /* of output, to be TAKEN when its reader has */
};

enum end_reason {
    END_NORMAL,      /* every PE ended successfully, or with a status of its own after shmem_finalize */
    END_PE_FAILED,   /* a signal, a status, or gone without shmem_finalize */
    END_NO_INIT,     /* some PEs wait in shmem_init for one that ended without it */
    END_ABORTED,     /* requested by a PE, with a message */
    END_LEFT,        /* a PE finalized while others were elsewhere */
    END_POLLED,      /* a PE entered shmem_finalize, and others do nothing but poll in vain */
    END_LOCK_KEPT,   /* a PE entered shmem_finalize with a lock for which another waits */
    END_GLOBAL_EXIT, /* requested by a PE, without a message */
    END_PROXY_DIED,
    END_CUT_OFF,
    END_RING_GONE,
    END_CANNOT_START,
    END_HANGS, /* processes that are awaited in shmem_init; job->await_text */
    END_TIMEOUT,
    END_STILL, /* in virtual time nothing can happen any more */
    END_INTERRUPTED,
    END_GUARD_GONE,
    END_OUTPUT_GONE,
    END_HOST_LOST, /* its agent has ended or is silent */
    END_ORDERED,   /* of an agent: by oshrun */
};

enum end_phase {
    ENDING_NOT,
    ENDING_GRACE,  /* decided; processes still running may finish writing */
    ENDING_KILLED, /* SIGKILL was sent to all */
};

struct end {
    enum end_phase phase;
    enum end_reason reason;
    int status;
    uint32_t culprit;      /* PE; host for END_PROXY_DIED and END_HOST_LOST, errno for END_OUTPUT_GONE */
    uint64_t begin_ns;     /* the decision */
    uint64_t deadline_ns;  /* of the phase */
    bool is_drained;       /* remaining pipes deliver nothing more */
    uint64_t places_by_ns; /* for the report: after it, positions are printed as addresses */
};

/* Who is asked for its position before the job is ended: each may take a while to answer. */
enum end_question {
    END_ASKS_NOBODY,
    END_ASKS_INTERPRETERS, /* programs in Python, for their lines */
    END_ASKS_ALL,          /* and programs that compute, or poll */
    END_ASKS_ENDING,       /* all that SIGTERM, which comes next, would end */
};

struct stillness {
    struct quoit_rounds rounds;   /* of who decides */
    struct quoit_looks_seen *pes; /* [pe_count]; of who looks. NULL before the first look */
};

struct input; /* input.h */
struct top;   /* top.h */

struct job {
    const struct plan *plan;
    enum role role;
    uint32_t own_host;                /* of an agent */
    int bridge_fds[QUOIT_SIDE_COUNT]; /* of an agent, with plan_has_bridges() */
    struct control control;           /* of an agent, with oshrun */
    uint32_t untaken_bytes;           /* of an agent: output that oshrun has not taken */
    struct top *top;                  /* of the head; NULL before the layout, and once the job is to end */
    uint64_t tag;                     /* of a job over several machines: chance, the same on all; 0 before the layout */
    uint64_t heap_most_bytes;         /* of a default, in any PE that has sent HELLO */
    uint64_t heap_default_bytes;      /* of the head: the least that any machine offers; 0: none has reported it */
    struct input *input;              /* NULL: PE 0 has its standard input from oshrun itself */
    char **environment;
    int argument_count; /* the command line as it was given */
    char **arguments;
    struct loop loop;
    struct output output;
    struct terminal terminal;
    struct watch signals;
    struct guard guard;
    struct watch front; /* of struct front_word */
    enum stopping_state stopping;
    uint32_t continue_count; /* requests of the front to continue */
    bool has_gone_on;        /* once it was to end */
    struct watch attach;     /* for attach.h */
    char attach_name[QUOIT_ABSTRACT_NAME_BYTES];
    int output_folder;       /* of --output */
    int *exec_errors;        /* [pe_count], shared with the PEs until exec: errno of the step that failed, or
                              * less than 0: -errno of entering the host */
    struct rlimit old_files; /* restored for the PEs */
    struct quoit_job_config config;
    const struct quoit_port_driver *driver; /* of all ports */
    struct quoit_port_knobs knobs;
    struct network_board *network; /* where hosts joined by a network meet; NULL: there is none */
    struct quoit_share share;      /* with --ring, once its memory is made; */
    struct watch ring; /* the connection, which lasts as long as this process: it ends first if the ring does */
    struct pe *pes;
    struct host *hosts;
    struct fault_run *faults; /* [plan->fault_count]; NULL before the first PE runs */
    struct fault_log fault_log;
    struct stillness stillness;
    struct quoit_silences silences; /* as the proxies find; of an agent, as its own does */
    uint64_t asked_ns;              /* when silent proxies were last looked at */
    uint32_t late_agent_count;
    bool has_findings; /* a proxy is ready, over a network: a host of which none reports silence is there */
    struct quoit_await await;
    char await_text[QUOIT_REPORT_AWAITED_BYTES];
    uint32_t dead_links[2];       /* for END_CUT_OFF */
    struct quoit_position *notes; /* [pe_count], taken when the job is ended; NULL before */
    uint32_t alive_count;
    uint32_t hello_count;
    uint32_t ready_count;
    uint32_t leaving_count;
    const struct pe *finalized; /* the first PE through shmem_finalize; NULL: none since GO */
    uint64_t finalized_ns;      /* when it sent that */
    uint32_t quiet_exit_count;  /* ended successfully without shmem_init */
    bool has_layout;
    uint32_t through_count; /* ended after shmem_finalize */
    bool is_going;          /* GO was sent */
    uint64_t start_ns;
    struct trace *trace;         /* see trace.h; NULL without --trace */
    struct quoit_virtual *clock; /* of --virtual; NULL without */
    char clock_path[64];
    struct {
        uint64_t count;    /* turns that were given until a look */
        uint64_t begin_ns; /* then the processor time of the PE that had one */
        bool is_reported;
    } turn;            /* of clock */
    FILE *profile_out; /* of --profile; NULL without */
    uint64_t timeout_at_ns;
    uint64_t stop_begin_ns;   /* when proxies were asked to stop */
    uint64_t proxies_stop_ns; /* when those that have not are killed; 0: not asked yet */
    struct end end;
    bool is_hurried; /* interrupted twice: oshrun waits for nothing more */
};

/* Whether the processes of a host are this one's children. */
static inline bool job_is_here(const struct job *job, uint32_t host)
{
    return job->role == ROLE_ALONE || (job->role == ROLE_AGENT && host == job->own_host);
}

/* For base/step.h. */
static inline const char *job_step_name(const struct job *job)
{
    return job->role == ROLE_AGENT ? "agent" : "oshrun";
}

#endif
