/* SPDX-License-Identifier: BSD-3-Clause */
/* contact.h - how processes of a host reach the memory of the others over the network, as its proxy has learned it.
 *
 * In the host's memory, with a protocol that has contacts. The proxy writes it before it is ready, and PEs read it
 * after start.
 */
#ifndef QUOIT_HOST_CONTACT_H
#define QUOIT_HOST_CONTACT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "env/descriptors.h"
#include "host/job_config.h"
#include "host/protocol.h"
#include "net/net.h"

struct quoit_contact {
    struct quoit_net_address address;
    struct quoit_net_key key;
    uint64_t segments; /* where the segments of its PEs begin in its memory */
};

struct quoit_contacts {
    struct quoit_net_choice network; /* that the proxy has opened */
    struct quoit_net_place place;  /* where other hosts call this one; of no family: the network has no such address */
    char ports[QUOIT_PORTS_BYTES]; /* at which processes of this host listen */
    uint64_t tag;                  /* of the job */
    uint64_t notice_ns;            /* after which a host is silent */
    uint64_t opening_ns;           /* see struct quoit_net_limits */
    /* That a packet of TCP to another host carries at most, 0: no limit is known; the proxy writes it when it finds it,
     * before anything else passes on such a way. */
    _Atomic uint32_t segment_bytes;
    bool is_rdma;                 /* likewise */
    bool takes_pe_endpoints;      /* the proxies execute frames that PEs send by themselves */
    bool is_told;                 /* the rest is filled in */
    struct quoit_contact hosts[]; /* [host_count]; of the own host it is not used */
};

#define QUOIT_PE_ENDPOINTS_MAX 256u

/* PEs that may have an end of their own; they are PE endpoints by their numbers. Each takes a descriptor of a proxy: of
 * large jobs none has. */
static inline uint32_t quoit_contacts_pe_endpoint_count(const struct quoit_job_config *job)
{
    bool fits = job->pe_count <= QUOIT_PE_ENDPOINTS_MAX && quoit_descriptor_limit() / 2 >= job->pe_count;
    return quoit_job_config_traits(job)->has_contacts && fits ? job->pe_count : 0;
}

/* The host of a number of the network: itself, or that of a PE endpoint. */
static inline uint32_t quoit_contacts_host_of(const struct quoit_job_config *job, uint32_t number)
{
    return number < job->host_count ? number : quoit_job_config_host_of_pe(job, number - job->host_count);
}

#endif
