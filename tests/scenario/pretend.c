/* SPDX-License-Identifier: BSD-3-Clause */
/* pretend impostor PID: sends HELLO to oshrun in the name of another process, which only root may do, and waits.
 * pretend escape: ends the job with control characters in the text. pretend huge: sends HELLO with more variables than
 * any memory holds. pretend usr1: a PE that reports SIGUSR1 and then ends. */
#include <poll.h>
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/protocol.h"

static volatile sig_atomic_t is_signalled;

static void on_signal(int number)
{
    (void)number;
    is_signalled = 1;
}

static int say_hello_as(pid_t pid)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_HELLO};
    message.body.hello.version = (struct quoit_version){"0.0.0", QUOIT_PROTOCOL_OLDEST, QUOIT_PROTOCOL_NEWEST};
    struct ucred sender = {.pid = pid, .uid = getuid(), .gid = getgid()};
    struct iovec part = {&message, sizeof message};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    memset(&control, 0, sizeof control);
    control.header =
        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_CREDENTIALS, .cmsg_len = CMSG_LEN(sizeof sender)};
    memcpy(CMSG_DATA(&control.header), &sender, sizeof sender);
    return sendmsg(atoi(getenv(QUOIT_BOOT_FD_VARIABLE)), &packet, 0) == (ssize_t)sizeof message ? 0 : 77;
}

/* Ends the job with a text of terminal control sequences. */
static int say_with_escapes(void)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_ABORT};
    message.body.abort.status = 3;
    snprintf(message.body.abort.text, sizeof message.body.abort.text, "\033[31mred\033]0;title\a \302\233 end");
    ssize_t n = send(atoi(getenv(QUOIT_BOOT_FD_VARIABLE)), &message, sizeof message, 0);
    return n == (ssize_t)sizeof message ? 3 : 77;
}

static int say_huge(void)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_HELLO};
    message.body.hello.version = (struct quoit_version){"0.0.0", QUOIT_PROTOCOL_OLDEST, QUOIT_PROTOCOL_NEWEST};
    message.body.hello.data_bytes = 1ull << 63;
    if (send(atoi(getenv(QUOIT_BOOT_FD_VARIABLE)), &message, sizeof message, 0) != (ssize_t)sizeof message)
        return 77;
    pause();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "huge") == 0)
        return say_huge();
    if (argc == 3 && strcmp(argv[1], "impostor") == 0) {
        int status = say_hello_as((pid_t)atoi(argv[2]));
        printf("said %d\n", status);
        fflush(stdout);
        if (status == 0)
            pause();
        return status;
    }
    if (argc == 2 && strcmp(argv[1], "escape") == 0)
        return say_with_escapes();
    signal(SIGUSR1, on_signal);
    shmem_init();
    printf("ready\n");
    fflush(stdout);
    while (!is_signalled)
        poll(NULL, 0, 10);
    printf("signalled\n");
    shmem_finalize();
    return 0;
}
