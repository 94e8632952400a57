/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/hosts.h"
#include "base/assert.h"
#include "env/map.h"
#include "host/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES     4096u
#define HEAP_BYTES_MIN (1u << 20)
#define CHUNK_BYTES    32768u /* of a staging chunk */
#define SLOT_COUNT     16u

enum quoit_status quoit_hosts_open(uint32_t rank_count, struct quoit_hosts **hosts_out)
{
    struct quoit_hosts *hosts = calloc(1, sizeof *hosts);
    if (hosts)
        hosts->host_of_rank = calloc(rank_count, sizeof *hosts->host_of_rank);
    if (!hosts || !hosts->host_of_rank) {
        free(hosts);
        return QUOIT_NO_MEMORY;
    }
    *hosts_out = hosts;
    return QUOIT_OK;
}

void quoit_hosts_close(struct quoit_hosts *hosts)
{
    if (hosts)
        free(hosts->host_of_rank);
    free(hosts);
}

enum quoit_status quoit_hosts_add(struct quoit_hosts *hosts, const struct quoit_hosts_entry *entry)
{
    uint32_t rank = hosts->rank_count, host = 0;
    while (host < hosts->count && strcmp(hosts->list[host].machine, entry->machine) != 0)
        host++;
    if (host == QUOIT_JOB_HOSTS_MAX)
        return QUOIT_FULL;
    if (host == hosts->count) {
        snprintf(hosts->list[host].machine, QUOIT_HOSTS_TEXT_BYTES, "%s", entry->machine);
        snprintf(hosts->list[host].name, QUOIT_HOSTS_TEXT_BYTES, "%s", entry->name);
        hosts->list[host].lowest_rank = rank;
        hosts->list[host].heap_share = entry->heap_share;
        hosts->count++;
    }
    if (hosts->list[host].pe_count == QUOIT_LOCAL_PES_MAX)
        return QUOIT_FULL;
    hosts->list[host].pe_count++;
    hosts->host_of_rank[rank] = (uint16_t)host;
    if (rank == 0) {
        hosts->heap_bytes = entry->heap_bytes;
        hosts->tag = entry->tag;
    }
    if (entry->data_bytes > hosts->data_bytes)
        hosts->data_bytes = entry->data_bytes;
    hosts->rank_count++;
    return QUOIT_OK;
}

void quoit_hosts_ranks(const struct quoit_hosts *hosts, uint32_t host, uint32_t *ranks_out)
{
    uint32_t local = 0;
    for (uint32_t rank = 0; rank < hosts->rank_count; rank++)
        if (hosts->host_of_rank[rank] == host)
            ranks_out[local++] = rank;
    quoit_assert(local == hosts->list[host].pe_count);
}

/* The smallest default of any host; what a segment holds beside its heap comes off. */
static uint64_t default_heap(const struct quoit_hosts *hosts)
{
    uint64_t smallest = UINT64_MAX, others = QUOIT_RUNTIME_BYTES + hosts->data_bytes + QUOIT_HUGE_PAGE_BYTES;
    for (uint32_t i = 0; i < hosts->count; i++) {
        uint64_t own = hosts->list[i].heap_share / hosts->list[i].pe_count;
        if (own < smallest)
            smallest = own;
    }
    return smallest > others + HEAP_BYTES_MIN ? smallest - others : HEAP_BYTES_MIN;
}

bool quoit_hosts_configure(const struct quoit_hosts *hosts, struct quoit_job_config *job_out)
{
    uint64_t heap_bytes = hosts->heap_bytes ? hosts->heap_bytes : default_heap(hosts);
    quoit_assert(hosts->count > 1);
    *job_out = (struct quoit_job_config){
        .lane_count = 1, /* a host has one endpoint */
        .slot_count = SLOT_COUNT,
        .chunk_bytes = CHUNK_BYTES,
        .protocol = QUOIT_PROTOCOL_NETWORK,
        .data_bytes = hosts->data_bytes,
        .heap_bytes = (heap_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES,
    };
    for (uint32_t i = 0; i < hosts->count; i++)
        if (!quoit_job_config_add_host(job_out, hosts->list[i].pe_count))
            return false;
    return true;
}
