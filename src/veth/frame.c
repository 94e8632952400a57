/* SPDX-License-Identifier: BSD-3-Clause */
#include "veth/frame.h"
#include "veth/queue.h"

#include <stdatomic.h>
#include <string.h>

#define LOCAL_UNICAST 0x02u
#define MULTICAST_BIT 0x01u

bool quoit_veth_header_is_valid(const struct quoit_veth_header *header, uint32_t host_count)
{
    bool is_to_host = header->dest < host_count;
    uint32_t least = header->kind == QUOIT_VETH_TOPOLOGY ? 0 : QUOIT_VNET_BYTES + QUOIT_ETHERNET_BYTES;
    return header->kind < QUOIT_VETH_KIND_COUNT && header->is_turned <= 1 && header->source < host_count &&
           (is_to_host || header->dest == QUOIT_VETH_ALL) && header->hops >= 1 && header->hops < host_count &&
           header->bytes >= least && header->bytes <= QUOIT_VETH_SLOT_BYTES - sizeof *header;
}

static uint64_t as_number(const uint8_t mac[QUOIT_MAC_BYTES])
{
    uint64_t number = 0;
    for (int i = 0; i < QUOIT_MAC_BYTES; i++)
        number = number << 8 | mac[i];
    return number;
}

void quoit_veth_mac(uint32_t ring, uint32_t host, uint8_t mac_out[QUOIT_MAC_BYTES])
{
    const uint8_t mac[QUOIT_MAC_BYTES] = {LOCAL_UNICAST, (uint8_t)(ring >> 16), (uint8_t)(ring >> 8),
                                          (uint8_t)ring, (uint8_t)(host >> 8),  (uint8_t)host};
    memcpy(mac_out, mac, sizeof mac);
}

static uint32_t ring_of(uint64_t mac)
{
    return mac >> 40 == LOCAL_UNICAST ? (uint32_t)(mac >> 16) & 0xffffffu : UINT32_MAX;
}

static uint32_t index_of(uint64_t mac)
{
    return (uint32_t)((mac * UINT64_C(0x9e3779b97f4a7c15)) >> 56) % QUOIT_VETH_MACS;
}

void quoit_veth_learn(struct quoit_veth_macs *macs, const uint8_t mac[QUOIT_MAC_BYTES], uint32_t host)
{
    uint64_t number = as_number(mac);
    if ((mac[0] & MULTICAST_BIT) || ring_of(number) == macs->ring)
        return;
    atomic_store_explicit(&macs->learned[index_of(number)], number << 16 | (host + 1), memory_order_relaxed);
}

uint32_t quoit_veth_host_of(const struct quoit_veth_macs *macs, const uint8_t mac[QUOIT_MAC_BYTES])
{
    uint64_t number = as_number(mac);
    if (mac[0] & MULTICAST_BIT)
        return QUOIT_VETH_ALL;
    if (ring_of(number) == macs->ring) {
        uint32_t host = (uint32_t)number & 0xffffu;
        return host < macs->host_count ? host : macs->host_count;
    }
    uint64_t learned = atomic_load_explicit(&macs->learned[index_of(number)], memory_order_relaxed);
    return learned >> 16 == number && learned != 0 ? (uint32_t)(learned & 0xffffu) - 1 : QUOIT_VETH_ALL;
}
