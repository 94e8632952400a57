/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/watch.h"
#include "boot/agent.h"
#include "boot/apart.h"
#include "boot/ended.h"
#include "boot/exit.h"
#include "boot/protocol.h"
#include "base/log.h"
#include "env/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GRACE_NS 200000000u /* for the last output of this PE, and for a launcher that is held up */
#define ENDED_MS 1000       /* for the lowest PE to end: its connection closes before */

/* Of the process at the other end, which is alive while that is open. -1: the kernel or a container refuses. */
static int open_process(int fd)
{
    struct ucred peer = {0};
    socklen_t bytes = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.pid <= 0)
        return -1;
    return (int)syscall(SYS_pidfd_open, peer.pid, 0);
}

/* The lowest PE, which has the agent, has ended. After shmem_finalize that is expected; during shmem_init the thread
 * that waits for the agent detects it. Launchers name the process that they see end first, so each PE lets that one be
 * first. */
static void agent_gone(struct quoit_boot *boot, int lowest_fd)
{
    if (!atomic_load(&boot->has_records) || quoit_exit_has_begun(boot))
        return;
    struct quoit_host_header *header = boot->memory;
    struct quoit_pe_shared *own = quoit_memory_pe(&boot->layout, boot->memory, boot->pe - boot->layout.first_pe);
    struct quoit_pe_shared *lowest = quoit_memory_pe(&boot->layout, boot->memory, 0);
    if (atomic_load(&own->unsent_kind) == QUOIT_BOOT_FINALIZED)
        return;
    if (quoit_ended_claim(header, quoit_ended_status(lowest)))
        quoit_ended_say(boot->layout.first_pe, lowest);
    if (lowest_fd >= 0)
        poll(&(struct pollfd){.fd = lowest_fd, .events = POLLIN}, 1, ENDED_MS);
    quoit_clock_sleep_ns(GRACE_NS);
    _exit(quoit_ended_decision(header));
}

static void run(void *arg)
{
    struct quoit_boot *boot = arg;
    struct quoit_boot_message message;
    int fd = boot->watch_fd, lowest_fd = open_process(fd);
    for (;;) {
        ssize_t n = recv(fd, &message, sizeof message, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        if (n == (ssize_t)sizeof message && message.magic == QUOIT_BOOT_MAGIC && message.kind == QUOIT_BOOT_END &&
            !quoit_exit_has_begun(boot))
            _exit(message.body.end.status);
    }
    agent_gone(boot, lowest_fd);
    if (lowest_fd >= 0)
        close(lowest_fd);
    close(fd);
}

enum quoit_status quoit_watch_start(struct quoit_boot *boot, const char *name)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_WATCH};
    int fd = -1, is_shared = 0;
    message.body.hello.pe = boot->exchange.rank;
    enum quoit_status status = quoit_agent_connect(name, &fd);
    if (status == QUOIT_OK && send(fd, &message, sizeof message, MSG_NOSIGNAL) != (ssize_t)sizeof message)
        status = QUOIT_GONE;
    if (status == QUOIT_OK) {
        const int fds[] = {boot->exchange.fd, fd};
        boot->watch_fd = fd;
        status = quoit_apart_start(run, boot, fds, 2, &is_shared);
        if (status != QUOIT_OK)
            quoit_say("cannot start a thread: %s [Q0312]", strerror(errno));
        if (status == QUOIT_OK && is_shared)
            return QUOIT_OK;
    }
    if (fd >= 0)
        close(fd);
    return status == QUOIT_GONE ? QUOIT_OK : status; /* that the agent has gone is reported by the caller's next step */
}
