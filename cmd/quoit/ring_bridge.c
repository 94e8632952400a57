/* SPDX-License-Identifier: BSD-3-Clause */
/* A machine that joins a ring of bridges: its ports and its host's memory. */
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/log.h"

static bool open_bridge(struct ring *ring, enum quoit_side side)
{
    const char *path = ring->plan.devices[side];
    ring->bridge_fds[side] = open(path, O_RDWR | O_CLOEXEC);
    if (ring->bridge_fds[side] < 0)
        quoit_say("cannot open the %s port %s: %s%s [Q0604]", side == QUOIT_LEFT ? "left" : "right", path,
                  strerror(errno),
                  errno == ENOENT   ? "; load the chip's driver and quoit_ntb (docs/build-a-ring.md)"
                  : errno == EACCES ? "; be root, or of the group ntb"
                                    : "");
    return ring->bridge_fds[side] >= 0;
}

bool ring_open_bridges(struct ring *ring)
{
    struct ring_host *host = &ring->hosts[ring->plan.host];
    if (!open_bridge(ring, QUOIT_LEFT) || !open_bridge(ring, QUOIT_RIGHT))
        return false;
    if (quoit_port_driver_memory(ring->driver, "quoit-ring", host->bytes, &host->memory_fd) == QUOIT_OK)
        return true;
    quoit_say("cannot make the %llu KiB of memory of host%u: %s [Q0603]", (unsigned long long)host->bytes >> 10,
              host->index, strerror(errno));
    return false;
}
