/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/network_join.h"
#include "base/log.h"
#include "env/processor.h"
#include "lane/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPIN_COUNT 4 /* looks at the network, each at least one system call, between two yields */

#define NETWORK_NAME_BYTES 24
#define LOOPBACK           "lo" /* the device of this machine alone, as Linux and so both libraries call it */

/* What every host knows of every other. */
struct contact {
    struct quoit_contact memory;
    char network[NETWORK_NAME_BYTES]; /* driver and provider, cut, and the loopback device; 0 behind it */
    uint64_t processor_pool;
};
_Static_assert(sizeof(struct contact) <= QUOIT_NETWORK_CONTACT_BYTES,
               "who exchanges contacts makes room for so many bytes");

/* Hosts may be namespaces or containers of one machine. Those that share its processors wait for each other as emulated
 * hosts do. PEs read the policy after the proxy is ready. */
static void share_machine(struct quoit_lane *lane, const struct contact *contacts)
{
    struct quoit_machine *machine = &((struct quoit_host_header *)lane->memory)->machine;
    uint64_t own_pool = contacts[lane->layout->host].processor_pool;
    uint32_t host_count = 0, pe_count = 0;
    for (uint32_t host = 0; host < lane->layout->job.host_count; host++) {
        if (host != lane->layout->host && (own_pool == 0 || contacts[host].processor_pool != own_pool))
            continue;
        host_count++;
        pe_count += lane->pe_counts[host];
    }
    *machine = quoit_machine_with(&lane->layout->job, host_count, pe_count, machine->core_count);
    lane->waiter.policy = machine->policy;
    if (lane->waiter.policy.spin_count > SPIN_COUNT)
        lane->waiter.policy.spin_count = SPIN_COUNT;
    quoit_placement_start_lane(&lane->placement, lane->layout, lane->index, lane->waiter.policy);
}

/* Each host chooses for itself, and may find another network than the rest, or none but the loopback device. */
static enum quoit_status meet_host(const struct quoit_lane *lane, struct quoit_net *net, uint32_t host,
                                   const struct contact *own, const struct contact *other,
                                   struct quoit_network_reach *reach_out)
{
    uint32_t own_host = lane->layout->host;
    uint64_t memory_bytes = other->memory.key.memory_bytes;
    if (strncmp(own->network, other->network, NETWORK_NAME_BYTES) != 0) {
        quoit_say("host %u cannot join the network: it takes %.*s, and host %u takes %.*s; --network, "
                  "--network-provider and --network-device name one for all [Q0222]",
                  own_host, NETWORK_NAME_BYTES, own->network, host, NETWORK_NAME_BYTES, other->network);
        return QUOIT_UNSUPPORTED;
    }
    if (other->memory.segments > memory_bytes ||
        lane->pe_counts[host] * lane->layout->segment_stride > memory_bytes - other->memory.segments) {
        quoit_say("host %u cannot join the network: the segments of host %u are not within its memory [Q0222]",
                  own_host, host);
        return QUOIT_INVALID;
    }
    reach_out->segments = other->memory.segments;
    enum quoit_status status = quoit_net_connect(net, host, &other->memory.address);
    if (status == QUOIT_OK)
        status = quoit_net_attach(net, host, &other->memory.key, &reach_out->window);
    if (status != QUOIT_OK)
        quoit_say("host %u cannot join the network: %.*s refuses the address or the key of host %u: %s [Q0222]",
                  own_host, NETWORK_NAME_BYTES, own->network, host, quoit_status_text(status));
    return status;
}

/* For PEs that put and get by themselves (engine/ring/guest.h), which start after the proxy is ready. */
static void tell_contacts(struct quoit_lane *lane, const struct quoit_net *net, bool has_guests,
                          const struct contact *contacts)
{
    const struct quoit_lane_network *config = lane->group->network;
    const struct quoit_net_limits *limits = quoit_net_limits(net);
    struct quoit_contacts *told = quoit_memory_contacts(lane->layout, lane->memory);
    if (!told)
        return;
    told->network = *quoit_net_choice(net);
    told->tag = config->tag;
    told->notice_ns = quoit_net_notice_ns(config->lost_limit_ns ? config->lost_limit_ns : QUOIT_NET_LOST_LIMIT_NS);
    told->opening_ns = limits->opening_ns;
    told->is_rdma = limits->is_rdma;
    told->takes_guests = limits->takes_guests && has_guests;
    for (uint32_t host = 0; host < lane->layout->job.host_count; host++)
        told->hosts[host] = contacts[host].memory;
    told->is_told = true;
}

enum quoit_status quoit_network_join(struct quoit_lane *lane, struct quoit_net *net, bool has_guests,
                                     struct quoit_network_reach *reaches_out)
{
    const struct quoit_layout *layout = lane->layout;
    const struct quoit_lane_network *config = lane->group->network;
    const struct quoit_net_choice *choice = quoit_net_choice(net);
    uint32_t host_count = layout->job.host_count;
    struct contact *contacts = calloc(host_count, sizeof *contacts);
    struct contact own = {.memory = {.address = *quoit_net_address(net),
                                     .key = *quoit_net_region_key(quoit_net_region(net)),
                                     .segments = layout->segments},
                          .processor_pool = quoit_processor_pool()};
    enum quoit_status status = contacts ? QUOIT_OK : QUOIT_NO_MEMORY;
    bool is_loopback = strcmp(choice->device, LOOPBACK) == 0;
    snprintf(own.network, sizeof own.network, "%.7s %.*s%s", choice->driver, is_loopback ? 12 : 15, choice->provider,
             is_loopback ? " " LOOPBACK : "");
    if (contacts && !config->exchange(config->arg, &own, sizeof own, contacts))
        status = QUOIT_TIMEOUT;
    for (uint32_t host = 0; host < host_count && status == QUOIT_OK; host++)
        if (host != layout->host || layout->job.has_loopback)
            status = meet_host(lane, net, host, &own, &contacts[host], &reaches_out[host]);
    if (status == QUOIT_OK) {
        share_machine(lane, contacts);
        tell_contacts(lane, net, has_guests, contacts);
    }
    free(contacts);
    return status;
}
