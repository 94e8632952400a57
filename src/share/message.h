/* SPDX-License-Identifier: BSD-3-Clause */
/* message.h - what clients and the owner of a shared ring say to each other. Private to share.
 *
 * One request, one reply, each one packet of a SOCK_SEQPACKET that begins with a head; with a share come its
 * descriptors: those of the wires, the links and the memory of each host that has them; with a place those of its
 * namespaces. Both ends run on one machine.
 */
#ifndef QUOIT_SHARE_MESSAGE_H
#define QUOIT_SHARE_MESSAGE_H

#include <sys/socket.h>
#include <sys/un.h>

#include "env/descriptors.h"
#include "share/head.h"
#include "share/share.h"

#define QUOIT_SHARE_MAGIC   0x51530002u
#define QUOIT_SHARE_FDS_MAX (3 * QUOIT_SHARE_HOSTS_MAX)
_Static_assert(QUOIT_SHARE_FDS_MAX <= QUOIT_DESCRIPTORS_MAX, "one message carries them");

enum quoit_share_kind { QUOIT_SHARE_ASK = 1, QUOIT_SHARE_ATTACH, QUOIT_SHARE_CUT, QUOIT_SHARE_MEND, QUOIT_SHARE_PLACE };

struct quoit_share_message {
    struct quoit_share_head head; /* its kind: enum quoit_share_kind; its status: enum quoit_status */
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
