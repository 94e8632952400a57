/* SPDX-License-Identifier: BSD-3-Clause */
/* contact.h - how processes of a host reach the memory of the others over the network, as its proxy has learned it.
 *
 * In the host's memory, with a protocol that has contacts. The proxy writes it before it is ready, and PEs read it
 * after start.
 */
#ifndef QUOIT_HOST_CONTACT_H
#define QUOIT_HOST_CONTACT_H

#include <stdbool.h>
#include <stdint.h>

#include "net/net.h"

struct quoit_contact {
    struct quoit_net_address address;
    struct quoit_net_key key;
    uint64_t segments; /* where the segments of its PEs begin in its memory */
};

struct quoit_contacts {
    struct quoit_net_choice network; /* that the proxy has opened */
    uint64_t lost_limit_ns;          /* after which a host is lost */
    bool is_rdma;                    /* see struct quoit_net_limits */
    bool is_told;                    /* the rest is filled in */
    struct quoit_contact hosts[];    /* [host_count]; of the own host it is not used */
};

#endif
