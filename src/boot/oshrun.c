/* SPDX-License-Identifier: BSD-3-Clause */
/* The PE's side of protocol.h, used when oshrun started it. */
#include "boot/launcher.h"
#include "boot/client.h"
#include "boot/version.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_here(const char *launcher)
{
    (void)launcher;
    return getenv(QUOIT_BOOT_FD_VARIABLE) != NULL;
}

static enum quoit_status say_not_there(const char *variable, const char *what)
{
    quoit_say("%s is \"%.32s\", %s; oshrun sets it, and what stands between must leave it and the descriptor alone "
              "[Q0304]",
              QUOIT_BOOT_FD_VARIABLE, variable, what);
    return QUOIT_INVALID;
}

/* The socket that oshrun left open for this process. */
static enum quoit_status find_socket(struct quoit_boot *boot)
{
    const char *variable = getenv(QUOIT_BOOT_FD_VARIABLE);
    char *end = NULL;
    errno = 0;
    long number = strtol(variable, &end, 10);
    if (end == variable || *end || errno || number < 0 || number > INT32_MAX)
        return say_not_there(variable, "which is no descriptor");
    int type = 0;
    socklen_t bytes = sizeof type;
    if (fcntl((int)number, F_GETFD) < 0)
        return say_not_there(variable, "but that descriptor was closed before shmem_init");
    if (getsockopt((int)number, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_SEQPACKET ||
        quoit_client_open(boot, (int)number) != QUOIT_OK)
        return say_not_there(variable, "but that descriptor is no connection to oshrun");
    return QUOIT_OK;
}

static enum quoit_status join(struct quoit_boot *boot, uint64_t data_bytes)
{
    enum quoit_status status = find_socket(boot);
    if (status != QUOIT_OK)
        return status;
    struct quoit_boot_message hello = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_HELLO};
    quoit_version_put(hello.body.hello.version);
    hello.body.hello.data_bytes = data_bytes;
    status = quoit_client_join(boot, &hello);
    unsetenv(QUOIT_BOOT_FD_VARIABLE); /* programs started by this one are jobs of their own */
    return status;
}

static void leaving(struct quoit_boot *boot, uint64_t meeting_count, bool is_exit)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_LEAVING};
    message.body.leaving.meeting_count = meeting_count;
    message.body.leaving.is_exit = is_exit;
    if (quoit_client_say(boot, &message) != QUOIT_OK)
        quoit_client_leave_word(boot, QUOIT_BOOT_LEAVING, 0, meeting_count);
}

static void finalized(struct quoit_boot *boot)
{
    const struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_FINALIZED};
    if (quoit_client_say(boot, &message) != QUOIT_OK)
        quoit_client_leave_word(boot, QUOIT_BOOT_FINALIZED, 0, 0);
}

static bool end_job(struct quoit_boot *boot, int status, const char *text, uint64_t from)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_ABORT};
    message.body.abort.status = status;
    message.body.abort.from = from;
    snprintf(message.body.abort.text, sizeof message.body.abort.text, "%s", text);
    if (quoit_client_say(boot, &message) == QUOIT_OK)
        return true;
    if (boot->memory)
        quoit_client_leave_word(boot, QUOIT_BOOT_ABORT, (uint32_t)status, 0);
    return false; /* the text is told by this process */
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
