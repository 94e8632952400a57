/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/ports.h"
#include "net/address.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns what follows the number, or NULL: it is no port. */
static const char *read_port(const char *text, uint16_t *port_out)
{
    size_t length = strspn(text, "0123456789");
    unsigned long port = length > 0 && length <= 5 ? strtoul(text, NULL, 10) : 0;
    *port_out = (uint16_t)port;
    return port > 0 && port <= UINT16_MAX ? text + length : NULL;
}

bool quoit_ports_read(const char *text, struct quoit_ports *ports_out)
{
    *ports_out = (struct quoit_ports){0};
    if (!text || text[0] == '\0')
        return true;
    const char *rest = read_port(text, &ports_out->low);
    ports_out->high = ports_out->low;
    if (rest && *rest == '-')
        rest = read_port(rest + 1, &ports_out->high);
    return rest && *rest == '\0' && ports_out->low <= ports_out->high;
}

static int listen_at(struct sockaddr_storage *address, uint16_t port, int backlog)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    socklen_t bytes = quoit_address_bytes(address);
    const int yes = 1;
    if (address->ss_family == AF_INET)
        v4->sin_port = htons(port);
    else
        v6->sin6_port = htons(port);
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if ((port == 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0) &&
        bind(fd, (const struct sockaddr *)address, bytes) == 0 && listen(fd, backlog) == 0 &&
        getsockname(fd, (struct sockaddr *)address, &bytes) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Many processes of a machine choose at once, so each begins somewhere else. SO_REUSEADDR, since connections of an
 * earlier job linger for a minute on ports of which there are few; with it two sockets may be bound to one port, of
 * which the second cannot listen, nor be bound to another one: each try has a socket of its own. */
int quoit_ports_listen(struct sockaddr_storage *address, struct quoit_ports ports, int backlog)
{
    uint32_t count = (uint32_t)ports.high - ports.low + 1, first = 0;
    if (ports.low == 0)
        return listen_at(address, 0, backlog);
    if (getrandom(&first, sizeof first, 0) != (ssize_t)sizeof first)
        first = 0;
    for (uint32_t i = 0; i < count; i++) {
        int fd = listen_at(address, (uint16_t)(ports.low + (first % count + i) % count), backlog);
        if (fd >= 0 || errno != EADDRINUSE)
            return fd;
    }
    return -1;
}
