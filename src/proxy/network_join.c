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
#define LIST_BYTES         256 /* of the places of a host, in a message */

/* What every host knows of every other. */
struct contact {
    struct quoit_contact memory;
    struct quoit_net_places places;
    char network[NETWORK_NAME_BYTES]; /* driver and provider, cut; 0 behind it */
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

/* Each host takes the best driver that it finds, and may find another one than the rest. */
static enum quoit_status compare_networks(const struct quoit_lane *lane, const struct contact *contacts)
{
    uint32_t own_host = lane->layout->host;
    const char *own = contacts[own_host].network;
    for (uint32_t host = 0; host < lane->layout->job.host_count; host++) {
        if (strncmp(own, contacts[host].network, NETWORK_NAME_BYTES) == 0)
            continue;
        quoit_say("host %u cannot join the network: it takes %.*s, and host %u takes %.*s; --network, "
                  "--network-provider and --network-device name one for all [Q0222]",
                  own_host, NETWORK_NAME_BYTES, own, host, NETWORK_NAME_BYTES, contacts[host].network);
        return QUOIT_UNSUPPORTED;
    }
    return QUOIT_OK;
}

/* All hosts print the same: which of them is ended first is chance. */
static void say_trouble(const struct quoit_lane *lane, const struct quoit_net_places *const *places,
                        enum quoit_net_places_verdict verdict, const struct quoit_net_places_trouble *trouble)
{
    char first[LIST_BYTES], second[LIST_BYTES], shared[QUOIT_NET_PLACE_TEXT_BYTES] = "";
    struct quoit_net_place same = trouble->place ? *trouble->place : (struct quoit_net_place){0};
    uint32_t own = lane->layout->host, one = trouble->hosts[0], other = trouble->hosts[1];
    same.address.port = 0;
    quoit_net_place_print(&same, shared);
    quoit_net_places_print(places[one], first, sizeof first);
    quoit_net_places_print(places[other], second, sizeof second);
    if (verdict == QUOIT_NET_PLACES_SAME)
        quoit_say("host %u cannot join the network: hosts %u and %u have the same address, %s, so it is of different "
                  "networks, and nothing else joins all hosts: host %u has %s, and host %u has %s [Q0129]",
                  own, one, other, shared, one, first, other, second);
    else
        quoit_say("host %u cannot join the network: no subnet and no kind of address joins all hosts: host %u has %s, "
                  "and host %u has %s [Q0128]",
                  own, one, first, other, second);
}

/* Whether all hosts could take something else together than what they have opened, by the same rule. */
static bool is_elsewhere(const struct quoit_net_places *const *places, uint32_t host_count, const uint8_t *opened,
                         const uint8_t *wanted)
{
    for (uint32_t host = 0; host < host_count; host++) {
        const struct quoit_net_place *one = &places[host]->list[opened[host]],
                                     *other = &places[host]->list[wanted[host]];
        if (strncmp(one->device, other->device, sizeof one->device) != 0 ||
            one->address.family != other->address.family)
            return true;
    }
    return false;
}

/* False: the hosts could not meet there. */
static bool plan_retry(const struct quoit_lane *lane, const struct quoit_net_places *const *places,
                       const uint8_t *wanted, struct quoit_network_retry *retry)
{
    uint32_t own = lane->layout->host;
    retry->own = places[own]->list[wanted[own]];
    retry->host_0 = places[0]->list[wanted[0]];
    if (retry->is_second || retry->host_0.address.port == 0)
        return false;
    quoit_address_print(&retry->own.address, retry->device);
    retry->is_due = true;
    return true;
}

struct choice {
    const struct quoit_net_places **places; /* [host] */
    uint8_t *opened, *wanted;               /* [host] of what is open, and of all */
};

/* Where the hosts are called, by the rule that all follow (net/places.h), where some of them are IP's addresses. */
static enum quoit_status choose(const struct quoit_lane *lane, const struct choice *choice,
                                struct quoit_network_retry *retry)
{
    uint32_t host_count = lane->layout->job.host_count;
    struct quoit_net_places_trouble trouble, unused;
    char text[QUOIT_NET_PLACE_TEXT_BYTES];
    enum quoit_net_places_verdict verdict =
        quoit_net_places_choose(choice->places, host_count, true, choice->opened, &trouble);
    enum quoit_net_places_verdict of_all =
        quoit_net_places_choose(choice->places, host_count, false, choice->wanted, &unused);
    if (verdict == QUOIT_NET_PLACES_NO_MEMORY || of_all == QUOIT_NET_PLACES_NO_MEMORY)
        return QUOIT_NO_MEMORY;
    if (of_all == QUOIT_NET_PLACES_CHOSEN &&
        (verdict != QUOIT_NET_PLACES_CHOSEN ||
         is_elsewhere(choice->places, host_count, choice->opened, choice->wanted)) &&
        plan_retry(lane, choice->places, choice->wanted, retry))
        return QUOIT_OK;
    if (verdict == QUOIT_NET_PLACES_CHOSEN)
        return QUOIT_OK;
    if (of_all == QUOIT_NET_PLACES_CHOSEN)
        quoit_say(
            "host %u cannot join the network: the hosts have opened different devices, and host 0 has no port left "
            "at %s where they could agree on one; --network-device names one for all [Q0222]",
            lane->layout->host, quoit_net_place_print(&retry->host_0, text));
    else
        say_trouble(lane, choice->places, verdict, &trouble);
    return QUOIT_UNSUPPORTED;
}

/* own_place_out: of no family, where networks have addresses of their own and need no such choice. */
static enum quoit_status choose_places(const struct quoit_lane *lane, struct quoit_net *net, struct contact *contacts,
                                       struct quoit_network_retry *retry, struct quoit_net_place *own_place_out)
{
    uint32_t host_count = lane->layout->job.host_count, own = lane->layout->host;
    struct choice choice = {.places = calloc(host_count, sizeof *choice.places),
                            .opened = calloc(host_count, sizeof *choice.opened),
                            .wanted = calloc(host_count, sizeof *choice.wanted)};
    enum quoit_status status = choice.places && choice.opened && choice.wanted ? QUOIT_OK : QUOIT_NO_MEMORY;
    *own_place_out = (struct quoit_net_place){0};
    for (uint32_t host = 0; host < host_count && status == QUOIT_OK; host++)
        choice.places[host] = &contacts[host].places;
    bool is_open = status == QUOIT_OK && quoit_net_places_any_open(choice.places, host_count);
    if (is_open)
        status = choose(lane, &choice, retry);
    if (is_open && status == QUOIT_OK && !retry->is_due) {
        quoit_net_take_place(net, choice.opened[own]);
        *own_place_out = quoit_net_places(net)->list[choice.opened[own]];
        for (uint32_t host = 0; host < host_count; host++)
            contacts[host].memory.address.at = choice.places[host]->list[choice.opened[host]].address;
    }
    free(choice.wanted);
    free(choice.opened);
    free(choice.places);
    return status;
}

static enum quoit_status meet_host(const struct quoit_lane *lane, struct quoit_net *net, uint32_t host,
                                   const struct contact *other, struct quoit_network_reach *reach_out)
{
    uint32_t own_host = lane->layout->host;
    uint64_t memory_bytes = other->memory.key.memory_bytes;
    if (other->memory.segments > memory_bytes ||
        lane->pe_counts[host] * lane->layout->segment_stride > memory_bytes - other->memory.segments) {
        quoit_say("host %u cannot join the network: the segments of host %u are not within its memory [Q0222]",
                  own_host, host);
        return QUOIT_INVALID;
    }
    reach_out->segments = other->memory.segments;
    enum quoit_status status = quoit_net_connect(net, host, &other->memory.address);
    if (status != QUOIT_OK && quoit_net_why(net)[0]) {
        quoit_say("host %u does not reach host %u %s [Q0130]", own_host, host, quoit_net_why(net));
        return status;
    }
    if (status == QUOIT_OK)
        status = quoit_net_attach(net, host, &other->memory.key, &reach_out->window);
    if (status != QUOIT_OK)
        quoit_say("host %u cannot join the network: %.*s refuses the address or the key of host %u: %s [Q0222]",
                  own_host, NETWORK_NAME_BYTES, other->network, host, quoit_status_text(status));
    return status;
}

/* For PEs that put and get by themselves (engine/ring/pe_endpoint.h), which start after the proxy is ready. */
static void tell_contacts(struct quoit_lane *lane, const struct quoit_net *net, bool has_pe_endpoints,
                          const struct quoit_net_place *own_place, const struct contact *contacts)
{
    const struct quoit_lane_network *config = lane->group->network;
    const struct quoit_net_limits *limits = quoit_net_limits(net);
    struct quoit_contacts *told = quoit_memory_contacts(lane->layout, lane->memory);
    if (!told)
        return;
    told->network = *quoit_net_choice(net);
    told->place = *own_place;
    snprintf(told->ports, sizeof told->ports, "%s", config->ports ? config->ports : "");
    told->tag = config->tag;
    told->notice_ns = quoit_net_notice_ns(config->lost_limit_ns ? config->lost_limit_ns : QUOIT_NET_LOST_LIMIT_NS);
    told->opening_ns = limits->opening_ns;
    told->is_rdma = limits->is_rdma;
    told->takes_pe_endpoints = limits->takes_pe_endpoints && has_pe_endpoints;
    for (uint32_t host = 0; host < lane->layout->job.host_count; host++)
        told->hosts[host] = contacts[host].memory;
    told->is_told = true;
}

/* By who has started the proxies, or the second time by the hosts themselves. */
static enum quoit_status exchange(const struct quoit_lane *lane, const struct quoit_network_retry *retry,
                                  const struct contact *own, struct contact *all_out)
{
    const struct quoit_lane_network *config = lane->group->network;
    char why[QUOIT_MEETING_WHY_BYTES];
    if (!retry->is_second)
        return config->exchange(config->arg, own, sizeof *own, all_out) ? QUOIT_OK : QUOIT_TIMEOUT;
    uint64_t limit_ns = config->lost_limit_ns ? config->lost_limit_ns : QUOIT_NET_LOST_LIMIT_NS;
    const struct quoit_meeting_config meeting = {.tag = config->tag,
                                                 .host = lane->layout->host,
                                                 .host_count = lane->layout->job.host_count,
                                                 .host_0 = &retry->host_0,
                                                 .device = retry->own.device,
                                                 .limit_ns = config->start_limit_ns > limit_ns ? config->start_limit_ns
                                                                                               : limit_ns};
    if (quoit_meeting_exchange(&retry->meeting, &meeting, own, sizeof *own, all_out, why))
        return QUOIT_OK;
    quoit_say("host %u does not reach the others: %s [Q0130]", lane->layout->host, why[0] ? why : "one has gone");
    return QUOIT_TIMEOUT;
}

/* Ends of drivers that choose their device when they open have no ports of ours. Host 0 is called, if it comes to it.
 */
static void prepare_retry(const struct quoit_lane *lane, struct quoit_network_retry *retry,
                          struct quoit_net_places *places)
{
    struct quoit_ports ports;
    if (lane->layout->host == 0 && !retry->is_second && places->list[0].address.family != 0 &&
        places->list[0].address.port == 0 && quoit_ports_read(lane->group->network->ports, &ports))
        quoit_meeting_open(&retry->meeting, places, ports);
}

void quoit_network_retry_close(struct quoit_network_retry *retry)
{
    quoit_meeting_close(&retry->meeting);
}

enum quoit_status quoit_network_join(struct quoit_lane *lane, struct quoit_net *net, bool has_pe_endpoints,
                                     struct quoit_network_retry *retry, struct quoit_network_reach *reaches_out)
{
    const struct quoit_layout *layout = lane->layout;
    const struct quoit_net_choice *choice = quoit_net_choice(net);
    uint32_t host_count = layout->job.host_count;
    struct contact *contacts = calloc(host_count, sizeof *contacts);
    struct contact own = {.memory = {.address = *quoit_net_address(net),
                                     .key = *quoit_net_region_key(quoit_net_region(net)),
                                     .segments = layout->segments},
                          .places = *quoit_net_places(net),
                          .processor_pool = quoit_processor_pool()};
    struct quoit_net_place own_place;
    enum quoit_status status = contacts ? QUOIT_OK : QUOIT_NO_MEMORY;
    retry->is_second = retry->is_due;
    retry->is_due = false;
    snprintf(own.network, sizeof own.network, "%.7s %.15s", choice->driver, choice->provider);
    prepare_retry(lane, retry, &own.places);
    if (status == QUOIT_OK)
        status = exchange(lane, retry, &own, contacts);
    if (status == QUOIT_OK)
        status = compare_networks(lane, contacts);
    if (status == QUOIT_OK)
        status = choose_places(lane, net, contacts, retry, &own_place);
    for (uint32_t host = 0; host < host_count && status == QUOIT_OK && !retry->is_due; host++)
        if (host != layout->host || layout->job.has_loopback)
            status = meet_host(lane, net, host, &contacts[host], &reaches_out[host]);
    if (status == QUOIT_OK && !retry->is_due) {
        share_machine(lane, contacts);
        tell_contacts(lane, net, has_pe_endpoints, &own_place, contacts);
    }
    free(contacts);
    return status;
}
