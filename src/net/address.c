/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/address.h"

#include <arpa/inet.h>
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

bool quoit_address_read(const struct quoit_wire_address *told, uint32_t scope, struct sockaddr_storage *address_out)
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
    if (told->scope != 0)
        v6->sin6_scope_id = scope;
    return told->family == AF_INET6;
}

void quoit_address_print(const struct quoit_wire_address *address, char text_out[QUOIT_ADDRESS_TEXT_BYTES])
{
    if (!inet_ntop(address->family, address->bytes, text_out, QUOIT_ADDRESS_TEXT_BYTES))
        text_out[0] = '\0';
}

bool quoit_address_parse(const char *text, struct quoit_wire_address *address_out)
{
    static const uint16_t families[] = {AF_INET, AF_INET6};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        *address_out = (struct quoit_wire_address){.family = families[i]};
        if (inet_pton(families[i], text, address_out->bytes) == 1)
            return true;
    }
    *address_out = (struct quoit_wire_address){0};
    return false;
}

uint32_t quoit_address_bits(const struct quoit_wire_address *address)
{
    return address->family == AF_INET ? 32 : 128;
}

bool quoit_address_agrees(const struct quoit_wire_address *a, const struct quoit_wire_address *b, uint32_t bits)
{
    uint32_t whole = bits / 8, rest = bits % 8;
    if (a->family != b->family || bits > quoit_address_bits(a) || memcmp(a->bytes, b->bytes, whole) != 0)
        return false;
    return rest == 0 || (a->bytes[whole] ^ b->bytes[whole]) >> (8 - rest) == 0;
}

bool quoit_address_is_loopback(const struct quoit_wire_address *address)
{
    static const struct quoit_wire_address v6 = {.family = AF_INET6, .bytes = {[15] = 1}};
    return (address->family == AF_INET && address->bytes[0] == 127) || quoit_address_agrees(address, &v6, 128);
}

bool quoit_address_is_link_local(const struct quoit_wire_address *address)
{
    const uint8_t *bytes = address->bytes;
    if (address->family == AF_INET)
        return bytes[0] == 169 && bytes[1] == 254;
    return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}
