/* SPDX-License-Identifier: BSD-3-Clause */
/* message.h - what clients and the owner of a shared ring say to each other. Private to share.
 *
 * One request, one reply, each one packet of a SOCK_SEQPACKET; with a share come its descriptors: those of the wires,
 * the links and the memory of each host that has them; with a place those of its namespaces. Both ends run on one
 * machine.
 */
#ifndef QUOIT_SHARE_MESSAGE_H
#define QUOIT_SHARE_MESSAGE_H

#include <sys/socket.h>
#include <sys/un.h>

#include "env/descriptors.h"
#include "share/share.h"

#define QUOIT_SHARE_MAGIC   0x51530001u
#define QUOIT_SHARE_FDS_MAX (3 * QUOIT_SHARE_HOSTS_MAX)
_Static_assert(QUOIT_SHARE_FDS_MAX <= QUOIT_DESCRIPTORS_MAX, "one message carries them");

enum quoit_share_kind { QUOIT_SHARE_ASK = 1, QUOIT_SHARE_ATTACH, QUOIT_SHARE_CUT, QUOIT_SHARE_MEND, QUOIT_SHARE_PLACE };

struct quoit_share_message {
    uint32_t magic;
    uint32_t bytes;  /* of this struct, which differs between builds */
    uint32_t kind;   /* enum quoit_share_kind; in a reply that of the request */
    uint32_t status; /* of a reply: enum quoit_status */
    union {
        uint32_t link; /* of CUT and MEND; of PLACE the host */
        struct quoit_share_request request;
        struct quoit_share share; /* a descriptor of 0 came with the message, in the order of the members; -1 did not */
        struct quoit_share_list list;
        struct quoit_share_place place; /* its descriptors came likewise */
    } body;
};

/* 0 with errno: the path is too long. */
socklen_t quoit_share_address(const char *path, struct sockaddr_un *address_out);

#endif
