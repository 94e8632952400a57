/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/client.h"
#include "boot/launcher.h"
#include "boot/version.h"
#include "base/log.h"
#include "env/descriptors.h"
#include "env/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum quoit_status quoit_client_open(struct quoit_boot *boot, int fd)
{
    struct stat stat;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fstat(fd, &stat) != 0)
        return QUOIT_SYSTEM;
    boot->socket_fd = fd;
    boot->socket_inode = stat.st_ino;
    return QUOIT_OK;
}

static bool has_socket(const struct quoit_boot *boot)
{
    struct stat stat;
    return boot->socket_fd >= 0 && fstat(boot->socket_fd, &stat) == 0 && S_ISSOCK(stat.st_mode) &&
           stat.st_ino == boot->socket_inode;
}

enum quoit_status quoit_client_send(const struct quoit_boot *boot, const struct quoit_boot_message *message)
{
    while (has_socket(boot)) {
        ssize_t n = send(boot->socket_fd, message, sizeof *message, MSG_NOSIGNAL);
        if (n == (ssize_t)sizeof *message)
            return QUOIT_OK;
        if (n < 0 && errno == EINTR)
            continue;
        break;
    }
    return QUOIT_GONE;
}

/* That the launcher is of another version of Quoit: of both sides the version and the file. */
static void report_other_version(const struct quoit_boot *boot, const struct quoit_boot_message *message,
                                 size_t byte_count)
{
    char version[QUOIT_VERSION_TEXT_BYTES], library[PATH_MAX], link[64], launcher[PATH_MAX] = "";
    struct ucred peer = {0};
    socklen_t bytes = sizeof peer;
    quoit_version_get(message, byte_count, version);
    (void)quoit_own_file(library);
    if (getsockopt(boot->socket_fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0) {
        snprintf(link, sizeof link, "/proc/%d/exe", peer.pid);
        ssize_t length = readlink(link, launcher, sizeof launcher - 1);
        launcher[length > 0 ? length : 0] = '\0';
    }
    quoit_say(
        "the launcher is Quoit of %s (%s), which this program's library of version %s (%s) does not understand "
        "[Q0303]\n  start the program with the oshrun that was installed with its library, or build it again with "
        "the oshcc beside that launcher",
        version, launcher[0] ? launcher : "of unknown path", quoit_version()->text, library);
}

/* Receives one message of `kind` and up to QUOIT_BOOT_FDS_MAX descriptors. */
static enum quoit_status receive_of_launcher(const struct quoit_boot *boot, uint32_t kind,
                                             struct quoit_boot_message *message_out, int *fds_out,
                                             uint32_t *fd_count_out)
{
    struct quoit_ancillary came = {.fds = fds_out, .fd_max = fds_out ? QUOIT_BOOT_FDS_MAX : 0};
    ssize_t n = quoit_receive_with_descriptors(boot->socket_fd, message_out, sizeof *message_out, &came, 0);
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return QUOIT_GONE;
    bool is_whole = n == (ssize_t)sizeof *message_out && message_out->magic == QUOIT_BOOT_MAGIC &&
                    message_out->kind == kind &&
                    (kind != QUOIT_BOOT_LAYOUT || quoit_boot_fits(message_out, sizeof *message_out));
    if (!is_whole) {
        report_other_version(boot, message_out, n > 0 ? (size_t)n : 0);
        return QUOIT_INVALID;
    }
    if (fd_count_out)
        *fd_count_out = came.fd_count;
    return QUOIT_OK;
}

/* The endpoints of a ring's ports, with the file descriptors that came for them. */
static enum quoit_status take_ends(struct quoit_boot *boot, const struct quoit_boot_message *message, const int *fds,
                                   uint32_t fd_count)
{
    char name[QUOIT_BOOT_NAME_BYTES];
    uint32_t taken = 1;
    memcpy(name, message->body.layout.driver, sizeof name);
    name[sizeof name - 1] = '\0';
    if (!quoit_layout_has_links(&boot->layout))
        return fd_count == taken ? QUOIT_OK : QUOIT_INVALID;
    boot->driver = quoit_port_driver_find(name);
    if (!boot->driver) {
        quoit_say("the launcher chose the port driver %s, which this program's library does not have [Q0303]", name);
        return QUOIT_UNSUPPORTED;
    }
    for (uint32_t side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_port_endpoint *end = &boot->ends[side];
        *end = message->body.layout.ends[side];
        if (end->fd_count > QUOIT_PORT_ENDPOINT_FDS || end->fd_count > fd_count - taken)
            return QUOIT_INVALID;
        memcpy(end->fds, fds + taken, end->fd_count * sizeof fds[0]);
        taken += end->fd_count;
    }
    return taken == fd_count ? QUOIT_OK : QUOIT_INVALID;
}

static enum quoit_status take_layout(struct quoit_boot *boot, const struct quoit_boot_message *message, const int *fds,
                                     uint32_t fd_count)
{
    const struct quoit_job_config *job = &message->body.layout.job;
    enum quoit_status status = quoit_layout_make(job, message->body.layout.host, &boot->layout);
    if (status != QUOIT_OK)
        return status;
    if (message->body.layout.pe - boot->layout.first_pe >= boot->layout.local_count)
        return QUOIT_INVALID;
    boot->pe = message->body.layout.pe;
    boot->host = message->body.layout.host;
    if (fd_count == 0)
        return QUOIT_INVALID;
    boot->memory_fd = fds[0];
    status = take_ends(boot, message, fds, fd_count);
    if (status == QUOIT_OK && quoit_boot_map(boot) != QUOIT_OK)
        return quoit_boot_report_unmapped(boot, errno);
    return status;
}

enum quoit_status quoit_client_join(struct quoit_boot *boot, const struct quoit_boot_message *hello)
{
    struct quoit_boot_message message;
    int fds[QUOIT_BOOT_FDS_MAX];
    uint32_t fd_count = 0;
    enum quoit_status status = quoit_client_send(boot, hello);
    if (status == QUOIT_OK)
        status = receive_of_launcher(boot, QUOIT_BOOT_LAYOUT, &message, fds, &fd_count);
    return status == QUOIT_OK ? take_layout(boot, &message, fds, fd_count) : status;
}

enum quoit_status quoit_client_barrier(struct quoit_boot *boot)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_READY};
    enum quoit_status status = quoit_client_send(boot, &message);
    if (status != QUOIT_OK)
        return status;
    return receive_of_launcher(boot, QUOIT_BOOT_GO, &message, NULL, NULL);
}

enum quoit_status quoit_client_receive_welcome(const struct quoit_boot *boot)
{
    struct quoit_boot_message message;
    return receive_of_launcher(boot, QUOIT_BOOT_WELCOME, &message, NULL, NULL);
}

enum quoit_status quoit_client_receive_contact(const struct quoit_boot *boot, struct quoit_boot_message *message_out)
{
    return receive_of_launcher(boot, QUOIT_BOOT_CONTACT, message_out, NULL, NULL);
}

/* A program that closes every descriptor, as daemons do, closes the socket too: what it must send is left in the record
 * of the PE. */
void quoit_client_leave_word(struct quoit_boot *boot, enum quoit_boot_kind kind, uint32_t status,
                             uint64_t meeting_count)
{
    struct quoit_pe_shared *shared = quoit_memory_pe(&boot->layout, boot->memory, boot->pe - boot->layout.first_pe);
    if (kind != QUOIT_BOOT_FINALIZED) /* how it has left stays there */
        shared->unsent_status = status;
    if (kind == QUOIT_BOOT_LEAVING)
        shared->unsent_meetings = meeting_count;
    atomic_store_explicit(&shared->unsent_kind, kind, memory_order_release); /* pairs with read_word in the launcher */
}
