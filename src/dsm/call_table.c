/* SPDX-License-Identifier: BSD-3-Clause */
/* Which arguments of system calls are memory. */
#include <sys/syscall.h>

#include "dsm/calls.h"

#define A0 1
#define A1 2
#define A2 4
#define A3 8
#define A4 16
#define A5 32

#define BUFFER(name, KIND, buffer, length, others)                                                                     \
    {                                                                                                                  \
        SYS_##name, QUOIT_DSM_CALL_##KIND, 1 << (buffer) | (others), buffer, length, #name                             \
    }
#define STORES(name, places)                                                                                           \
    {                                                                                                                  \
        SYS_##name, QUOIT_DSM_CALL_TOUCH_OUT, places, 0, 0, #name                                                      \
    }
#define LOADS(name, places)                                                                                            \
    {                                                                                                                  \
        SYS_##name, QUOIT_DSM_CALL_TOUCH_IN, places, 0, 0, #name                                                       \
    }

const struct quoit_dsm_call quoit_dsm_calls[] = {
#ifdef __x86_64__
    BUFFER(read, OUT, 1, 2, 0),
    BUFFER(write, IN, 1, 2, 0),
    BUFFER(pread64, OUT, 1, 2, 0),
    BUFFER(pwrite64, IN, 1, 2, 0),
    BUFFER(recvfrom, OUT, 1, 2, A4 | A5),
    BUFFER(sendto, IN, 1, 2, A4),
    STORES(ioctl, A2),
    STORES(poll, A0),
    STORES(epoll_wait, A1),
    STORES(ppoll, A0 | A2),
    STORES(epoll_pwait, A1),
    STORES(fstat, A1),
    STORES(newfstatat, A1 | A2),
    LOADS(openat, A1),
    BUFFER(getrandom, OUT, 0, 1, 0),
    BUFFER(getdents64, OUT, 1, 2, 0),
    BUFFER(readlink, OUT, 1, 2, A0),
    BUFFER(readlinkat, OUT, 2, 3, A1),
    BUFFER(getcwd, OUT, 0, 1, 0),
    BUFFER(getxattr, OUT, 2, 3, A0 | A1),
    BUFFER(lgetxattr, OUT, 2, 3, A0 | A1),
    BUFFER(fgetxattr, OUT, 2, 3, A1),
    BUFFER(listxattr, OUT, 1, 2, A0),
    BUFFER(flistxattr, OUT, 1, 2, 0),
    BUFFER(setxattr, IN, 2, 3, A0 | A1),
    BUFFER(fsetxattr, IN, 2, 3, A1),
    BUFFER(mq_timedreceive, OUT, 1, 2, A3 | A4),
    BUFFER(mq_timedsend, IN, 1, 2, A4),
    STORES(stat, A0 | A1),
    STORES(lstat, A0 | A1),
    STORES(statx, A1 | A4),
    STORES(statfs, A0 | A1),
    STORES(fstatfs, A1),
    STORES(accept, A1 | A2),
    STORES(accept4, A1 | A2),
    STORES(getsockname, A1 | A2),
    STORES(getpeername, A1 | A2),
    STORES(getsockopt, A3 | A4),
    STORES(socketpair, A3),
    STORES(pipe, A0),
    STORES(pipe2, A0),
    STORES(select, A1 | A2 | A3 | A4),
    STORES(pselect6, A1 | A2 | A3 | A4 | A5),
    STORES(fcntl, A2),
    STORES(sendfile, A2),
    STORES(splice, A1 | A3),
    STORES(copy_file_range, A1 | A3),
    STORES(uname, A0),
    STORES(sysinfo, A0),
    STORES(times, A0),
    STORES(time, A0),
    STORES(gettimeofday, A0 | A1),
    STORES(clock_gettime, A1),
    STORES(clock_getres, A1),
    STORES(nanosleep, A0 | A1),
    STORES(clock_nanosleep, A2 | A3),
    STORES(wait4, A1 | A3),
    STORES(waitid, A2 | A4),
    STORES(getrusage, A1),
    STORES(getrlimit, A1),
    STORES(prlimit64, A2 | A3),
    STORES(getgroups, A1),
    STORES(getresuid, A0 | A1 | A2),
    STORES(getresgid, A0 | A1 | A2),
    STORES(sched_getaffinity, A2),
    STORES(sched_getparam, A1),
    STORES(getcpu, A0 | A1),
    STORES(getitimer, A1),
    STORES(setitimer, A1 | A2),
    STORES(timerfd_gettime, A1),
    STORES(timerfd_settime, A2 | A3),
    STORES(rt_sigtimedwait, A0 | A1 | A2),
    STORES(msgrcv, A1),
    STORES(io_getevents, A3),
    LOADS(msgsnd, A1),
    LOADS(semop, A1),
    LOADS(io_submit, A2),
    LOADS(open, A0),
    LOADS(creat, A0),
    LOADS(access, A0),
    LOADS(faccessat, A1),
    LOADS(chdir, A0),
    LOADS(mkdir, A0),
    LOADS(mkdirat, A1),
    LOADS(rmdir, A0),
    LOADS(unlink, A0),
    LOADS(unlinkat, A1),
    LOADS(rename, A0 | A1),
    LOADS(renameat, A1 | A3),
    LOADS(renameat2, A1 | A3),
    LOADS(link, A0 | A1),
    LOADS(linkat, A1 | A3),
    LOADS(symlink, A0 | A1),
    LOADS(symlinkat, A0 | A2),
    LOADS(chmod, A0),
    LOADS(fchmodat, A1),
    LOADS(chown, A0),
    LOADS(fchownat, A1),
    LOADS(truncate, A0),
    LOADS(utimensat, A1 | A2),
    LOADS(bind, A1),
    LOADS(connect, A1),
    LOADS(setsockopt, A3),
    LOADS(epoll_ctl, A3),
    LOADS(setrlimit, A1),
    LOADS(setgroups, A1),
    LOADS(sched_setaffinity, A2),
    LOADS(memfd_create, A0),
    LOADS(sethostname, A0),
    LOADS(mq_open, A0 | A3),
    LOADS(mq_unlink, A0),
#else
    {UINT16_MAX, QUOIT_DSM_CALL_TOUCH_IN, 0, 0, 0, ""} /* no filter on this processor */
#endif
};
const size_t quoit_dsm_call_count = sizeof quoit_dsm_calls / sizeof quoit_dsm_calls[0];

const struct quoit_dsm_call *quoit_dsm_call_find(long number)
{
    for (size_t i = 0; i < quoit_dsm_call_count; i++) {
        if (quoit_dsm_calls[i].number == number)
            return &quoit_dsm_calls[i];
    }
    return NULL;
}
