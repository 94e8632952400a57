/* SPDX-License-Identifier: BSD-3-Clause */
/* network.h - how a host joins the others of its job over a network (net/net.h); from who starts the proxy. */
#ifndef QUOIT_LANE_NETWORK_H
#define QUOIT_LANE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "net/net.h"

/* What a host tells all others, at most. */
#define QUOIT_NETWORK_CONTACT_BYTES 992

struct quoit_lane_network {
    const char *driver;      /* "tcp", "ofi", "ucx"; "auto": the first that works */
    const char *provider;    /* NULL: the driver's choice */
    const char *device;      /* a list as in net/devices.h; NULL: the driver's choice */
    const char *ports;       /* as in net/ports.h; NULL: any */
    uint64_t tag;            /* chance, the same on all hosts of the job alone */
    uint64_t lost_limit_ns;  /* 0: the default */
    uint64_t start_limit_ns; /* until a host has first spoken; less than lost_limit_ns: that */
    /* Gives all hosts the bytes of this one, and fills all_out with those of hosts 0..H-1, `bytes` each. Blocks until
     * every host has called it. False: some have not in time. */
    bool (*exchange)(void *arg, const void *own, uint32_t bytes, void *all_out);
    /* Called once for each host that is lost, and for one that has left when something is to be sent to it. is_silent:
     * neither it nor its machine gave a sign within lost_limit_ns, though its connection is up. */
    void (*on_lost)(void *arg, uint32_t host, bool is_silent);
    /* A host is silent, or is so no more; as of net.h. NULL: nobody asks. */
    void (*on_silence)(void *arg, uint32_t host, enum quoit_net_silence silence, uint64_t silent_ns, uint64_t dark_ns);
    /* As of net.h: what who started the proxy knows of the other proxies. NULL: nothing. */
    uint64_t (*sign_age_ns)(void *arg, uint32_t host);
    void *arg; /* of all four */
};

#endif
