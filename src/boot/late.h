/* SPDX-License-Identifier: BSD-3-Clause */
/* late.h - reports once that a wait in shmem_init takes long, while this thread waits.
 *
 * Threads: begin and end by the same thread, in pairs.
 */
#ifndef QUOIT_BOOT_LATE_H
#define QUOIT_BOOT_LATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct quoit_late {
    uint64_t limit_ns;
    pthread_mutex_t mutex; /* of is_over */
    pthread_cond_t ended;
    bool is_over;
    pthread_t thread;
    bool has_thread;
};

/* Warns limit_ns from now on, unless quoit_late_end is called before. Without a thread for it there is no warning. */
void quoit_late_begin(struct quoit_late *late, uint64_t limit_ns);
void quoit_late_end(struct quoit_late *late);

#endif
