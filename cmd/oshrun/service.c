/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

#define ABORT_GRACE_NS 200000000u /* for the same fate of other PEs, and for their output */

static void take_hello(struct pe *pe, const struct quoit_boot_message *message)
{
    char link[64], path[PATH_MAX];
    struct job *job = pe->job;
    pe->phase = PE_HELLO;
    pe->program_pid = (pid_t)message->body.hello.pid;
    snprintf(link, sizeof link, "/proc/%d/exe", pe->program_pid);
    atomic_store(&job->guard.entries[pe->index].program, pe->program_pid);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0)
        pe->executable = strndup(path, (size_t)length);
    if (message->body.hello.data_bytes > job->config.data_bytes)
        job->config.data_bytes = message->body.hello.data_bytes;
    job->hello_count++;
}

static void take_abort(struct pe *pe, const struct quoit_boot_message *message)
{
    char text[QUOIT_BOOT_TEXT_BYTES];
    snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, message->body.abort.text);
    if (text[0] && !pe->abort_text)
        pe->abort_text = strdup(text);
    int status = message->body.abort.status & 0xff;
    if (text[0])
        end_begin(pe->job, END_ABORTED, status, pe->index, ABORT_GRACE_NS);
    else
        end_begin(pe->job, END_GLOBAL_EXIT, status, pe->index, 0);
}

/* A message out of turn is a program that speaks another version, or none of ours. */
static void take_message(struct pe *pe, const struct quoit_boot_message *message)
{
    if (message->kind == QUOIT_BOOT_HELLO && pe->phase == PE_STARTED) {
        take_hello(pe, message);
    } else if (message->kind == QUOIT_BOOT_READY && (pe->phase == PE_LAID_OUT || pe->phase == PE_FINALIZED)) {
        pe->phase = PE_READY;
        pe->job->ready_count++;
    } else if (message->kind == QUOIT_BOOT_FINALIZED && pe->phase == PE_RUNNING) {
        pe->phase = PE_FINALIZED;
    } else if (message->kind == QUOIT_BOOT_ABORT) {
        take_abort(pe, message);
    } else {
        quoit_say("PE %u said something out of turn (%u): was it built with another version of Quoit? [Q0214]",
                  pe->index, message->kind);
        end_begin(pe->job, END_CANNOT_START, STATUS_CANNOT_START, pe->index, 0);
    }
}

void service_drain(struct pe *pe)
{
    while (pe->socket.fd >= 0) {
        struct quoit_boot_message message;
        ssize_t n = recv(pe->socket.fd, &message, sizeof message, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            atomic_store(&pe->job->guard.entries[pe->index].program, 0);
            loop_close(&pe->job->loop, &pe->socket);
            return;
        }
        if (n != (ssize_t)sizeof message || message.magic != QUOIT_BOOT_MAGIC)
            message.kind = 0;
        take_message(pe, &message);
    }
}

static void socket_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct pe *pe = watch->owner;
    service_drain(pe);
    service_step(pe->job);
}

void service_watch(struct pe *pe, int socket_fd)
{
    pe->socket = (struct watch){.fd = socket_fd, .events = EPOLLIN, .ready = socket_ready, .owner = pe};
    loop_add(&pe->job->loop, &pe->socket);
}

/* Sends one message, with descriptors. A PE that has gone is noticed elsewhere. */
static void say(struct pe *pe, const struct quoit_boot_message *message, const int *fds, size_t fd_count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * QUOIT_BOOT_FDS_MAX)];
    } control;
    struct iovec part = {.iov_base = (void *)message, .iov_len = sizeof *message};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count) {
        memset(&control, 0, sizeof control);
        packet.msg_control = control.bytes;
        packet.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&packet);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * fd_count);
    }
    ssize_t n;
    do
        n = pe->socket.fd < 0 ? 0 : sendmsg(pe->socket.fd, &packet, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
}

static void say_layout(struct pe *pe)
{
    struct job *job = pe->job;
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_LAYOUT};
    message.body.layout.job = job->config;
    message.body.layout.pe = pe->index;
    message.body.layout.host = pe->host;
    message.body.layout.policy = job->policy;
    message.body.layout.knobs = job->knobs;
    int fds[QUOIT_BOOT_FDS_MAX] = {job->hosts[pe->host].memory_fd};
    size_t fd_count = 1;
    for (int side = 0; side < QUOIT_SIDE_COUNT && job->plan->host_count > 1; side++) {
        fds[fd_count++] = hosts_link_fd(job, pe->host, (enum quoit_side)side);
        fds[fd_count++] = job->hosts[hosts_neighbour(job, pe->host, (enum quoit_side)side)].memory_fd;
    }
    say(pe, &message, fds, fd_count);
    pe->phase = PE_LAID_OUT;
}

static bool proxies_are_ready(const struct job *job)
{
    for (uint32_t i = 0; i < job->plan->host_count && job->plan->host_count > 1; i++)
        if (!job->hosts[i].is_ready)
            return false;
    return true;
}

void service_step(struct job *job)
{
    uint32_t pe_count = job->plan->pe_count;
    if (job->end.phase != ENDING_NOT)
        return;
    bool is_again = job->is_going && job->ready_count > 0;
    if ((job->hello_count > 0 && job->quiet_exit_count > 0) || (is_again && job->through_count > 0)) {
        end_begin(job, END_NO_INIT, STATUS_CANNOT_START, 0, ABORT_GRACE_NS);
        return;
    }
    if (job->hello_count == pe_count && !job->has_layout) {
        if (!hosts_start(job, job->config.data_bytes)) {
            end_begin(job, END_CANNOT_START, STATUS_CANNOT_START, 0, 0);
            return;
        }
        job->has_layout = true;
        for (uint32_t i = 0; i < pe_count; i++)
            say_layout(&job->pes[i]);
    }
    if (job->ready_count == pe_count && proxies_are_ready(job)) {
        const struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_GO};
        job->is_going = true;
        job->ready_count = 0;
        for (uint32_t i = 0; i < pe_count; i++) {
            job->pes[i].phase = PE_RUNNING;
            say(&job->pes[i], &message, NULL, 0);
        }
    }
}
