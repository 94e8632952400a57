/* SPDX-License-Identifier: BSD-3-Clause */
/* Started without a launcher: a job of one PE with memory of its own. */
#include "boot/launcher.h"
#include "base/log.h"
#include "env/limits.h"
#include "env/map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAP_BYTES     (1ull << 36) /* a limit of address space, not of memory: pages are allocated as the heap grows */
#define HEAP_BYTES_MIN (1ull << 28) /* a smaller limit is the machine's doing, and is reported */
#define CHUNK_BYTES    64u

static bool is_here(void)
{
    return true;
}

/* A quarter of the remaining address space, since the heap is mapped twice, and at most the largest file; the rest is
 * left to the program. */
static uint64_t default_heap(uint64_t data_bytes)
{
    uint64_t addresses = quoit_limits_address_bytes() / 4, file = quoit_limits_file_bytes(), bytes = HEAP_BYTES;
    uint64_t others = QUOIT_RUNTIME_BYTES + data_bytes + 3ull * QUOIT_HUGE_PAGE_BYTES;
    bytes = addresses < bytes ? addresses : bytes;
    if (file < bytes + others)
        bytes = file > others ? file - others : 0;
    bytes = bytes / QUOIT_HUGE_PAGE_BYTES * QUOIT_HUGE_PAGE_BYTES;
    return bytes ? bytes : QUOIT_HUGE_PAGE_BYTES;
}

static enum quoit_status say_no_memory(const struct quoit_boot *boot, int error)
{
    if (error == EFBIG)
        quoit_say("shared memory is a file of %llu MiB, but ulimit -f allows %llu MiB; a smaller SHMEM_SYMMETRIC_SIZE "
                  "needs less [Q0302]",
                  (unsigned long long)(boot->layout.total_bytes >> 20),
                  (unsigned long long)(quoit_limits_file_bytes() >> 20));
    else
        quoit_say("cannot create %llu MiB of shared memory: %s%s [Q0302]",
                  (unsigned long long)(boot->layout.total_bytes >> 20), strerror(error),
                  error == EPERM || error == ENOSYS ? " (a filter of system calls must allow memfd_create)" : "");
    return QUOIT_SYSTEM;
}

static enum quoit_status make_memory(struct quoit_boot *boot, uint64_t data_bytes, uint64_t heap_bytes)
{
    const struct quoit_job_config job = {
        .host_count = 1,
        .pe_count = 1,
        .lane_count = 1,
        .slot_count = QUOIT_RING_SLOTS_MIN,
        .chunk_bytes = CHUNK_BYTES,
        .data_bytes = data_bytes,
        .heap_bytes = heap_bytes,
    };
    enum quoit_status status = quoit_layout_make(&job, 0, &boot->layout);
    if (status != QUOIT_OK)
        return status;
    if (boot->layout.total_bytes > quoit_limits_file_bytes())
        return say_no_memory(boot, EFBIG); /* trying would raise SIGXFSZ */
    if (boot->memory_fd < 0)
        boot->memory_fd = memfd_create("quoit-host", MFD_CLOEXEC);
    if (boot->memory_fd < 0 || ftruncate(boot->memory_fd, (off_t)boot->layout.total_bytes) != 0)
        return say_no_memory(boot, errno);
    return QUOIT_OK;
}

/* Address space may be scarcer than any limit shows, as under valgrind: a default heap limit is reduced until it fits.
 */
static enum quoit_status join(struct quoit_boot *boot, uint64_t data_bytes)
{
    enum quoit_status status = quoit_boot_refuse_strangers();
    if (status != QUOIT_OK)
        return status;
    uint64_t heap_bytes = boot->heap_bytes_alone ? boot->heap_bytes_alone : default_heap(data_bytes);
    for (;;) {
        status = make_memory(boot, data_bytes, heap_bytes);
        if (status != QUOIT_OK)
            return status;
        if (quoit_boot_map(boot) == QUOIT_OK) {
            ((struct quoit_host_header *)boot->memory)->machine =
                quoit_machine_of(&boot->layout.job, 0, true, quoit_limits_core_count());
            return QUOIT_OK;
        }
        if (boot->heap_bytes_alone || heap_bytes <= HEAP_BYTES_MIN)
            return quoit_boot_say_unmapped(boot, errno);
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
