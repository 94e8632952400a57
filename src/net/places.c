/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/places.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* What joins all hosts, best first. A routed way is worth less than a subnet of all, but more than one of what is
 * virtual: a tunnel or overlay reaches all hosts, too, slower. */
enum tier { TIER_SUBNET, TIER_ROUTED, TIER_VIRTUAL_SUBNET, TIER_VIRTUAL_ROUTED, TIER_LINK_LOCAL };

/* The ways that are looked at: the subnets of host 0's places, then routing by each family. */
enum { WAY_V4 = QUOIT_NET_PLACES_MAX, WAY_V6, WAY_COUNT };

struct chooser {
    const struct quoit_net_places *const *hosts;
    uint32_t host_count;
    bool open_only;
    bool is_loopback; /* no host has anything else */
    bool *is_same;    /* [host][place]: another host has the address, too */
    uint32_t same_hosts[2];
    const struct quoit_net_place *same; /* NULL: there is none such */
    uint8_t *taken;                     /* [host] */
};

static bool is_open(const struct chooser *chooser, const struct quoit_net_place *place)
{
    return place->address.family != 0 && (place->is_open || !chooser->open_only);
}

static bool may_take(const struct chooser *chooser, uint32_t host, uint32_t index)
{
    const struct quoit_net_place *place = &chooser->hosts[host]->list[index];
    return is_open(chooser, place) && (place->kind == QUOIT_NET_PLACE_LOOPBACK) == chooser->is_loopback &&
           !chooser->is_same[host * QUOIT_NET_PLACES_MAX + index];
}

uint64_t quoit_net_place_cost(const struct quoit_net_place *place)
{
    uint64_t is_last = place->kind == QUOIT_NET_PLACE_LOOPBACK || quoit_address_is_link_local(&place->address);
    return is_last << 31 | (uint64_t)place->kind << 28 | (uint64_t)(UINT16_MAX - place->speed) << 12 |
           (uint64_t)!place->is_ssh << 11 | (uint64_t)(place->address.family == AF_INET6) << 10;
}

/* Addresses that two hosts have */

struct entry {
    const struct quoit_net_place *place;
    uint64_t stack;
    uint32_t host;
    uint32_t at; /* in is_same */
};

static int compare_entries(const void *one, const void *other)
{
    const struct entry *a = one, *b = other;
    int order = memcmp(a->place->address.bytes, b->place->address.bytes, sizeof a->place->address.bytes);
    if (order == 0)
        order = (int)a->place->address.family - (int)b->place->address.family;
    return order ? order : (a->at > b->at) - (a->at < b->at);
}

/* Of entries with one address. Hosts that share a network stack share its addresses: their ports differ. */
static void mark_run(struct chooser *chooser, const struct entry *first, const struct entry *last)
{
    const struct entry *other = first;
    while (other <= last && other->stack == first->stack)
        other++;
    if (other > last)
        return;
    for (const struct entry *one = first; one <= last; one++)
        chooser->is_same[one->at] = true;
    if (chooser->same)
        return;
    chooser->same = first->place;
    chooser->same_hosts[0] = first->host;
    chooser->same_hosts[1] = other->host;
}

static bool mark_same(struct chooser *chooser)
{
    size_t count = 0, all = (size_t)chooser->host_count * QUOIT_NET_PLACES_MAX;
    struct entry *entries = calloc(all, sizeof *entries);
    if (!entries)
        return false;
    for (uint32_t at = 0; at < all; at++) {
        const struct quoit_net_places *places = chooser->hosts[at / QUOIT_NET_PLACES_MAX];
        const struct quoit_net_place *place = &places->list[at % QUOIT_NET_PLACES_MAX];
        if (place->address.family != 0 && place->kind != QUOIT_NET_PLACE_LOOPBACK)
            entries[count++] = (struct entry){place, places->stack, at / QUOIT_NET_PLACES_MAX, at};
    }
    qsort(entries, count, sizeof *entries, compare_entries);
    for (size_t first = 0, next; first < count; first = next) {
        const struct quoit_wire_address *address = &entries[first].place->address;
        next = first + 1;
        while (next < count &&
               quoit_address_agrees(address, &entries[next].place->address, quoit_address_bits(address)))
            next++;
        mark_run(chooser, &entries[first], &entries[next - 1]);
    }
    free(entries);
    return true;
}

/* Ways */

/* Whether each is in the subnet of the other. */
static bool shares_subnet(const struct quoit_net_place *a, const struct quoit_net_place *b)
{
    uint32_t bits = a->prefix_bits > b->prefix_bits ? a->prefix_bits : b->prefix_bits;
    return quoit_address_agrees(&a->address, &b->address, bits);
}

