/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end of the socket. */
#include "share/message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

#define WAIT_S 1

void quoit_share_path(uint32_t uid, const char *ring, char path_out[QUOIT_SHARE_PATH_BYTES])
{
    snprintf(path_out, QUOIT_SHARE_PATH_BYTES, "@quoit-share-%u-%s", uid, ring);
}

/* Anybody may take an abstract name. */
static bool is_trusted(const char *path, int fd)
{
    struct ucred owner;
    socklen_t bytes = sizeof owner;
    return path[0] != '@' ||
           (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &bytes) == 0 && (owner.uid == geteuid() || owner.uid == 0));
}

static enum quoit_status connect_to(const char *path, int *fd_out)
{
    struct sockaddr_un address;
    socklen_t bytes = quoit_share_address(path, &address);
    const struct timeval limit = {.tv_sec = WAIT_S};
    int fd = bytes ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0)
        return QUOIT_SYSTEM;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
        connect(fd, (struct sockaddr *)&address, bytes) == 0) {
        if (is_trusted(path, fd)) {
            *fd_out = fd;
            return QUOIT_OK;
        }
        errno = ECONNREFUSED;
    }
    int error = errno;
    close(fd);
    errno = error;
    if (error == ECONNREFUSED || error == ENOENT)
        return QUOIT_GONE;
    return error == EAGAIN ? QUOIT_TIMEOUT : QUOIT_SYSTEM;
}

/* Puts what came where the owner marked it. */
static uint32_t put_fds(int *fds, uint32_t most, const int *came, uint32_t count, uint32_t at)
{
    for (uint32_t i = 0; i < most; i++)
        if (fds[i] >= 0)
            fds[i] = at < count ? came[at++] : -1;
    return at;
}

static enum quoit_status hear(int fd, uint32_t kind, struct quoit_share_message *message_out)
{
    int fds[QUOIT_SHARE_FDS_MAX];
    struct quoit_ancillary came = {.fds = fds, .fd_max = QUOIT_SHARE_FDS_MAX};
    ssize_t n = quoit_receive_with_descriptors(fd, message_out, sizeof *message_out, &came, 0);
    if (n < 0 && errno == EAGAIN)
        return QUOIT_TIMEOUT;
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return QUOIT_GONE;
    if (n < 0)
        return QUOIT_SYSTEM;
    if (!quoit_share_head_fits(&message_out->head, (size_t)n, QUOIT_SHARE_MAGIC, sizeof *message_out) ||
        message_out->head.kind != kind || came.is_truncated) {
        char own[QUOIT_SHARE_BUILD_BYTES], other[QUOIT_SHARE_BUILD_BYTES];
        const struct quoit_share_head head = quoit_share_head_make(QUOIT_SHARE_MAGIC, sizeof *message_out, kind);
        bool has_head = quoit_share_head_is(&message_out->head, (size_t)n, QUOIT_SHARE_MAGIC);
        quoit_say("the ring is of another build of Quoit: %s, and this program is of %s; use the same, or make the "
                  "ring anew: quoit ring down, quoit ring up [Q0605]",
                  quoit_share_build(has_head ? &message_out->head : NULL, other), quoit_share_build(&head, own));
        for (uint32_t i = 0; i < came.fd_count; i++)
            close(fds[i]);
        return QUOIT_INVALID;
    }
    if (kind == QUOIT_SHARE_ATTACH && message_out->head.status == QUOIT_OK) {
        struct quoit_share *share = &message_out->body.share;
        uint32_t at = put_fds(share->wire_fds, QUOIT_SHARE_HOSTS_MAX, fds, came.fd_count, 0);
        at = put_fds(share->link_fds, QUOIT_SHARE_HOSTS_MAX, fds, came.fd_count, at);
        put_fds(share->memory_fds, QUOIT_SHARE_HOSTS_MAX, fds, came.fd_count, at);
    }
    if (kind == QUOIT_SHARE_PLACE && message_out->head.status == QUOIT_OK)
        put_fds(message_out->body.place.fds, QUOIT_SHARE_NAMESPACE_COUNT, fds, came.fd_count, 0);
    return (enum quoit_status)message_out->head.status;
}

/* One request and its reply, which takes its place. */
static enum quoit_status ask(const char *path, struct quoit_share_message *message, int *connection_out)
{
    int fd;
    uint32_t kind = message->head.kind;
    enum quoit_status status = connect_to(path, &fd);
    if (status != QUOIT_OK)
        return status;
    message->head = quoit_share_head_make(QUOIT_SHARE_MAGIC, sizeof *message, kind);
    ssize_t n;
    do
        n = send(fd, message, sizeof *message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof *message)
        status = hear(fd, kind, message);
    else
        status = errno == EAGAIN ? QUOIT_TIMEOUT : QUOIT_GONE;
    if (status == QUOIT_OK && connection_out)
        *connection_out = fd;
    else
        close(fd);
    return status;
}

enum quoit_status quoit_share_ask(const char *path, struct quoit_share_list *list_out)
{
    struct quoit_share_message message = {.head.kind = QUOIT_SHARE_ASK};
    enum quoit_status status = ask(path, &message, NULL);
    if (status == QUOIT_OK)
        *list_out = message.body.list;
    return status;
}

enum quoit_status quoit_share_attach(const char *path, const struct quoit_share_request *request,
                                     struct quoit_share *share_out, int *connection_out)
{
    struct quoit_share_message message = {.head.kind = QUOIT_SHARE_ATTACH, .body.request = *request};
    enum quoit_status status = ask(path, &message, connection_out);
    if (status == QUOIT_OK)
        *share_out = message.body.share;
    return status;
}

enum quoit_status quoit_share_cut(const char *path, uint32_t link, bool is_cut)
{
    struct quoit_share_message message = {.head.kind = is_cut ? QUOIT_SHARE_CUT : QUOIT_SHARE_MEND, .body.link = link};
    return ask(path, &message, NULL);
}

enum quoit_status quoit_share_find_place(const char *path, uint32_t host, struct quoit_share_place *place_out)
{
    struct quoit_share_message message = {.head.kind = QUOIT_SHARE_PLACE, .body.link = host};
    enum quoit_status status = ask(path, &message, NULL);
    if (status == QUOIT_OK)
        *place_out = message.body.place;
    return status;
}
