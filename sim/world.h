/* SPDX-License-Identifier: BSD-3-Clause */
/* world.h - hosts, links and tasks in virtual time: one run of the simulator.
 *
 * One process, one thread, one event per step. All randomness comes from `chance`, which starts from the seed, so the
 * trace of a seed is byte-identical on each run.
 *
 * The production code runs unchanged: while there is a world, the primitives of src/env/ are its own (env.c), and it
 * observes the points of base/observer.h (cost.c, watch.c). The current world is the one global of the simulator, since
 * primitives and observers have no handle.
 *
 * Two clients of one ring are two worlds that pass time together: each has hosts, memory, proxies, PEs and a ledger of
 * its own, and of each link an end of its own; wire and cuts are in common (sim_end_share()). The first one's events
 * and the second one's fire in the order of their times, with the world to which they belong as the current one.
 *
 * Errors: sim_fail() ends the run, from wherever it is called; assertions of the production code end there too.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <setjmp.h>
#include <stdio.h>

#include "base/prng.h"
#include "lane/lane.h"
#include "proxy/queue.h"
#include "proxy/proxy.h"
#include "sim/event.h"
#include "sim/model.h"
#include "sim/port.h"
#include "sim/task.h"

#define SIM_FAILURE_BYTES 1024
#define SIM_FAULTS_MAX    16

#define SIM_SENDS_MAX 16

/* Of those that ran on a processor, as many as switch_of_8_ns speaks of. */
#define SIM_PROCESSES_KNOWN 8

struct sim_workload;
struct sim_fault;
struct sim_canary;
struct sim_ledger;

/* The order of consecutive puts of one PE. */
enum sim_issue {
    SIM_ISSUE_ROW,      /* the next when the previous one has returned */
    SIM_ISSUE_QUIET,    /* the next when the previous one is known to have arrived */
    SIM_ISSUE_TOGETHER, /* all at once, without waiting */
};

/* Of the workload ethernet: the device, and what measures it. */
enum sim_device { SIM_DEVICE_PAPERS, SIM_DEVICE_OURS, SIM_DEVICE_GIGABIT, SIM_DEVICE_COUNT };
enum sim_program {
    SIM_PROGRAM_DRIVER,  /* ping-pong in the driver, below TCP */
    SIM_PROGRAM_NETPIPE, /* ping-pong over TCP */
    SIM_PROGRAM_NETPERF, /* one direction over TCP */
    SIM_PROGRAM_COUNT
};

/* Of workloads that measure: which hosts send, how far, and in which order. */
struct sim_pattern {
    uint32_t hop_count;
    enum sim_issue issue;
    bool has_all_senders; /* else the host `sender` alone */
    uint32_t sender;
    char sends[SIM_SENDS_MAX + 1]; /* r and l: the neighbour of each put, repeated */
    enum sim_device device;
    enum sim_program program;
};

/* All that a run depends on. */
struct sim_config {
    uint64_t seed;
    struct quoit_job_config job;
    const struct sim_workload *workload;
    const struct sim_fault *faults[SIM_FAULTS_MAX];
    uint32_t fault_count;
    const struct sim_canary *canary; /* NULL: none */
    struct sim_model model;
    uint64_t dma_bytes;       /* as the proxy's configuration */
    uint32_t step_count;      /* of each PE */
    uint64_t pieces_start;    /* of workloads with pieces: where they begin in the heap */
    bool is_old;              /* counts and numbers that wrap are about to */
    uint64_t bytes;           /* size of transfers of workloads that measure */
    bool checks_each_step;    /* of a lane: its invariants */
    uint64_t check_all_every; /* events between checks of all lanes; 0: none */
    bool permutes_ties;       /* events of one instant in an order chosen by chance */
    bool has_direct_puts;     /* PEs put to neighbours directly, and writes have arrived when they return */
    bool has_posted_puts;     /* the same with posted writes; neither: PEs do not put directly */
    bool has_page_dma;        /* a descriptor of DMA is a page, else all that is asked for at once */
    uint64_t second_seed;     /* of a second client of the same links; 0: there is none */
    struct sim_pattern pattern;
    FILE *trace; /* NULL: no listing */
};

/* One lane of a host, as its task knows it. */
struct sim_service {
    struct sim_host *host;
    uint32_t lane;
    struct sim_task *task;
};

/* Processors with one queue of tasks that wait for them: all of a host, or one of those that all hosts share, since
 * Linux has a queue for each and takes no task from another that ran just before. */
struct sim_cores {
    uint32_t free_count;
    uint64_t fetched_bytes;               /* by its processor: the clock of its cache (cache.h) */
    uint32_t recent[SIM_PROCESSES_KNOWN]; /* processes that ran there, each once, the last one first */
    uint32_t recent_count;
    struct sim_task *ready_first;
    struct sim_task *ready_last;
};

