/* SPDX-License-Identifier: BSD-3-Clause */
/* wish.h - what a sleeping PE waits for, read from outside: the object, its value, the value wanted, the holder of a
 * lock. For the reports of `oshrun --timeout` and for `quoit top`.
 *
 * The memory is the PEs', who may have written anything there: nothing of it is trusted, and nothing is written.
 * Threads: any. Errors: none; what cannot be found is left out.
 */
#ifndef QUOIT_BOOT_WISH_H
#define QUOIT_BOOT_WISH_H

#include "host/layout.h"

#define QUOIT_WISH_TEXT_BYTES 192

/* One host's memory. */
struct quoit_wish_host {
    const struct quoit_layout *layout;
    const void *front; /* mapped as far as the channels */
    int memory_fd;
};

struct quoit_wish_job {
    uint32_t pe_count;
    bool is_partial; /* memory_fd is -1 where it is another machine's, so the holder of a lock may be unknown */
    struct quoit_wish_host (*host_of)(void *arg, uint32_t pe);
    void *arg;
};

/* " for flag == 1, which is 0", or "" if the PE has not published it. `executable`, which may be NULL, has the names of
 * variables. */
void quoit_wish_describe(const struct quoit_wish_job *job, uint32_t pe, const struct quoit_wish *wish,
                         const char *executable, char text_out[QUOIT_WISH_TEXT_BYTES]);

#endif
