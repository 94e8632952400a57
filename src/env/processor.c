/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/processor.h"
#include "base/digest.h"
#include "env/primitives.h"

#include <fcntl.h>
#include <unistd.h>

bool quoit_processor_is_free(cpu_set_t *allowed_out)
{
    if (QUOIT_HAS_PRIMITIVES)
        return quoit_primitives->processor_is_free(allowed_out);
    return sched_getaffinity(0, sizeof *allowed_out, allowed_out) == 0 &&
           CPU_COUNT(allowed_out) == sysconf(_SC_NPROCESSORS_ONLN);
}

uint32_t quoit_processor_kernel(void)
{
    char boot_id[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, boot_id, sizeof boot_id) : -1;
    if (fd >= 0)
        close(fd);
    return bytes > 0 ? quoit_digest(boot_id, (size_t)bytes) : 0;
}

uint64_t quoit_processor_pool(void)
{
    uint32_t kernel = quoit_processor_kernel();
    cpu_set_t allowed;
    if (kernel == 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 0;
    return (uint64_t)kernel << 32 | quoit_digest(&allowed, sizeof allowed);
}

int quoit_processor_own(void)
{
    return QUOIT_HAS_PRIMITIVES ? quoit_primitives->processor_own() : sched_getcpu();
}

int quoit_processor_nth(const cpu_set_t *allowed, uint32_t index)
{
    for (int processor = 0; processor < CPU_SETSIZE; processor++)
        if (CPU_ISSET(processor, allowed) && index-- == 0)
            return processor;
    return -1;
}

static bool may_run_on(const cpu_set_t *these)
{
    cpu_set_t now;
    return sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, these);
}

bool quoit_processor_go(int processor, const cpu_set_t *allowed)
{
    cpu_set_t one;
    if (QUOIT_HAS_PRIMITIVES)
        return quoit_primitives->processor_go(processor);
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    if (!may_run_on(allowed) || sched_setaffinity(0, sizeof one, &one) != 0)
        return false;
    if (!may_run_on(&one)) /* the affinity was changed meanwhile */
        return false;
    sched_setaffinity(0, sizeof *allowed, allowed);
    return true;
}
