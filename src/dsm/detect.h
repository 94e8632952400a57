/* SPDX-License-Identifier: BSD-3-Clause */
/* detect.h - how accesses are allowed, and writes seen, in the program's view.
 *
 * A detector is one table. `pages` are always consecutive and in one chunk. Called under the library's lock. */
#ifndef QUOIT_DSM_DETECT_H
#define QUOIT_DSM_DETECT_H

#include "dsm/state.h"

struct quoit_dsm_detector {
    const char *name;
    bool sees_writes; /* a first write faults; otherwise collect alone tells */
    /* False, with nothing left behind, if the kernel does not support it. */
    bool (*start)(struct quoit_dsm *dsm);
    void (*stop)(struct quoit_dsm *dsm);
    /* Takes over a chunk that was just mapped in the program's view, without access. */
    void (*watch)(struct quoit_dsm *dsm, char *chunk, uint64_t bytes);
    void (*close)(struct quoit_dsm *dsm, uint64_t page, uint64_t count);
    /* From no access, or from more. */
    void (*open_read)(struct quoit_dsm *dsm, uint64_t page, uint64_t count);
    /* Writes are not watched. was_readable: loads were allowed, stores watched. If the kernel dropped the entry of such
     * a page it may fault again, and is then opened as one without access; so is a writable page that faults. */
    void (*open_write)(struct quoit_dsm *dsm, uint64_t page, uint64_t count, bool was_readable);
    /* Chunks whose stores fault, so that nothing looks for writes there and their copies need no twins. All NULL: the
     * detector has no such chunks. freeze: before copies in the chunk are opened for loads; does nothing where a page
     * is open, or where this PE has stored before. thaw: twins of the chunk's copies are there. */
    bool (*is_frozen)(const struct quoit_dsm *dsm, uint64_t page);
    void (*freeze)(struct quoit_dsm *dsm, uint64_t page);
    void (*thaw)(struct quoit_dsm *dsm, uint64_t page);
    /* Appends pages written since the last call to dsm->dirty, and watches them again before it returns. Pages opened
     * for writing are in dsm->dirty already, but for those in exclusive mode, which it leaves alone. */
    void (*collect)(struct quoit_dsm *dsm);
};

extern const struct quoit_dsm_detector quoit_dsm_detect_async, quoit_dsm_detect_wp, quoit_dsm_detect_segv;

/* Chooses by the option and starts it; ends the job with a message if a forced one is not available. */
void quoit_dsm_detect_start(struct quoit_dsm *dsm);

#endif