struct sim_host {
    struct sim_world *world;
    uint32_t index;
    struct quoit_layout layout;
    char *memory;
    struct sim_end *ends[QUOIT_SIDE_COUNT];
    struct quoit_port_endpoint port_endpoints[QUOIT_SIDE_COUNT];
    struct quoit_proxy_config proxy_config;
    struct quoit_proxy *proxy;
    struct sim_cores own_cores;
    uint64_t memory_free_ns; /* when its memory has served its ports' accesses */
    bool memory_is_written;  /* the last of it was a write */
    struct sim_service services[QUOIT_LANES_MAX];
    bool is_dead;            /* a fault: nothing runs any more */
    bool has_told;           /* that two links are dead */
    struct sim_task **tasks; /* of this host */
    uint32_t task_count;
    uint32_t task_capacity;
    uint32_t idle_count; /* tasks that idle */
};

struct sim_world {
    struct sim_config config;
    struct sim_world *first; /* of those that pass time together: itself, if it is alone */
    struct sim_world *next;  /* the second client; NULL: there is none */
    bool is_gone;            /* a fault: this client has ended */
    struct sim_model model;
    struct quoit_prng chance;
    uint64_t now_ns;
    struct sim_queue queue;
    uint64_t event_count;
    uint64_t trace_hash;
    struct sim_task *current;    /* NULL: between tasks */
    struct sim_stack main_stack; /* where the running task was resumed */
    jmp_buf escape;              /* of the main stack */
    bool has_failed;
    char failure[SIM_FAILURE_BYTES];
    struct sim_host *hosts;
    struct sim_cores *shared_cores; /* one for each processor that hosts share; NULL: they share none */
    struct sim_cache *cache;        /* of shared processors; NULL: not modelled */
    char *memory;                   /* of all hosts */
    uint64_t memory_bytes;          /* of each */
    struct sim_task **tasks;
    uint32_t task_count;
    uint32_t task_capacity;
    uint32_t ready_host_count;
    uint32_t live_pe_count;
    uint64_t progress_ns;                           /* when a PE last did something */
    uint64_t seen_progress_ns, seen_progress_event; /* of check_progress() */
    uint64_t rest_since_ns;                         /* no PE of any client is at work */
    uint64_t noise_ns;                              /* a fault: each expense of time takes up to this much longer */
    uint64_t doorbell_delay_ns;
    uint64_t dma_delay_ns;
    uint64_t dma_stall_ns;     /* before each piece that an engine reads, which is small then */
    uint64_t dma_fails_one_in; /* pieces; 0: none */
    uint64_t skew_ns;          /* packets on different queues of a port are this far apart at most */
    bool tears_writes;
    bool has_outages;     /* a link was cut at some time */
    uint32_t blinks_left; /* a fault: how often a link may still change between two calls of a port */
    uint32_t cut_count;   /* links that are cut now */
    uint32_t dead_count;  /* of them: for ever */
    uint64_t cut_off_ns;  /* when two links were cut; 0: not two */
    bool is_cut_off;      /* all live hosts have reported it: the end of the job */
    struct sim_pe *pes;   /* once they have started */
    struct sim_ledger *ledger;
    void *canary_state;
    void *fault_states;
    void *workload_state;
    uint64_t *network_free_ns; /* when each of the processors that a network's hosts share has nothing to do */
    uint64_t added;            /* by the workload, to its counters */
    struct sim_metric *metrics;
    uint32_t metric_count;
};

extern const struct quoit_primitives sim_primitives;

/* The world that runs now, or NULL. */
struct sim_world *sim_world_current(void);

/* Hosts, links and proxies; NULL when out of memory. The world becomes the current one. `second`: of a second client of
 * the same links, with as many hosts; NULL: there is none. */
struct sim_world *sim_world_new(const struct sim_config *config, const struct sim_config *second);
/* Of all clients. */
void sim_world_free(struct sim_world *world);
/* A fault: the second client ends, as docs/design/sharing.md describes it. */
void sim_world_end_client(struct sim_world *client);
/* The whole job: proxies start, PEs run the workload, everything becomes quiescent and is checked, proxies stop. With
 * two dead links it may end before that: when every live host has reported them, in time, by name. The same for a
 * second client. False: the run has failed, see world->failure. */
bool sim_world_run(struct sim_world *world);
/* Only handles events until none is left; for tests that start their own tasks. False: as above. */
bool sim_world_quiesce(struct sim_world *world);

/* Ends the run; the text is the error. Does not return. */
__attribute__((noreturn, format(printf, 2, 3))) void sim_fail(struct sim_world *world, const char *format, ...);

/* A number in 0..n-1; the only source of randomness. */
uint64_t sim_choose(struct sim_world *world, uint64_t n);
void sim_schedule(struct sim_world *world, struct sim_event *event, uint64_t at_ns);
/* Adds to the trace: to its hash, and to its text where that is written. */
void sim_trace(struct sim_world *world, const char *kind, uint64_t a, uint64_t b, uint64_t c);
/* Adds to the text alone, for tests/model/moves.py. */
void sim_trace_text(struct sim_world *world, const char *kind, uint64_t a, uint64_t b, uint64_t c);

/* The link that joins this host and the next, by its right end. */
static inline struct sim_end *sim_link(struct sim_world *world, uint32_t link)
{
    return world->hosts[link].ends[QUOIT_RIGHT];
}

#endif
