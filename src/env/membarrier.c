/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/membarrier.h"
#include "env/primitives.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether the kernel supports membarrier: probed once per process, the same in all of them. */
static _Atomic int has_membarrier;

void quoit_membarrier_setup(void)
{
    long registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
    atomic_store(&has_membarrier, registered == 0);
}

bool quoit_membarrier_exists(void)
{
    return QUOIT_HAS_PRIMITIVES || atomic_load_explicit(&has_membarrier, memory_order_relaxed) != 0;
}

void quoit_membarrier(void)
{
    if (QUOIT_HAS_PRIMITIVES)
        quoit_primitives->barrier();
    else if (quoit_membarrier_exists())
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}