static bool is_on(const struct quoit_net_place *place, uint32_t way, const struct quoit_net_place *of_host_0)
{
    if (way < QUOIT_NET_PLACES_MAX)
        return shares_subnet(place, of_host_0);
    return place->address.family == (way == WAY_V4 ? AF_INET : AF_INET6) &&
           !quoit_address_is_link_local(&place->address);
}

/* The host's best place on the way; QUOIT_NET_PLACES_MAX: it has none. */
static uint32_t best_of(const struct chooser *chooser, uint32_t host, uint32_t way)
{
    const struct quoit_net_place *list = chooser->hosts[host]->list;
    const struct quoit_net_place *of_host_0 = way < QUOIT_NET_PLACES_MAX ? &chooser->hosts[0]->list[way] : NULL;
    uint32_t best = QUOIT_NET_PLACES_MAX;
    for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX; i++)
        if (may_take(chooser, host, i) && is_on(&list[i], way, of_host_0) &&
            (best == QUOIT_NET_PLACES_MAX || quoit_net_place_cost(&list[i]) < quoit_net_place_cost(&list[best])))
            best = i;
    return best;
}

static enum tier tier_of(const struct chooser *chooser, uint32_t way, enum quoit_net_place_kind kind)
{
    if (way < QUOIT_NET_PLACES_MAX && quoit_address_is_link_local(&chooser->hosts[0]->list[way].address))
        return TIER_LINK_LOCAL;
    if (way < QUOIT_NET_PLACES_MAX)
        return kind < QUOIT_NET_PLACE_VIRTUAL ? TIER_SUBNET : TIER_VIRTUAL_SUBNET;
    return kind < QUOIT_NET_PLACE_VIRTUAL ? TIER_ROUTED : TIER_VIRTUAL_ROUTED;
}

/* Takes the hosts' places on the way, which is as good as the worst of them. Smaller is better; UINT64_MAX: some host
 * has none. */
static uint64_t try_way(struct chooser *chooser, uint32_t way)
{
    uint32_t kind = 0, speed = UINT16_MAX, ssh_count = 0;
    bool is_v6 = false;
    if (way < QUOIT_NET_PLACES_MAX && !may_take(chooser, 0, way))
        return UINT64_MAX;
    for (uint32_t host = 0; host < chooser->host_count; host++) {
        uint32_t index = best_of(chooser, host, way);
        if (index == QUOIT_NET_PLACES_MAX)
            return UINT64_MAX;
        const struct quoit_net_place *place = &chooser->hosts[host]->list[index];
        chooser->taken[host] = (uint8_t)index;
        kind = place->kind > kind ? place->kind : kind;
        speed = place->speed < speed ? place->speed : speed;
        ssh_count += place->is_ssh;
        is_v6 = place->address.family == AF_INET6;
    }
    return (uint64_t)tier_of(chooser, way, (enum quoit_net_place_kind)kind) << 60 | (uint64_t)kind << 56 |
           (uint64_t)(UINT16_MAX - speed) << 40 | (uint64_t)(chooser->host_count - ssh_count) << 8 | is_v6;
}

/* Verdicts */

/* A host without an open place of the kind that is asked for; host_count: there is none. */
static uint32_t host_without(const struct chooser *chooser, bool needs_far)
{
    for (uint32_t host = 0; host < chooser->host_count; host++) {
        bool has_any = false;
        for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX; i++) {
            const struct quoit_net_place *place = &chooser->hosts[host]->list[i];
            has_any |= is_open(chooser, place) && (!needs_far || place->kind != QUOIT_NET_PLACE_LOOPBACK);
        }
        if (!has_any)
            return host;
    }
    return chooser->host_count;
}

/* The first host that is not on the way; host_count: all are. */
static uint32_t host_off(const struct chooser *chooser, uint32_t way)
{
    uint32_t host = 0;
    while (host < chooser->host_count && best_of(chooser, host, way) < QUOIT_NET_PLACES_MAX)
        host++;
    return host;
}

static const struct quoit_net_place *best_open(const struct chooser *chooser, uint32_t host)
{
    const struct quoit_net_place *list = chooser->hosts[host]->list, *best = NULL;
    for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX; i++)
        if (is_open(chooser, &list[i]) && (!best || quoit_net_place_cost(&list[i]) < quoit_net_place_cost(best)))
            best = &list[i];
    return best;
}

static enum quoit_net_places_verdict explain(const struct chooser *chooser,
                                             struct quoit_net_places_trouble *trouble_out)
{
    *trouble_out = (struct quoit_net_places_trouble){.hosts = {host_off(chooser, WAY_V4), host_off(chooser, WAY_V6)}};
    if (chooser->same) {
        *trouble_out = (struct quoit_net_places_trouble){.hosts = {chooser->same_hosts[0], chooser->same_hosts[1]},
                                                         .place = chooser->same};
        return QUOIT_NET_PLACES_SAME;
    }
    trouble_out->place = best_open(chooser, trouble_out->hosts[1]);
    return QUOIT_NET_PLACES_APART;
}

