/* SPDX-License-Identifier: BSD-3-Clause */
/* forbid CALL[,CALL]... COMMAND: runs a command under a filter that refuses system calls with EPERM, as many containers
 * do; "errno=N" in the list sets another error. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RULES_MAX 32

#define CALL(name)                                                                                                     \
    {                                                                                                                  \
#name, SYS_##name                                                                                              \
    }
static const struct {
    const char *name;
    int number;
} calls[] = {
    CALL(accept4),
    CALL(access),
    CALL(bind),
    CALL(bpf),
    CALL(clock_gettime),
    CALL(clock_nanosleep),
    CALL(clone),
    CALL(clone3),
    CALL(close_range),
    CALL(connect),
    CALL(dup2),
    CALL(dup3),
    CALL(epoll_create1),
    CALL(epoll_ctl),
    CALL(epoll_pwait),
    CALL(epoll_wait),
    CALL(eventfd2),
    CALL(execve),
    CALL(faccessat2),
    CALL(fallocate),
    CALL(fcntl),
    CALL(fstat),
    CALL(ftruncate),
    CALL(futex),
    CALL(get_mempolicy),
    CALL(getcpu),
    CALL(getdents64),
    CALL(getpeername),
    CALL(getpgid),
    CALL(getpgrp),
    CALL(getppid),
    CALL(getrandom),
    CALL(getrlimit),
    CALL(getsockname),
    CALL(getsockopt),
    CALL(getuid),
    CALL(geteuid),
    CALL(ioctl),
    CALL(io_uring_setup),
    CALL(kill),
    CALL(listen),
    CALL(lseek),
    CALL(madvise),
    CALL(mbind),
    CALL(membarrier),
    CALL(memfd_create),
    CALL(mincore),
    CALL(mlock),
    CALL(mremap),
    CALL(msync),
    CALL(munmap),
    CALL(nanosleep),
    CALL(newfstatat),
    CALL(pidfd_getfd),
    CALL(pidfd_open),
    CALL(pidfd_send_signal),
    CALL(pipe2),
    CALL(poll),
    CALL(ppoll),
    CALL(prctl),
    CALL(pread64),
    CALL(prlimit64),
    CALL(process_vm_readv),
    CALL(process_vm_writev),
    CALL(pselect6),
    CALL(ptrace),
    CALL(pwrite64),
    CALL(readlink),
    CALL(readlinkat),
    CALL(recvfrom),
    CALL(recvmsg),
    CALL(rseq),
    CALL(rt_sigaction),
    CALL(rt_sigpending),
    CALL(rt_sigprocmask),
    CALL(rt_sigtimedwait),
    CALL(sched_getaffinity),
    CALL(sched_setaffinity),
    CALL(sched_setscheduler),
    CALL(sched_yield),
    CALL(sendmsg),
    CALL(sendto),
    CALL(set_robust_list),
    CALL(setpgid),
    CALL(setpriority),
    CALL(setrlimit),
    CALL(setsid),
    CALL(setsockopt),
    CALL(shutdown),
    CALL(sigaltstack),
    CALL(signalfd4),
    CALL(socket),
    CALL(socketpair),
    CALL(statx),
    CALL(sysinfo),
    CALL(tgkill),
    CALL(timer_create),
    CALL(timerfd_create),
    CALL(timerfd_settime),
    CALL(uname),
    CALL(unlink),
    CALL(unshare),
    CALL(userfaultfd),
    CALL(vfork),
    CALL(wait4),
    CALL(waitid),
    CALL(writev),
};
#undef CALL

static int number_of(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].number;
    fprintf(stderr, "forbid: %s is not in the list\n", name);
    exit(99);
}

/* Two rules per call: compare its number, and refuse; the comparison skips the refusal if the number differs. */
static void forbid(char *names)
{
    struct sock_filter rules[RULES_MAX] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    struct sock_fprog program = {.len = 1, .filter = rules};
    unsigned error = EPERM;
    for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
        if (strncmp(name, "errno=", 6) == 0) {
            error = (unsigned)atoi(name + 6);
            continue;
        }
        rules[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number_of(name), 0, 1);
        rules[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    }
    rules[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("forbid");
        exit(99);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 99;
    forbid(argv[1]);
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 99;
}
