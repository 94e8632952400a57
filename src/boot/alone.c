/* SPDX-License-Identifier: BSD-3-Clause */
/* Started without a launcher: a job of one PE with memory of its own. */
#include "boot/launcher.h"
#include "base/log.h"
#include "boot/heap_default.h"
#include "env/limits.h"
#include "env/map.h"

#include <errno.h>
#include <sys/mman.h>

#define HEAP_BYTES_MIN (1ull << 28) /* a smaller limit is the machine's doing, and is reported */

static bool is_here(const char *launcher)
{
    (void)launcher;
    return true;
}

/* Address space may be scarcer than any limit shows, as under valgrind: a default heap limit is reduced until it fits.
 */
static enum quoit_status join(struct quoit_boot *boot, uint64_t data_bytes)
{
    uint64_t heap_bytes = boot->heap_bytes_asked ? boot->heap_bytes_asked : quoit_heap_default_alone_bytes(data_bytes);
    for (;;) {
        const struct quoit_job_config job = quoit_boot_one_host(1, data_bytes, heap_bytes);
        enum quoit_status status = quoit_boot_make_memory(boot, &job, 0);
        if (status != QUOIT_OK)
            return status;
        if (quoit_boot_map(boot) == QUOIT_OK) {
            ((struct quoit_host_header *)boot->memory)->machine =
                quoit_machine_of(&boot->layout.job, 0, true, quoit_limits_core_count());
            return QUOIT_OK;
        }
        if (boot->heap_bytes_asked || heap_bytes <= HEAP_BYTES_MIN)
            return quoit_boot_report_unmapped(boot, errno);
        heap_bytes = heap_bytes / 4 / QUOIT_HUGE_PAGE_BYTES * QUOIT_HUGE_PAGE_BYTES;
    }
}

static enum quoit_status barrier(struct quoit_boot *boot)
{
    (void)boot;
    return QUOIT_OK;
}

static bool end_job(struct quoit_boot *boot, int status, const char *text, uint64_t from)
{
    (void)boot;
    (void)status;
    (void)text;
    (void)from;
    return false;
}

const struct quoit_boot_ops quoit_boot_alone = {
    .name = "none",
    .is_here = is_here,
    .join = join,
    .barrier = barrier,
    .abort = end_job,
};
