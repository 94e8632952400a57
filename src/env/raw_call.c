/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/raw_call.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
__asm__(".pushsection .text\n"
        ".globl quoit_raw_call, quoit_raw_call_after\n"
        ".hidden quoit_raw_call, quoit_raw_call_after\n"
        ".type quoit_raw_call, @function\n"
        "quoit_raw_call:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "mov %rdi, %rax\n"
        "mov %rsi, %r11\n"
        "mov (%r11), %rdi\n"
        "mov 8(%r11), %rsi\n"
        "mov 16(%r11), %rdx\n"
        "mov 24(%r11), %r10\n"
        "mov 32(%r11), %r8\n"
        "mov 40(%r11), %r9\n"
        "syscall\n"
        "quoit_raw_call_after:\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size quoit_raw_call, .-quoit_raw_call\n"
        ".popsection\n");
#else
long quoit_raw_call(long number, const uint64_t arguments[6])
{
    int saved_errno = errno;
    long result = syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    result = result < 0 ? -errno : result;
    errno = saved_errno;
    return result;
}
#endif

ssize_t quoit_raw_sendmsg(int fd, const struct msghdr *message, int flags)
{
    const uint64_t arguments[6] = {(uint64_t)fd, (uintptr_t)message, (uint64_t)flags, 0, 0, 0};
    return quoit_raw_call(SYS_sendmsg, arguments);
}

ssize_t quoit_raw_recvmsg(int fd, struct msghdr *message, int flags)
{
    const uint64_t arguments[6] = {(uint64_t)fd, (uintptr_t)message, (uint64_t)flags, 0, 0, 0};
    return quoit_raw_call(SYS_recvmsg, arguments);
}
