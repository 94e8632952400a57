/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range /* of Linux 5.9 */
#define SYS_close_range 436
#endif
#define READ_BYTES 2048

/* As the kernel gives it; no header of glibc has it. */
struct entry {
    uint64_t inode, next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

pid_t quoit_thread_id(void)
{
    return (pid_t)syscall(SYS_gettid);
}

const char *quoit_signal_name(int signal_number)
{
#define NAME(name) [SIG##name] = #name
    static const char *const names[] = {
        NAME(HUP),  NAME(INT),  NAME(QUIT),   NAME(ILL),  NAME(TRAP), NAME(ABRT), NAME(BUS),  NAME(FPE),
        NAME(KILL), NAME(USR1), NAME(SEGV),   NAME(USR2), NAME(PIPE), NAME(ALRM), NAME(TERM), NAME(STKFLT),
        NAME(CHLD), NAME(CONT), NAME(STOP),   NAME(TSTP), NAME(TTIN), NAME(TTOU), NAME(URG),  NAME(XCPU),
        NAME(XFSZ), NAME(PROF), NAME(VTALRM), NAME(POLL), NAME(PWR),  NAME(SYS),  NAME(WINCH)};
#undef NAME
    bool is_named = signal_number > 0 && (size_t)signal_number < sizeof names / sizeof names[0] && names[signal_number];
    return is_named ? names[signal_number] : "?";
}

/* The number that an entry of /proc/self/fd names; -1: none, as "." is. */
static int number_of(const char *name)
{
    int number = *name ? 0 : -1;
    for (; *name && number >= 0; name++)
        number = *name >= '0' && *name <= '9' ? number * 10 + (*name - '0') : -1;
    return number;
}

/* Calls use(fd) for each descriptor from `first` on, but the one that it reads by. False: /proc cannot be read. */
static bool walk(int first, void (*use)(void *arg, int fd), void *arg)
{
    _Alignas(struct entry) char bytes[READ_BYTES];
    int folder = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return false;
    long count;
    while ((count = syscall(SYS_getdents64, folder, bytes, sizeof bytes)) > 0)
        for (long at = 0; at < count;) {
            const struct entry *entry = (const void *)&bytes[at];
            int fd = number_of(entry->name);
            if (fd >= first && fd != folder)
                use(arg, fd);
            at += entry->bytes;
        }
    syscall(SYS_close, folder);
    return count == 0;
}

static void close_one(void *arg, int fd)
{
    (void)arg;
    syscall(SYS_close, fd);
}

void quoit_close_from(int first)
{
    if (syscall(SYS_close_range, first, ~0u, 0) == 0 || walk(first, close_one, NULL))
        return;
    for (int fd = first, end = (int)sysconf(_SC_OPEN_MAX); fd < end; fd++)
        close_one(NULL, fd);
}

#if __GLIBC_PREREQ(2, 34)
int quoit_spawn_close_from(posix_spawn_file_actions_t *files, int first)
{
    return posix_spawn_file_actions_addclosefrom_np(files, first);
}
#else
struct closes {
    posix_spawn_file_actions_t *files;
    int error;
};

static void add_close(void *arg, int fd)
{
    struct closes *closes = arg;
    if (closes->error == 0)
        closes->error = posix_spawn_file_actions_addclose(closes->files, fd);
}

int quoit_spawn_close_from(posix_spawn_file_actions_t *files, int first)
{
    struct closes closes = {.files = files};
    bool is_known = walk(first, add_close, &closes);
    return is_known ? closes.error : ENOENT;
}
#endif
