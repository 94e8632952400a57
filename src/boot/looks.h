/* SPDX-License-Identifier: BSD-3-Clause */
/* looks.h - what a host answers in a round (rounds.h): whether its PEs wait, poll in vain, and hold locks.
 *
 * It reads the memory of the host and /proc. The caller knows of which process a PE is, and whether it is in
 * shmem_finalize; docs/design/stillness.md has the rule.
 *
 * Threads: one a struct quoit_looks. Errors: none; a PE that cannot be looked at may go on.
 */
#ifndef QUOIT_BOOT_LOOKS_H
#define QUOIT_BOOT_LOOKS_H

#include <stdbool.h>
#include <sys/types.h>

#include "boot/rounds.h"
#include "boot/still.h"
#include "boot/wait_desc.h"

/* What the caller knows of a PE now. */
struct quoit_looks_pe {
    pid_t process;   /* 0: none that waits, since it has ended or has passed shmem_finalize */
    bool is_leaving; /* it is in shmem_finalize */
};

/* What was seen of a PE; zero at first. */
struct quoit_looks_seen {
    struct quoit_still still;
    uint64_t look;         /* what it found (still.h) */
    uint64_t since;        /* the question's, since which: */
    bool has_rested;       /* it waited, or polled in vain, with nothing under way */
    bool has_proxy_rested; /* of the first PE of a host: the proxy slept */
};

struct quoit_looks {
    const struct quoit_layout *layout;
    const void *front; /* mapped as far as the channels */
    int memory_fd;
    struct quoit_wait_desc_job wait_descs;
    struct quoit_looks_seen *seen; /* [layout->local_count] */
    uint32_t own_thread_count;     /* threads that each process of a PE has by itself, and of Quoit */
    bool misses_host;              /* one is silent: what is under way to it, or from it, cannot be seen */
    pid_t proxy;                   /* that serves the host; 0: none, or not known */
    uint64_t proxy_ns;             /* how long it may take to fall asleep: it has just passed the question on */
    bool has_traffic;              /* what the host sends is looked at: the questions go by another way */
    struct quoit_looks_pe (*pe_of)(void *arg, uint32_t pe);
    void *arg;
};

/* One look at all PEs of the host. A question comes from a process of the job; its lock_count has been checked. */
void quoit_looks_take(const struct quoit_looks *looks, const struct quoit_rounds_question *question,
                      struct quoit_rounds_answer *answer_out);

#endif
