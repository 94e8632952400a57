/* SPDX-License-Identifier: BSD-3-Clause */
/* The PE's side of protocol.h, used when oshrun started it. */
#include "boot/heap_default.h"
#include "boot/launcher.h"
#include "boot/client.h"
#include "boot/abstract.h"
#include "base/log.h"
#include "env/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GENERATIONS 64 /* of processes between oshrun and a PE */

static bool is_here(const char *launcher)
{
    (void)launcher;
    return getenv(QUOIT_BOOT_FD_VARIABLE) != NULL || getenv(QUOIT_BOOT_SOCKET_VARIABLE) != NULL;
}

static enum quoit_status report_not_there(const char *variable, const char *what)
{
    quoit_say("%s is \"%.32s\", %s; oshrun sets it, and what stands between must leave it and the descriptor alone "
              "[Q0304]",
              QUOIT_BOOT_FD_VARIABLE, variable, what);
    return QUOIT_INVALID;
}

/* The socket that oshrun left open for this process. `problem_out`: why there is none. */
static bool find_socket(struct quoit_boot *boot, const char **problem_out)
{
    const char *variable = getenv(QUOIT_BOOT_FD_VARIABLE);
    char *end = NULL;
    int type = 0;
    socklen_t bytes = sizeof type;
    errno = 0;
    long number = variable ? strtol(variable, &end, 10) : -1;
    if (!variable || end == variable || *end || errno || number < 0 || number > INT32_MAX)
        *problem_out = "which is no descriptor";
    else if (fcntl((int)number, F_GETFD) < 0)
        *problem_out = "but that descriptor was closed before shmem_init";
    else if (getsockopt((int)number, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_SEQPACKET ||
             quoit_client_open(boot, (int)number) != QUOIT_OK)
        *problem_out = "but that descriptor is no connection to oshrun";
    return boot->socket_fd >= 0;
}

/* By the name on which oshrun listens too. GONE: nobody listens there, or this process is not expected. */
static enum quoit_status attach(struct quoit_boot *boot, const char *name)
{
    int fd = -1;
    enum quoit_status status = quoit_abstract_connect(name, geteuid(), &fd);
    if (status == QUOIT_OK)
        status = quoit_client_open(boot, fd);
    if (status == QUOIT_OK)
        status = quoit_client_receive_welcome(boot);
    if (status == QUOIT_OK)
        return QUOIT_OK;
    if (fd >= 0)
        close(fd);
    boot->socket_fd = -1;
    return status;
}

static enum quoit_status connect_to_oshrun(struct quoit_boot *boot)
{
    const char *problem = "", *variable = getenv(QUOIT_BOOT_FD_VARIABLE), *name = getenv(QUOIT_BOOT_SOCKET_VARIABLE);
    if (find_socket(boot, &problem))
        return QUOIT_OK;
    if (!name || !name[0])
        return report_not_there(variable ? variable : "", problem);
    enum quoit_status status = attach(boot, name);
    if (status == QUOIT_GONE)
        quoit_say(
            "oshrun does not take this process for a PE: it is not a descendant of one, or the PE has had a program "
            "already [Q0323]\n"
            "  what stands between has closed the descriptor %s=%.32s; to run one PE alone: unset %s %s",
            QUOIT_BOOT_FD_VARIABLE, variable ? variable : "", QUOIT_BOOT_FD_VARIABLE, QUOIT_BOOT_SOCKET_VARIABLE);
    else if (status != QUOIT_OK)
        return report_not_there(variable ? variable : "", problem);
    return status == QUOIT_OK ? QUOIT_OK : QUOIT_INVALID;
}

enum quoit_status quoit_boot_refuse_stripped(void)
{
    struct quoit_process process;
    struct quoit_boot boot = {.socket_fd = -1};
    char name[QUOIT_ABSTRACT_NAME_BYTES];
    enum quoit_status status = QUOIT_GONE;
    pid_t pid = getppid();
    for (int i = 0; i < GENERATIONS && pid > 1 && status != QUOIT_OK && quoit_process_look(pid, &process); i++) {
        snprintf(name, sizeof name, QUOIT_BOOT_SOCKET_NAME, (int)pid);
        if (quoit_process_is_named(pid, QUOIT_BOOT_JOB_PROCESS))
            status = attach(&boot, name);
        pid = process.parent;
    }
    if (status != QUOIT_OK)
        return QUOIT_OK;
    close(boot.socket_fd);
    quoit_say(
        "oshrun started this program, but what stands between has removed %s and %s from its environment: this would "
        "be a job of one PE [Q0324]\n"
        "  leave them there (env -i: name them; sudo: -E); to run one PE alone: QUOIT_LAUNCHER=none",
        QUOIT_BOOT_FD_VARIABLE, QUOIT_BOOT_SOCKET_VARIABLE);
    return QUOIT_INVALID;
}

static enum quoit_status join(struct quoit_boot *boot, uint64_t data_bytes)
{
    enum quoit_status status = connect_to_oshrun(boot);
    if (status != QUOIT_OK)
        return status;
    struct quoit_boot_message hello = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_HELLO};
    hello.body.hello.version = *quoit_version();
    hello.body.hello.data_bytes = data_bytes;
    hello.body.hello.heap_most_bytes = quoit_heap_most_bytes();
    status = quoit_client_join(boot, &hello);
    unsetenv(QUOIT_BOOT_SOCKET_VARIABLE);
    unsetenv(QUOIT_BOOT_FD_VARIABLE); /* programs started by this one are jobs of their own */
    return status;
}

static void leaving(struct quoit_boot *boot, uint64_t meeting_count, bool is_exit)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_LEAVING};
    message.body.leaving.meeting_count = meeting_count;
    message.body.leaving.is_exit = is_exit;
    if (quoit_client_send(boot, &message) != QUOIT_OK)
        quoit_client_leave_word(boot, QUOIT_BOOT_LEAVING, is_exit, meeting_count);
}

static void finalized(struct quoit_boot *boot)
{
    const struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_FINALIZED};
    if (quoit_client_send(boot, &message) != QUOIT_OK)
        quoit_client_leave_word(boot, QUOIT_BOOT_FINALIZED, 0, 0);
}

static bool end_job(struct quoit_boot *boot, int status, const char *text, uint64_t from)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_ABORT};
    message.body.abort.status = status;
    message.body.abort.from = from;
    snprintf(message.body.abort.text, sizeof message.body.abort.text, "%s", text);
    if (quoit_client_send(boot, &message) == QUOIT_OK)
        return true;
    if (boot->memory)
        quoit_client_leave_word(boot, QUOIT_BOOT_ABORT, (uint32_t)status, 0);
    return false; /* this process prints the text */
}

const struct quoit_boot_ops quoit_boot_oshrun = {
    .name = "oshrun",
    .is_here = is_here,
    .join = join,
    .barrier = quoit_client_barrier,
    .leaving = leaving,
    .finalized = finalized,
    .abort = end_job,
};
