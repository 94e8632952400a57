/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - one virtual clock for all processes of a job.
 *
 * What it is: a table of the job's PEs and service threads in shared memory, which oshrun makes. One of them runs at a
 * time: the one whose virtual time is least, of several the one with the least index. It goes on in virtual time only
 * where it waits or where the model charges for something; what a program computes takes none,
 * unless that is measured. So the order of all events is a function of the program and the model: this machine's speed
 * and load do not enter.
 *
 * How: between quoit_virtual_join() and quoit_virtual_leave() the primitives of env (env/primitives.h) and the observer
 * of base (base/observer.h) of a PE's process are those of the virtual clock. Every wait of the library comes there,
 * and gives the turn to the next thread. Those of a proxy are from its start: its threads have the machine's time until
 * all PEs have joined, and again once all have left; what they send each other meanwhile is of the start and the end.
 *
 * Still: when every thread sleeps and no time limit will end a sleep, or only looks in vain follow each other for
 * QUOIT_VIRTUAL_STILL_NS, nothing can ever happen: the verdict says so, and nobody runs any more. oshrun looks at the
 * verdict, and ends the job.
 *
 * Threads: one thread of a PE's process joins. Another one that waits in the library ends the job with a message.
 */
#ifndef QUOIT_VIRTUAL_CLOCK_H
#define QUOIT_VIRTUAL_CLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "virtual/model.h"

#define QUOIT_VIRTUAL_VARIABLE    "QUOIT_CLOCK" /* of PEs and proxies: the path of the memory, from oshrun */
#define QUOIT_VIRTUAL_THREADS_MAX 8192
#define QUOIT_VIRTUAL_STILL_NS    1000000000ull
/* PEs begin at this time, later than any clock of a machine, so that no time that was taken before is ahead. Service
 * threads begin earlier by what lets them come to rest. */
#define QUOIT_VIRTUAL_BEGIN_NS (1ull << 60)
#define QUOIT_VIRTUAL_REST_NS  1000000000ull

enum quoit_virtual_phase {
    QUOIT_VIRTUAL_STARTS, /* not all PEs have joined */
    QUOIT_VIRTUAL_GOES,
    QUOIT_VIRTUAL_OVER, /* all PEs have left */
};

enum quoit_virtual_state {
    QUOIT_VIRTUAL_AWAY, /* has not joined, or has left */
    QUOIT_VIRTUAL_READY,
    QUOIT_VIRTUAL_ASLEEP, /* on a word, until it is woken or until limit_ns */
};

enum quoit_virtual_verdict {
    QUOIT_VIRTUAL_RUNS,
    QUOIT_VIRTUAL_STILL, /* every thread waits, and nothing can end a wait */
    QUOIT_VIRTUAL_LATE,  /* the time limit is over */
};

/* What a word to sleep on is in every process: a file and an offset, or an address of one process. */
struct quoit_virtual_word {
    uint64_t file;
    uint64_t offset;
};

struct quoit_virtual_thread {
    uint32_t state; /* enum quoit_virtual_state */
    _Atomic uint32_t turn_count;
    uint64_t now_ns;
    uint64_t limit_ns; /* of a sleep; UINT64_MAX: none */
    struct quoit_virtual_word word;
};

/* All zero but for what oshrun sets. */
struct quoit_virtual {
    pthread_mutex_t lock; /* of all below; writer up to service_count: oshrun, before the processes start */
    struct quoit_model model;
    uint64_t limit_ns;        /* of virtual time; 0: none */
    bool is_compute_measured; /* the processor time of PEs between their waits is virtual time, too */
    uint32_t pe_count;
    uint32_t service_count; /* of each host */
    uint32_t thread_count;  /* PEs, then the services of each host */
    _Atomic uint32_t phase; /* enum quoit_virtual_phase */
    uint32_t joined_count;  /* PEs */
    uint32_t present_count; /* PEs that have not left */
    uint32_t here_count;    /* threads */
    _Atomic uint32_t turn;  /* the thread that runs; QUOIT_VIRTUAL_THREADS_MAX: none. oshrun looks without the lock */
    _Atomic uint64_t turn_count; /* how often it was given, also to the same one */
    _Atomic uint32_t verdict;    /* enum quoit_virtual_verdict */
    uint64_t changed_ns;         /* when something last happened but looks in vain */
    _Atomic uint64_t now_ns;     /* of the thread that was last given the turn */
    _Atomic uint64_t ended_ns;   /* of the last PE that left */
    struct quoit_virtual_thread threads[QUOIT_VIRTUAL_THREADS_MAX];
};

/* A job's clock, before it is made. */
struct quoit_virtual_config {
    struct quoit_model model;
    uint32_t pe_count;
    uint32_t host_count;
    uint32_t service_count; /* of each host: lanes and manager; 0: there are no proxies */
    uint64_t limit_ns;
    bool is_compute_measured;
};

/* Makes the memory, for oshrun, which the other processes open by the path at path_out. SYSTEM, with errno. */
QUOIT_MUST_USE enum quoit_status quoit_virtual_create(const struct quoit_virtual_config *config,
                                                      struct quoit_virtual **clock_out, char path_out[64]);

/* Whether this process was started with a virtual clock, which it has mapped then. SYSTEM: it could not be mapped. */
QUOIT_MUST_USE enum quoit_status quoit_virtual_open(bool *is_virtual_out);
/* Joins as this PE. Returns once all have joined and it is this one's turn. */
void quoit_virtual_join(uint32_t pe);
/* Goes on in the machine's time. A process that has not joined: nothing happens. */
void quoit_virtual_leave(void);
/* A process of services, before its first wait; each of its threads, then, as this one of the host's. Without a clock
 * nothing happens. */
void quoit_virtual_begin_services(void);
void quoit_virtual_serve(uint32_t host, uint32_t service);

#endif
