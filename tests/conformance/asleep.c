/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded: a sleep on a futex has no limit, so a sleeper that nobody wakes does not look again by itself. It
 * does so nevertheless where the kernel has no membarrier: its sleeps are what makes good a wake that is missed. */
#include <dlfcn.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef long call(long number, ...);

#define WORDS 6
#define LIMIT 3 /* of a FUTEX_WAIT */

static bool has_membarrier(call *real)
{
    long commands = real(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
}

__attribute__((visibility("default"))) long syscall(long number, ...)
{
    call *real = (call *)(uintptr_t)dlsym(RTLD_NEXT, "syscall");
    long words[WORDS];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < WORDS; i++)
        words[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_futex && (words[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && has_membarrier(real))
        words[LIMIT] = 0;
    return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
