/* SPDX-License-Identifier: BSD-3-Clause */
#include "share/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "env/map.h"

#define LEFT_END 0 /* of a link: the right port of host i */

struct lease {
    bool is_taken;
    struct quoit_share share;
    uint64_t memory_bytes[QUOIT_SHARE_HOSTS_MAX];
};

struct quoit_shared_ring {
    struct quoit_share_config config;
    const struct quoit_port_driver *driver;
    int wire_fds[QUOIT_SHARE_HOSTS_MAX]; /* of each link: its rate, which the shares divide */
    uint64_t cut_links;                  /* one bit per link */
    uint32_t last_id;                    /* assigned */
    struct lease leases[QUOIT_SHARES_MAX];
};

static void close_fds(int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

static void clear_fds(struct quoit_share *share)
{
    memset(share->wire_fds, -1, sizeof share->wire_fds);
    memset(share->link_fds, -1, sizeof share->link_fds);
    memset(share->memory_fds, -1, sizeof share->memory_fds);
}

enum quoit_status quoit_shared_ring_open(const struct quoit_share_config *config, struct quoit_shared_ring **ring_out)
{
    const struct quoit_port_driver *driver = quoit_port_driver_find(config->driver);
    if (!driver) {
        quoit_log(QUOIT_LOG_ERROR, "a shared ring: there is no driver '%.31s'", config->driver);
        return QUOIT_UNSUPPORTED;
    }
    if (config->host_count < 2 || config->host_count > QUOIT_SHARE_HOSTS_MAX) {
        quoit_log(QUOIT_LOG_ERROR, "a shared ring: host_count is %u, allowed are 2 to %d", config->host_count,
                  QUOIT_SHARE_HOSTS_MAX);
        return QUOIT_INVALID;
    }
    struct quoit_shared_ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return QUOIT_NO_MEMORY;
    enum quoit_status status = QUOIT_OK;
    ring->config = *config;
    ring->driver = driver;
    memset(ring->wire_fds, -1, sizeof ring->wire_fds);
    for (uint32_t link = 0; link < config->host_count && status == QUOIT_OK; link++)
        status = quoit_port_driver_link(driver, &ring->wire_fds[link]);
    if (status != QUOIT_OK)
        quoit_shared_ring_close(ring);
    else
        *ring_out = ring;
    return status;
}

void quoit_shared_ring_close(struct quoit_shared_ring *ring)
{
    if (!ring)
        return;
    for (uint32_t i = 0; i < QUOIT_SHARES_MAX; i++)
        if (ring->leases[i].is_taken)
            quoit_share_end(ring, &ring->leases[i].share);
    close_fds(ring->wire_fds, ring->config.host_count);
    free(ring);
}

enum quoit_status quoit_share_describe(const struct quoit_share *share, uint32_t host, uint32_t side,
                                       struct quoit_port_endpoint *endpoint_out)
{
    uint32_t host_count = share->ring.host_count;
    quoit_assert(host < host_count);
    uint32_t link = side == LEFT_END ? host : (host + host_count - 1) % host_count;
    const struct quoit_port_wire wire = {.fd = share->wire_fds[link], .share = share->index, .part = share->part};
    const struct quoit_port_site site = {
        .link_fd = share->link_fds[link],
        .peer_memory_fd = share->memory_fds[side == LEFT_END ? (host + 1) % host_count : link],
        .side = side,
        .wire = &wire,
        .knobs = share->ring.knobs,
    };
    return quoit_port_driver_describe(quoit_port_driver_find(share->ring.driver), &site, endpoint_out);
}

/* Taking and ending */

static enum quoit_status make_memory(struct quoit_shared_ring *ring, struct lease *lease)
{
    for (uint32_t host = 0; host < ring->config.host_count; host++) {
        uint64_t bytes = lease->memory_bytes[host];
        if (bytes == 0)
            continue;
        if (bytes > QUOIT_SHARE_MEMORY_MAX) {
            errno = EFBIG;
            return QUOIT_SYSTEM;
        }
        enum quoit_status status =
            quoit_port_driver_memory(ring->driver, "quoit-host", bytes, &lease->share.memory_fds[host]);
        if (status != QUOIT_OK)
            return status;
    }
    return QUOIT_OK;
}

/* Cuts or mends a link of one share. Opens a port for that moment only, on the memory of the host whose sleepers the
 * change wakes; otherwise neither the owner nor a child it forks has a client's memory mapped. */
static enum quoit_status set_cut(const struct quoit_shared_ring *ring, const struct lease *lease, uint32_t link,
                                 bool is_cut)
{
    struct quoit_port_endpoint end;
    struct quoit_port *port;
    uint64_t bytes = lease->memory_bytes[link];
    if (lease->share.link_fds[link] < 0)
        return QUOIT_OK;
    void *memory = quoit_map_file(lease->share.memory_fds[link], bytes, PROT_READ | PROT_WRITE);
    if (!memory)
        return QUOIT_SYSTEM;
    const struct quoit_port_config config = {.driver = ring->driver, .memory = {memory, bytes}, .endpoint = &end};
    enum quoit_status status = quoit_share_describe(&lease->share, link, LEFT_END, &end);
    if (status == QUOIT_OK)
        status = quoit_port_open(&config, &port);
    if (status == QUOIT_OK) {
        status = is_cut ? quoit_port_cut(port) : quoit_port_mend(port);
        quoit_port_close(port);
    }
    munmap(memory, bytes);
    return status;
}

static enum quoit_status make_link(struct quoit_shared_ring *ring, struct lease *lease, uint32_t link)
{
    struct quoit_share *share = &lease->share;
    share->wire_fds[link] = ring->wire_fds[link];
    enum quoit_status status = quoit_port_driver_link(ring->driver, &share->link_fds[link]);
    if (status == QUOIT_OK && (ring->cut_links >> link & 1))
        status = set_cut(ring, lease, link, true);
    return status;
}

/* The client's processes keep its memory until they close it; its links are dead to them. */
static void release(struct quoit_shared_ring *ring, struct lease *lease)
{
    close_fds(lease->share.link_fds, ring->config.host_count);
    close_fds(lease->share.memory_fds, ring->config.host_count);
    memset(lease, 0, sizeof *lease);
}

static bool has_id(const struct quoit_shared_ring *ring, uint32_t id)
{
    for (uint32_t i = 0; i < QUOIT_SHARES_MAX; i++)
        if (ring->leases[i].is_taken && ring->leases[i].share.id == id)
            return true;
    return false;
}

static uint32_t next_id(struct quoit_shared_ring *ring)
{
    do
        ring->last_id++;
    while (ring->last_id == 0 || has_id(ring, ring->last_id));
    return ring->last_id;
}

static struct lease *free_lease(struct quoit_shared_ring *ring)
{
    for (uint32_t i = 0; i < QUOIT_SHARES_MAX; i++)
        if (!ring->leases[i].is_taken)
            return &ring->leases[i];
    return NULL;
}

enum quoit_status quoit_share_take(struct quoit_shared_ring *ring, const struct quoit_share_request *request,
                                   const struct quoit_share **share_out)
{
    struct lease *lease = free_lease(ring);
    uint64_t any_bytes = 0;
    for (uint32_t host = 0; host < ring->config.host_count; host++)
        any_bytes |= request->memory_bytes[host];
    if (!quoit_port_driver_is_one_machine(ring->driver))
        return QUOIT_UNSUPPORTED;
    if (any_bytes == 0 || request->part.weight > 100 || request->part.percent > 99)
        return QUOIT_INVALID;
    if (!lease || (request->id != 0 && has_id(ring, request->id)))
        return QUOIT_FULL;
    memcpy(lease->memory_bytes, request->memory_bytes, sizeof lease->memory_bytes);
    lease->share = (struct quoit_share){.ring = ring->config,
                                        .id = request->id ? request->id : next_id(ring),
                                        .index = (uint32_t)(lease - ring->leases),
                                        .part = request->part};
    clear_fds(&lease->share);
    lease->is_taken = true;
    enum quoit_status status = make_memory(ring, lease);
    for (uint32_t link = 0; link < ring->config.host_count && status == QUOIT_OK; link++)
        if (lease->memory_bytes[link] != 0 && lease->memory_bytes[(link + 1) % ring->config.host_count] != 0)
            status = make_link(ring, lease, link);
    if (status != QUOIT_OK)
        release(ring, lease);
    else
        *share_out = &lease->share;
    return status;
}

void quoit_share_end(struct quoit_shared_ring *ring, const struct quoit_share *share)
{
    struct lease *lease = &ring->leases[share->index];
    quoit_assert(lease->is_taken);
    for (uint32_t link = 0; link < ring->config.host_count; link++)
        (void)!set_cut(ring, lease, link, true); /* a driver without cuts: the links die with the client's processes */
    release(ring, lease);
}

enum quoit_status quoit_shared_ring_cut(struct quoit_shared_ring *ring, uint32_t link, bool is_cut)
{
    enum quoit_status status = QUOIT_OK;
    if (link >= ring->config.host_count)
        return QUOIT_OUT_OF_RANGE;
    if (!quoit_port_driver_is_one_machine(ring->driver))
        return QUOIT_UNSUPPORTED;
    ring->cut_links = (ring->cut_links & ~(UINT64_C(1) << link)) | (uint64_t)is_cut << link;
    for (uint32_t i = 0; i < QUOIT_SHARES_MAX; i++) {
        enum quoit_status result = ring->leases[i].is_taken ? set_cut(ring, &ring->leases[i], link, is_cut) : QUOIT_OK;
        status = result != QUOIT_OK ? result : status;
    }
    return status;
}

void quoit_shared_ring_close_in_child(struct quoit_shared_ring *ring, const struct quoit_share *except)
{
    for (uint32_t i = 0; i < QUOIT_SHARES_MAX; i++)
        if (ring->leases[i].is_taken && &ring->leases[i].share != except)
            release(ring, &ring->leases[i]);
}

void quoit_shared_ring_info(const struct quoit_shared_ring *ring, struct quoit_share_config *config_out,
                            uint64_t *cut_links_out)
{
    *config_out = ring->config;
    *cut_links_out = ring->cut_links;
}

void quoit_share_close(struct quoit_share *share)
{
    close_fds(share->wire_fds, QUOIT_SHARE_HOSTS_MAX);
    close_fds(share->link_fds, QUOIT_SHARE_HOSTS_MAX);
    close_fds(share->memory_fds, QUOIT_SHARE_HOSTS_MAX);
}
