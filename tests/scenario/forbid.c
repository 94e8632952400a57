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

static const struct {
    const char *name;
    int number;
} calls[] = {
    {"process_vm_readv", SYS_process_vm_readv},
    {"process_vm_writev", SYS_process_vm_writev},
    {"memfd_create", SYS_memfd_create},
    {"membarrier", SYS_membarrier},
    {"userfaultfd", SYS_userfaultfd},
    {"close_range", SYS_close_range},
    {"madvise", SYS_madvise},
    {"sched_setaffinity", SYS_sched_setaffinity},
    {"fallocate", SYS_fallocate},
};

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
