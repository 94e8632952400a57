/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/address.h"

#include <netinet/in.h>
#include <string.h>

uint32_t quoit_address_bytes(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

struct quoit_wire_address quoit_address_tell(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    struct quoit_wire_address told = {.family = address->ss_family};
    if (address->ss_family == AF_INET) {
        told.port = v4->sin_port;
        memcpy(told.bytes, &v4->sin_addr, sizeof v4->sin_addr);
    } else if (address->ss_family == AF_INET6) {
        told.port = v6->sin6_port;
        told.scope = v6->sin6_scope_id;
        memcpy(told.bytes, &v6->sin6_addr, sizeof v6->sin6_addr);
    }
    return told;
}

bool quoit_address_read(const struct quoit_wire_address *told, const struct sockaddr_storage *own,
                        struct sockaddr_storage *address_out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address_out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address_out;
    memset(address_out, 0, sizeof *address_out);
    address_out->ss_family = told->family;
    if (told->family == AF_INET) {
        v4->sin_port = told->port;
        memcpy(&v4->sin_addr, told->bytes, sizeof v4->sin_addr);
        return true;
    }
    v6->sin6_port = told->port;
    memcpy(&v6->sin6_addr, told->bytes, sizeof v6->sin6_addr);
    if (told->scope != 0 && own->ss_family == AF_INET6)
        v6->sin6_scope_id = ((const struct sockaddr_in6 *)own)->sin6_scope_id;
    return told->family == AF_INET6;
}