/* Where all have the loopback device alone, they must be of one machine. */
static enum quoit_net_places_verdict look_at_loopback(const struct chooser *chooser,
                                                      struct quoit_net_places_trouble *trouble_out)
{
    uint32_t alone = host_without(chooser, true), other = 0;
    if (alone == chooser->host_count)
        return QUOIT_NET_PLACES_CHOSEN;
    for (uint32_t host = 0; host < chooser->host_count; host++) {
        const struct quoit_net_place *place = best_open(chooser, host);
        if (place->kind != QUOIT_NET_PLACE_LOOPBACK || chooser->hosts[host]->stack != chooser->hosts[alone]->stack)
            other = host;
    }
    if (!chooser->is_loopback || chooser->hosts[other]->stack != chooser->hosts[alone]->stack) {
        *trouble_out = (struct quoit_net_places_trouble){.hosts = {alone, other}, .place = best_open(chooser, other)};
        return QUOIT_NET_PLACES_LOOPBACK;
    }
    return QUOIT_NET_PLACES_CHOSEN;
}

static enum quoit_net_places_verdict choose(struct chooser *chooser, struct quoit_net_places_trouble *trouble_out)
{
    uint64_t best_rank = UINT64_MAX;
    uint32_t best = WAY_COUNT, nowhere = host_without(chooser, false);
    if (nowhere < chooser->host_count) {
        *trouble_out = (struct quoit_net_places_trouble){.hosts = {nowhere}};
        return QUOIT_NET_PLACES_NONE;
    }
    if (!mark_same(chooser))
        return QUOIT_NET_PLACES_NO_MEMORY;
    chooser->is_loopback = true;
    for (uint32_t host = 0; host < chooser->host_count; host++)
        chooser->is_loopback &= best_open(chooser, host)->kind == QUOIT_NET_PLACE_LOOPBACK;
    enum quoit_net_places_verdict verdict = look_at_loopback(chooser, trouble_out);
    if (verdict != QUOIT_NET_PLACES_CHOSEN)
        return verdict;
    for (uint32_t way = 0; way < WAY_COUNT; way++) {
        uint64_t rank = try_way(chooser, way);
        if (rank >= best_rank)
            continue;
        best_rank = rank;
        best = way;
    }
    if (best == WAY_COUNT)
        return explain(chooser, trouble_out);
    (void)try_way(chooser, best);
    return QUOIT_NET_PLACES_CHOSEN;
}

enum quoit_net_places_verdict quoit_net_places_choose(const struct quoit_net_places *const *hosts, uint32_t host_count,
                                                      bool open_only, uint8_t *taken_out,
                                                      struct quoit_net_places_trouble *trouble_out)
{
    struct chooser chooser = {.hosts = hosts, .host_count = host_count, .open_only = open_only, .taken = taken_out};
    *trouble_out = (struct quoit_net_places_trouble){0};
    chooser.is_same = calloc((size_t)host_count * QUOIT_NET_PLACES_MAX, sizeof *chooser.is_same);
    if (!chooser.is_same)
        return QUOIT_NET_PLACES_NO_MEMORY;
    enum quoit_net_places_verdict verdict = choose(&chooser, trouble_out);
    free(chooser.is_same);
    return verdict;
}

bool quoit_net_places_any_open(const struct quoit_net_places *const *hosts, uint32_t host_count)
{
    for (uint32_t host = 0; host < host_count; host++)
        for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX; i++)
            if (hosts[host]->list[i].is_open)
                return true;
    return false;
}

/* Text */

const char *quoit_net_place_print(const struct quoit_net_place *place, char text_out[QUOIT_NET_PLACE_TEXT_BYTES])
{
    char address[QUOIT_ADDRESS_TEXT_BYTES], port[16] = "";
    quoit_address_print(&place->address, address);
    if (place->address.port != 0)
        snprintf(port, sizeof port, " port %u", ntohs(place->address.port));
    snprintf(text_out, QUOIT_NET_PLACE_TEXT_BYTES, "%.*s %s/%u%s", QUOIT_NET_PLACE_DEVICE_BYTES, place->device, address,
             place->prefix_bits, port);
    return text_out;
}

const char *quoit_net_places_print(const struct quoit_net_places *places, char *text_out, size_t bytes)
{
    size_t used = (size_t)snprintf(text_out, bytes, "%s", places->list[0].address.family ? "" : "no device");
    for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX && places->list[i].address.family != 0; i++) {
        char text[QUOIT_NET_PLACE_TEXT_BYTES];
        struct quoit_net_place place = places->list[i];
        place.address.port = 0;
        if (used < bytes)
            used += (size_t)snprintf(text_out + used, bytes - used, "%s%s", i ? ", " : "",
                                     quoit_net_place_print(&place, text));
    }
    return text_out;
}
