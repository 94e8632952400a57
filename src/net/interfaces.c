/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/interfaces.h"
#include "net/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void quoit_interface_look(struct quoit_interface *interface)
{
    char path[64 + IF_NAMESIZE];
    long mbit = 0;
    snprintf(path, sizeof path, "/sys/class/net/%s/device", interface->name);
    interface->is_virtual = access(path, F_OK) != 0;
    snprintf(path, sizeof path, "/sys/class/net/%s/speed", interface->name);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%ld", &mbit) == 1 && mbit > 0)
        interface->speed = (uint16_t)(mbit / 100 < UINT16_MAX ? mbit / 100 : UINT16_MAX);
    if (file)
        fclose(file);
}

static void take_address(struct quoit_interface *interface, const struct sockaddr *address)
{
    const void *bytes = address->sa_family == AF_INET
                            ? (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr
                            : &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    memset(&interface->address, 0, sizeof interface->address);
    interface->address.ss_family = address->sa_family;
    memcpy(&interface->address, address, quoit_address_bytes(&interface->address));
    inet_ntop(address->sa_family, bytes, interface->text, sizeof interface->text);
}

static struct quoit_interface *find(struct quoit_interface *interfaces, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(interfaces[i].name, name) == 0)
            return &interfaces[i];
    return NULL;
}

uint32_t quoit_interfaces_list(struct quoit_interface interfaces_out[QUOIT_INTERFACES_MAX])
{
    struct ifaddrs *all;
    uint32_t count = 0;
    if (getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
        int family = one->ifa_addr ? one->ifa_addr->sa_family : AF_UNSPEC;
        if ((family != AF_INET && family != AF_INET6) || (one->ifa_flags & IFF_UP) == 0)
            continue;
        struct quoit_interface *interface = find(interfaces_out, count, one->ifa_name);
        if (interface && (family != AF_INET || interface->address.ss_family == AF_INET))
            continue;
        if (!interface) {
            if (count == QUOIT_INTERFACES_MAX)
                continue;
            interface = &interfaces_out[count++];
            memset(interface, 0, sizeof *interface);
            snprintf(interface->name, sizeof interface->name, "%s", one->ifa_name);
            interface->is_loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
        }
        take_address(interface, one->ifa_addr);
    }
    freeifaddrs(all);
    return count;
}

bool quoit_interface_find(const char *name, struct quoit_interface *interface_out)
{
    struct quoit_interface interfaces[QUOIT_INTERFACES_MAX];
    const struct quoit_interface *interface = find(interfaces, quoit_interfaces_list(interfaces), name);
    if (interface)
        *interface_out = *interface;
    return interface;
}

bool quoit_interface_is(const struct quoit_interface *interface, const char *device)
{
    return strcmp(interface->name, device) == 0 || strcmp(interface->text, device) == 0;
}

uint32_t quoit_interface_cost(const struct quoit_interface *interface)
{
    uint32_t kind = (interface->is_loopback ? 4u : 0) + (interface->address.ss_family == AF_INET6 ? 2u : 0) +
                    (interface->is_virtual ? 1u : 0);
    return kind << 16 | (uint32_t)(UINT16_MAX - interface->speed);
}
