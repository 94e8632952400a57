/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/interfaces.h"
#include "env/processor.h"
#include "net/address.h"
#include "net/devices.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAYERS_MAX        2  /* of devices above an adapter */
#define ARPHRD_INFINIBAND 32 /* as the kernel has it in linux/if_arp.h, which clashes with the C library */

/* A number that the kernel has of an interface; 0: none. */
static long number_of(const char *name, const char *what)
{
    char path[64 + IF_NAMESIZE];
    long number = 0;
    snprintf(path, sizeof path, "/sys/class/net/%s/%s", name, what);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%ld", &number) != 1)
        number = 0;
    if (file)
        fclose(file);
    return number;
}

/* Whether it is an adapter, or lies above one: a bond, a VLAN, a VLAN on a bond, a bridge. (glob(3) would want more of
 * libc than a program has that is linked statically.) */
static bool has_adapter(const char *name, uint32_t depth)
{
    static const char lower[] = "lower_";
    char path[64 + NAME_MAX];
    bool is_found = false;
    snprintf(path, sizeof path, "/sys/class/net/%s/device", name);
    if (access(path, F_OK) == 0)
        return true;
    *strrchr(path, '/') = '\0';
    DIR *folder = depth > 0 ? opendir(path) : NULL;
    for (struct dirent *entry; folder && !is_found && (entry = readdir(folder)) != NULL;)
        is_found = strncmp(entry->d_name, lower, sizeof lower - 1) == 0 &&
                   has_adapter(entry->d_name + sizeof lower - 1, depth - 1);
    if (folder)
        closedir(folder);
    return is_found;
}

/* Ethernet with RDMA is Ethernet: what it is worth to TCP is its speed, and drivers of slow ports offer RDMA, too. */
static enum quoit_net_place_kind kind_of(const char *name)
{
    if (number_of(name, "type") == ARPHRD_INFINIBAND)
        return QUOIT_NET_PLACE_FABRIC;
    return has_adapter(name, LAYERS_MAX) ? QUOIT_NET_PLACE_ETHERNET : QUOIT_NET_PLACE_VIRTUAL;
}

/* SSH_CONNECTION is "CLIENT PORT SERVER PORT": whether the address is the server's. */
static bool is_of_ssh(const char *address)
{
    const char *connection = getenv("SSH_CONNECTION");
    char server[INET6_ADDRSTRLEN];
    return connection && sscanf(connection, "%*s %*s %45s", server) == 1 && strcmp(server, address) == 0;
}

static uint8_t bits_of(const struct sockaddr *mask)
{
    struct sockaddr_storage whole = {.ss_family = AF_UNSPEC};
    uint32_t bits = 0;
    if (!mask)
        return 0;
    whole.ss_family = mask->sa_family;
    memcpy(&whole, mask, quoit_address_bytes(&whole));
    const struct quoit_wire_address wire = quoit_address_tell(&whole);
    while (bits < quoit_address_bits(&wire) && (wire.bytes[bits / 8] << bits % 8 & 0x80) != 0)
        bits++;
    return (uint8_t)bits;
}

/* What was found out about the device, from an earlier address of it, or from the kernel. */
static void look(struct quoit_interface *interface, const struct quoit_interface *earlier, uint32_t earlier_count,
                 bool is_loopback)
{
    struct quoit_net_place *place = &interface->place;
    for (uint32_t i = 0; i < earlier_count; i++)
        if (strcmp(earlier[i].place.device, place->device) == 0) {
            place->kind = earlier[i].place.kind;
            place->speed = earlier[i].place.speed;
            return;
        }
    long mbit = number_of(place->device, "speed");
    place->speed = (uint16_t)(mbit <= 0 ? 0 : mbit / 100 < UINT16_MAX ? mbit / 100 : UINT16_MAX);
    place->kind = (uint8_t)(is_loopback ? QUOIT_NET_PLACE_LOOPBACK : kind_of(place->device));
}

