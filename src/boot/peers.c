/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/peers.h"

#include <stdlib.h>
#include <string.h>

struct quoit_peer {
    bool is_ready;
    bool has_finalized;
};

enum quoit_status quoit_peers_open(struct quoit_peers *peers, uint32_t host_count)
{
    *peers = (struct quoit_peers){.host_count = host_count, .list = calloc(host_count, sizeof *peers->list)};
    return peers->list ? QUOIT_OK : QUOIT_NO_MEMORY;
}

void quoit_peers_close(struct quoit_peers *peers)
{
    free(peers->list);
    peers->list = NULL;
}

bool quoit_peers_ready(struct quoit_peers *peers, uint32_t host)
{
    if (host >= peers->host_count || peers->list[host].is_ready)
        return false;
    peers->list[host].is_ready = true;
    if (++peers->ready_count < peers->host_count)
        return false;
    peers->ready_count = peers->finalized_count = 0;
    peers->has_left = false;
    memset(peers->list, 0, peers->host_count * sizeof *peers->list);
    return true;
}

bool quoit_peers_finalized(struct quoit_peers *peers, uint32_t host)
{
    if (host >= peers->host_count || peers->list[host].has_finalized)
        return false;
    peers->list[host].has_finalized = true;
    return ++peers->finalized_count == peers->host_count;
}

bool quoit_peers_has_finalized(const struct quoit_peers *peers, uint32_t host)
{
    return host < peers->host_count && peers->list[host].has_finalized;
}

bool quoit_peers_left(struct quoit_peers *peers, const struct quoit_control_left *left)
{
    if (peers->has_left && peers->left.meeting_count <= left->meeting_count)
        return false;
    peers->has_left = true;
    peers->left = *left;
    return true;
}
