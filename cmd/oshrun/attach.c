/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "boot/abstract.h"
#include "env/descriptors.h"
#include "env/process.h"
#include "service.h"

#define GENERATIONS 256 /* from a PE's process to its program */
#define NAMES_MAX   16  /* pids repeat in pid namespaces that share a network */

/* The PE from whose process the other end descends; NULL: none. */
static struct pe *pe_of(struct job *job, int fd)
{
    struct ucred peer = {0};
    struct quoit_process process;
    socklen_t bytes = sizeof peer;
    if (!quoit_abstract_is_own(fd) || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
        return NULL;
    pid_t pid = peer.pid;
    for (int i = 0; i < GENERATIONS && pid > 0; i++) {
        for (uint32_t pe = 0; pe < job->plan->pe_count; pe++)
            if (job->pes[pe].pid == pid)
                return &job->pes[pe];
        if (!quoit_process_look(pid, &process))
            return NULL;
        pid = process.parent;
    }
    return NULL;
}

/* The program sends HELLO: from now on this is the PE's socket. */
void attach_drain(struct pe *pe)
{
    char byte;
    struct job *job = pe->job;
    if (pe->second.fd < 0)
        return;
    if (recv(pe->second.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0 || pe->phase != QUOIT_PHASE_STARTED) {
        loop_close(&job->loop, &pe->second);
        return;
    }
    int fd = pe->second.fd;
    loop_pause(&job->loop, &pe->second);
    pe->second.fd = -1;
    loop_close(&job->loop, &pe->socket);
    service_watch(pe, fd);
}

static void second_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    attach_drain(watch->owner);
}

static void attach(struct job *job, int fd)
{
    const struct quoit_boot_message welcome = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_WELCOME};
    struct pe *pe = pe_of(job, fd);
    if (!pe || pe->phase != QUOIT_PHASE_STARTED) {
        close(fd); /* which the other end reports */
        return;
    }
    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)); /* HELLO follows the welcome */
    loop_close(&job->loop, &pe->second);
    pe->second = (struct watch){.fd = fd, .events = EPOLLIN, .ready = second_ready, .owner = pe};
    if (quoit_send_with_descriptors(fd, &welcome, sizeof welcome, NULL, 0, MSG_DONTWAIT) != (ssize_t)sizeof welcome ||
        !loop_add(&job->loop, &pe->second))
        loop_close(&job->loop, &pe->second);
}

static void listener_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    int fd;
    while ((fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        attach(watch->owner, fd);
}

static void listen_on(struct job *job, struct watch *watch, int fd)
{
    *watch = (struct watch){.fd = fd, .events = EPOLLIN, .ready = listener_ready, .owner = job};
    loop_add(&job->loop, watch);
}

/* The name belongs to the network namespace in which its socket was made, which a process must enter. Returns the
 * socket, or -1. */
static int listen_in(const struct quoit_share_namespaces *namespaces, const char *name)
{
    int ends[2], fd = -1;
    char byte = 0;
    struct quoit_ancillary came = {.fds = &fd, .fd_max = 1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (quoit_share_enter_namespaces(namespaces) == QUOIT_OK && quoit_abstract_listen(name, &fd) == QUOIT_OK)
            (void)quoit_send_with_descriptors(ends[1], &byte, 1, &fd, 1, 0);
        _exit(0);
    }
    close(ends[1]);
    if (pid > 0 && quoit_receive_with_descriptors(ends[0], &byte, 1, &came, 0) != 1)
        fd = -1;
    close(ends[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return fd;
}

void attach_open(struct job *job)
{
    int fd = -1;
    enum quoit_status status = QUOIT_FULL;
    snprintf(job->attach_name, sizeof job->attach_name, QUOIT_BOOT_SOCKET_NAME, (int)getpid());
    for (int i = 1; i <= NAMES_MAX && status == QUOIT_FULL; i++) {
        status = quoit_abstract_listen(job->attach_name, &fd);
        if (status == QUOIT_FULL)
            snprintf(job->attach_name, sizeof job->attach_name, QUOIT_BOOT_SOCKET_NAME "-%d", (int)getpid(), i);
    }
    if (status != QUOIT_OK) {
        quoit_log(QUOIT_LOG_INFO, "no socket for programs behind a wrapper: %s", quoit_status_text(status));
        job->attach_name[0] = '\0';
        return;
    }
    listen_on(job, &job->attach, fd);
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        struct host *host = &job->hosts[i];
        if (host->has_namespaces && (fd = listen_in(&host->namespaces, job->attach_name)) >= 0)
            listen_on(job, &host->attach, fd);
    }
}

const char *attach_name(const struct job *job)
{
    return job->attach_name;
}
