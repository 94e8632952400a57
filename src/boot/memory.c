/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a host of a job without oshrun. */
#include "boot/launcher.h"
#include "base/log.h"
#include "env/limits.h"
#include "env/map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK_BYTES 64u

static enum quoit_status report_no_memory(const struct quoit_boot *boot, int error)
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

struct quoit_job_config quoit_boot_one_host(uint32_t pe_count, uint64_t data_bytes, uint64_t heap_bytes)
{
    const uint64_t page_bytes = 4096;
    return (struct quoit_job_config){
        .host_count = 1,
        .pe_count = pe_count,
        .lane_count = 1,
        .slot_count = QUOIT_RING_SLOTS_MIN,
        .chunk_bytes = CHUNK_BYTES,
        .data_bytes = data_bytes,
        .heap_bytes = (heap_bytes + page_bytes - 1) / page_bytes * page_bytes,
    };
}

enum quoit_status quoit_boot_make_memory(struct quoit_boot *boot, const struct quoit_job_config *job, uint32_t host)
{
    enum quoit_status status = quoit_layout_make(job, host, &boot->layout);
    if (status != QUOIT_OK)
        return status;
    if (boot->layout.total_bytes > quoit_limits_file_bytes())
        return report_no_memory(boot, EFBIG); /* trying would raise SIGXFSZ */
    if (boot->memory_fd < 0)
        boot->memory_fd = memfd_create("quoit-host", MFD_CLOEXEC);
    if (boot->memory_fd < 0 || ftruncate(boot->memory_fd, (off_t)boot->layout.total_bytes) != 0)
        return report_no_memory(boot, errno);
    return QUOIT_OK;
}
