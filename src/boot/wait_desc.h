/* SPDX-License-Identifier: BSD-3-Clause */
/* wait_desc.h - what a sleeping PE waits for, read from outside: the object, its value, the value wanted, the holder of
 * a lock. For the reports of `oshrun --timeout` and for `quoit top`.
 *
 * The memory is the PEs', who may have written anything there: nothing of it is trusted, and nothing is written.
 * Threads: any. Errors: none; what cannot be found is left out.
 */
#ifndef QUOIT_BOOT_WAIT_DESC_H
#define QUOIT_BOOT_WAIT_DESC_H

#include "host/layout.h"

#define QUOIT_WAIT_DESC_TEXT_BYTES 192
#define QUOIT_WAIT_DESC_NO_HOLDER  UINT32_MAX

/* One host's memory. */
struct quoit_wait_desc_host {
    const struct quoit_layout *layout;
    const void *front; /* mapped as far as the channels */
    int memory_fd;
};

struct quoit_wait_desc_job {
    uint32_t pe_count;
    bool is_partial; /* other hosts' memory may be another machine's, so the holder of a lock may be unknown */
    struct quoit_wait_desc_host (*host_of)(void *arg, uint32_t pe);
    void *arg;
};

/* What the memory says about a wait descriptor: all that its text needs but the names of variables, so that it can be
 * read on one machine and described on another. */
struct quoit_wait_desc_reading {
    struct quoit_wait_desc wait_desc; /* count 0: the PE has not published it */
    uint64_t value;                   /* of the object that the wait descriptor names */
    uint64_t offset;                  /* of that, or of the lock, in the heap, or in the PE's variables */
    uint32_t holder;                  /* of the lock; QUOIT_WAIT_DESC_NO_HOLDER */
    uint8_t is_in_heap;
    uint8_t is_partial; /* only PEs of the same host were looked at for the holder */
    uint8_t unused[2];
};

/* `earlier`, another reading of this host or NULL, has the holder if it is of the same lock. */
void quoit_wait_desc_read(const struct quoit_wait_desc_job *job, uint32_t pe, const struct quoit_wait_desc *wait_desc,
                          const struct quoit_wait_desc_reading *earlier, struct quoit_wait_desc_reading *reading_out);
/* Whether a PE, whose memory is of this machine, holds the lock for which another one waits. */
bool quoit_wait_desc_holds(const struct quoit_wait_desc_job *job, uint32_t pe, const struct quoit_wait_desc *lock);
/* " for flag == 1, which is 0", or "" if the PE has not published it. `executable`, which may be NULL, has the names of
 * variables. Any reading may be given: nothing of it is trusted. */
void quoit_wait_desc_describe(const struct quoit_wait_desc_reading *reading, const char *executable,
                              char text_out[QUOIT_WAIT_DESC_TEXT_BYTES]);

#endif