uint32_t quoit_interfaces_list(struct quoit_interface interfaces_out[QUOIT_INTERFACES_MAX])
{
    struct ifaddrs *all;
    uint32_t count = 0;
    if (getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *one = all; one && count < QUOIT_INTERFACES_MAX; one = one->ifa_next) {
        int family = one->ifa_addr ? one->ifa_addr->sa_family : AF_UNSPEC;
        if ((family != AF_INET && family != AF_INET6) || (one->ifa_flags & IFF_UP) == 0)
            continue;
        struct quoit_interface *interface = &interfaces_out[count];
        *interface = (struct quoit_interface){.address = {.ss_family = (sa_family_t)family}};
        memcpy(&interface->address, one->ifa_addr, quoit_address_bytes(&interface->address));
        interface->place.address = quoit_address_tell(&interface->address);
        interface->place.prefix_bits = bits_of(one->ifa_netmask);
        quoit_address_print(&interface->place.address, interface->text);
        interface->place.is_ssh = is_of_ssh(interface->text);
        snprintf(interface->place.device, sizeof interface->place.device, "%.*s", (int)strcspn(one->ifa_name, ":"),
                 one->ifa_name); /* behind the colon stands the label of an address */
        look(interface, interfaces_out, count, (one->ifa_flags & IFF_LOOPBACK) != 0);
        count++;
    }
    freeifaddrs(all);
    return count;
}

const struct quoit_interface *quoit_interface_best(const struct quoit_interface *interfaces, uint32_t count,
                                                   const char *name)
{
    const struct quoit_interface *best = NULL;
    for (const struct quoit_interface *one = interfaces; one < interfaces + count; one++)
        if (strcmp(one->place.device, name) == 0 &&
            (!best || quoit_net_place_cost(&one->place) < quoit_net_place_cost(&best->place)))
            best = one;
    return best;
}

bool quoit_interface_find(const char *name, struct quoit_interface *interface_out)
{
    struct quoit_interface interfaces[QUOIT_INTERFACES_MAX];
    const struct quoit_interface *best = quoit_interface_best(interfaces, quoit_interfaces_list(interfaces), name);
    if (best)
        *interface_out = *best;
    return best;
}

/* Keeps the best, in their order. */
static void insert(struct quoit_net_place *list, const struct quoit_net_place *place)
{
    uint32_t at = 0;
    while (at < QUOIT_NET_PLACES_MAX && list[at].address.family != 0 &&
           (list[at].is_open > place->is_open ||
            (list[at].is_open == place->is_open && quoit_net_place_cost(&list[at]) <= quoit_net_place_cost(place))))
        at++;
    if (at == QUOIT_NET_PLACES_MAX)
        return;
    memmove(&list[at + 1], &list[at], (QUOIT_NET_PLACES_MAX - 1 - at) * sizeof list[0]);
    list[at] = *place;
}

void quoit_interfaces_places(const char *devices, const char *open_device, struct quoit_net_places *places_out)
{
    struct quoit_interface interfaces[QUOIT_INTERFACES_MAX];
    uint32_t count = quoit_interfaces_list(interfaces);
    *places_out = (struct quoit_net_places){.stack = quoit_interfaces_stack()};
    for (uint32_t i = 0; i < count; i++) {
        struct quoit_net_place *place = &interfaces[i].place;
        place->is_open = strcmp(place->device, open_device) == 0;
        if ((place->is_open || place->kind != QUOIT_NET_PLACE_LOOPBACK) &&
            quoit_devices_take(devices, place->device, &place->address))
            insert(places_out->list, place);
    }
}

uint64_t quoit_interfaces_stack(void)
{
    uint32_t kernel = quoit_processor_kernel();
    struct stat net;
    if (kernel == 0 || stat("/proc/self/ns/net", &net) != 0)
        return 0;
    return (uint64_t)kernel << 32 | (uint32_t)net.st_ino;
}
