/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/abstract.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096

static socklen_t make_address(const char *name, struct sockaddr_un *address_out)
{
    *address_out = (struct sockaddr_un){.sun_family = AF_UNIX};
    _Static_assert(QUOIT_ABSTRACT_NAME_BYTES < sizeof address_out->sun_path, "the null byte in front");
    size_t length = strnlen(name, QUOIT_ABSTRACT_NAME_BYTES);
    memcpy(address_out->sun_path + 1, name, length); /* a null byte in front: an abstract name, no file */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

/* Closes what failed, and keeps errno. */
static enum quoit_status refuse(int fd, enum quoit_status status)
{
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return status;
}

/* As the kernel says. */
static bool is_of(int fd, uid_t user)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == user;
}

bool quoit_abstract_is_own(int fd)
{
    return is_of(fd, geteuid());
}

bool quoit_abstract_is_admitted(int fd)
{
    return quoit_abstract_is_own(fd) || is_of(fd, 0);
}

enum quoit_status quoit_abstract_listen(const char *name, int *fd_out)
{
    struct sockaddr_un address;
    socklen_t bytes = make_address(name, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return QUOIT_SYSTEM;
    if (bind(fd, (struct sockaddr *)&address, bytes) != 0)
        return refuse(fd, errno == EADDRINUSE ? QUOIT_FULL : QUOIT_SYSTEM);
    if (listen(fd, BACKLOG) != 0)
        return refuse(fd, QUOIT_SYSTEM);
    *fd_out = fd;
    return QUOIT_OK;
}

enum quoit_status quoit_abstract_connect(const char *name, uid_t owner, int *fd_out)
{
    struct sockaddr_un address;
    socklen_t bytes = make_address(name, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), result;
    if (fd < 0)
        return QUOIT_SYSTEM;
    do
        result = connect(fd, (struct sockaddr *)&address, bytes);
    while (result != 0 && errno == EINTR);
    if (result != 0)
        return refuse(fd, errno == ECONNREFUSED ? QUOIT_GONE : QUOIT_SYSTEM);
    if (!is_of(fd, owner))
        return refuse(fd, QUOIT_INVALID);
    *fd_out = fd;
    return QUOIT_OK;
}
