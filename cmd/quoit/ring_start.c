/* SPDX-License-Identifier: BSD-3-Clause */
/* The keeper of an emulated ring as a program of its own (boot/program.h). It and its hosts, which it forks, outlive
 * the command by days, so they have nothing of it: no descriptor, thread, preloaded library or signal mask. */
#include "ring.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "boot/program.h"
#include "env/descriptors.h"

/* With the socket that has the ring's name. */
struct start {
    struct quoit_share_head head;
    struct ring_plan plan;
};

bool ring_keeper_start(const struct ring_plan *plan, int name_fd)
{
    const struct start start = {.head = quoit_share_head_make(RING_MAGIC, sizeof start, RING_START), .plan = *plan};
    int fd;
    pid_t pid;
    char word = 0;
    int error = quoit_program_spawn(NULL, RING_KEEPER_OPTION, &fd, &pid);
    if (error != 0) {
        close(name_fd);
        quoit_say("cannot start the keeper of the ring \"%s\", quoit " RING_KEEPER_OPTION ": %s [Q0603]", plan->name,
                  strerror(error));
        return false;
    }
    (void)quoit_send_with_descriptors(fd, &start, sizeof start, &name_fd, 1, 0); /* it may have ended: seen below */
    close(name_fd);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) /* it forks (quoit_program_leave_starter) */
        ;
    struct quoit_ancillary nothing = {.fd_max = 0};
    ssize_t bytes = quoit_receive_with_descriptors(fd, &word, sizeof word, &nothing, 0);
    close(fd);
    if (bytes != 1)
        quoit_say(
            "the keeper of the ring \"%s\" ended before the ring was up: somebody killed it, or the kernel did for "
            "want of memory (dmesg) [Q0603]",
            plan->name);
    return bytes == 1 && word == RING_IS_UP;
}

int ring_keeper_serve(void)
{
    struct start start;
    int name_fd = -1;
    struct quoit_ancillary came = {.fds = &name_fd, .fd_max = 1};
    if (!quoit_program_has_starter(RING_KEEPER_OPTION))
        return 2;
    if (!quoit_program_leave_starter()) {
        const char word = RING_HAS_FAILED;
        quoit_say("cannot start the keeper of the ring: %s (ulimit -u, or a control group's pids) [Q0603]",
                  strerror(errno));
        (void)send(QUOIT_PROGRAM_FD, &word, sizeof word, MSG_NOSIGNAL);
        return 1;
    }
    ssize_t bytes = quoit_receive_with_descriptors(QUOIT_PROGRAM_FD, &start, sizeof start, &came, 0);
    if (bytes < 0 || !quoit_share_head_matches(&start.head, (size_t)bytes, RING_MAGIC, sizeof start) ||
        came.fd_count != 1 || chdir("/") != 0)
        return 1;
    return ring_keeper_run(&start.plan, name_fd, QUOIT_PROGRAM_FD);
}
