// SPDX-License-Identifier: BSD-3-Clause
#include "local_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WAITING_MAX 8

static int open_socket(const char *path, bool listens)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t length = strlen(path);
    if (fd < 0)
        return -1;
    if (length >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        goto close_socket;
    }
    memcpy(address.sun_path, path, length);
    if (listens)
        unlink(path);
    if ((listens ? bind : connect)(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        (!listens || listen(fd, WAITING_MAX) == 0))
        return fd;
close_socket:
    close(fd);
    return -1;
}

int local_socket_listen(const char *path)
{
    return open_socket(path, true);
}

int local_socket_connect(const char *path)
{
    return open_socket(path, false);
}
